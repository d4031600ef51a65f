"""S3, high concurrency: whether the load was really there at once, and what batching did to the tail (Q7)."""

from collections.abc import Sequence

from inference.kinds.base import Findings, Kind, one_load
from inference.kinds.course import Course
from inference.kinds.figures import (
    error_share,
    middle,
    peak_in_flight,
    ratio,
    refused,
    spread,
    successes,
    window,
)
from inference.phases import gaps_ms
from inference.records import RequestRecord
from inference.stats import figures


def judge(course: Course, records: Sequence[RequestRecord]) -> Findings:
    measured, good = window(records), successes(records)
    gaps = figures(gap for record in good if record.streamed for gap in gaps_ms(record.reads))
    ttft = figures(record.ttft_ms for record in good)
    asked = course.spec.get("concurrency")
    found = Findings(
        facts={
            "asked_at_once": asked,
            "peak_at_once": peak_in_flight(measured),
            **spread("queue_wait", (record.intervals_ms.get("queue_wait") for record in good)),
            "queue_share": middle(
                ratio(record.intervals_ms.get("queue_wait"), record.e2e_ms) for record in good
            ),
            "ttft_p95_to_p50": ratio(ttft["p95"], ttft["p50"]),
            "gap_p99_to_p50": ratio(gaps["p99"], gaps["p50"]),
            "preempted_requests": sum(bool(record.detail.get("preempted_ns")) for record in measured),
            "refused_requests": sum(refused(record) for record in measured),
            "error_share": error_share(measured),
        }
    )
    facts = found.facts
    peak = facts["peak_at_once"]
    if peak is not None and asked:
        reached = "concurrency_reached" if peak >= asked else "concurrency_not_reached"
        found.say(reached, asked_at_once=asked, peak_at_once=peak)
    if facts["ttft_p95_to_p50"] is not None:
        found.say(
            "tail_under_concurrency",
            n=ttft["n"],
            ttft_p50_ms=ttft["p50"],
            ttft_p95_ms=ttft["p95"],
            queue_share=facts["queue_share"],
            gap_p50_ms=gaps["p50"],
            gap_p99_ms=gaps["p99"],
        )
    return found


KIND = Kind(name="high_concurrency", code="S3", procedure=one_load(judge))
