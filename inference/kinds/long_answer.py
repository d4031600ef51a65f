"""S12, long answers: whether answers get as long as asked, and whether tokens slow down as they grow."""

from collections.abc import Sequence
from statistics import median

from inference.kinds.base import Findings, Kind, one_load
from inference.kinds.course import Course
from inference.kinds.figures import middle, ratio, spread, successes
from inference.phases import gaps_ms
from inference.records import RequestRecord

#: gaps of an answer below which its first and its last quarter say nothing
GAPS_NEEDED = 16


def judge(course: Course, records: Sequence[RequestRecord]) -> Findings:
    good = successes(records)
    quarters = [pair for record in good if record.streamed and (pair := first_and_last_quarter(record))]
    asked = course.spec.get("output_tokens")
    found = Findings(
        facts={
            "asked_tokens": asked,
            **spread("output", (record.output_tokens for record in good), unit="tokens"),
            "cut_by_length_share": ratio(sum(one.finish_reason == "length" for one in good), len(good)),
            **spread("tpot", (record.tpot_ms for record in good)),
            "growth_n": len(quarters),
            "first_quarter_gap_ms": middle(first for first, _ in quarters),
            "last_quarter_gap_ms": middle(last for _, last in quarters),
            "gap_growth_ratio": middle(ratio(last, first) for first, last in quarters),
            "preempted_requests": sum(bool(record.detail.get("preempted_ns")) for record in good),
        }
    )
    facts = found.facts
    if facts["gap_growth_ratio"] is not None:
        found.say(
            "answers_slow_down" if facts["gap_growth_ratio"] > 1.2 else "answers_keep_pace",
            n=len(quarters),
            first_quarter_gap_ms=facts["first_quarter_gap_ms"],
            last_quarter_gap_ms=facts["last_quarter_gap_ms"],
            output_max_tokens=facts["output_max_tokens"],
        )
    return found


def first_and_last_quarter(record: RequestRecord) -> tuple[float, float] | None:
    """The median gap of the first and of the last quarter of an answer, in ms; None for a short one."""
    gaps = gaps_ms(record.reads)
    if len(gaps) < GAPS_NEEDED:
        return None
    quarter = len(gaps) // 4
    return median(gaps[:quarter]), median(gaps[-quarter:])


KIND = Kind(name="long_answer", code="S12", procedure=one_load(judge))
