"""S4, streaming: whether answers flow (M11): stalls, jitter, and the share of the longest gap."""

from collections.abc import Sequence
from statistics import median

from inference.kinds.base import Findings, Kind, Option, one_load
from inference.kinds.course import Course
from inference.kinds.figures import ratio, spread, successes
from inference.phases import gaps_ms
from inference.records import RequestRecord
from inference.stats import percentile


def judge(course: Course, records: Sequence[RequestRecord]) -> Findings:
    """A stall: a gap longer than `stall_ms` and than `stall_factor` times the median of the answer's gaps."""
    streams = [record for record in successes(records) if record.streamed and len(record.reads) > 1]
    gaps = {record.id: gaps_ms(record.reads) for record in streams}
    stalls = {
        record.id: [gap for gap in gaps[record.id] if is_stall(gap, gaps[record.id], course)]
        for record in streams
    }
    flowing_ms = sum(map(sum, gaps.values()))
    tokens = sum(record.output_tokens or 0 for record in streams)
    found = Findings(
        facts={
            "streams": len(streams),
            "stalls": sum(map(len, stalls.values())),
            "stalled_streams_share": ratio(sum(map(bool, stalls.values())), len(streams)),
            "stalled_time_share": ratio(sum(map(sum, stalls.values())), flowing_ms),
            **spread("longest_gap", (record.max_gap_ms for record in streams)),
            **spread("longest_gap_share", (longest_share(gaps[one.id]) for one in streams), unit=""),
            **spread("jitter", (jitter_ms(gaps[record.id]) for record in streams)),
            "tokens_per_read": ratio(tokens, sum(len(record.reads) for record in streams)),
        },
        tables={
            "streams": [
                {
                    "request": record.id,
                    "stalls": len(stalls[record.id]),
                    "longest_gap_ms": record.max_gap_ms,
                    "longest_gap_share": longest_share(gaps[record.id]),
                }
                for record in sorted(streams, key=lambda one: -(one.max_gap_ms or 0))[:8]
            ]
        },
    )
    facts = found.facts
    if streams:
        found.say(
            "stream_stalls" if facts["stalls"] else "stream_flows",
            streams=len(streams),
            stalls=facts["stalls"],
            stalled_streams_share=facts["stalled_streams_share"],
            longest_gap_p95_ms=facts["longest_gap_p95_ms"],
            longest_gap_max_ms=facts["longest_gap_max_ms"],
            jitter_p95_ms=facts["jitter_p95_ms"],
        )
    else:
        found.say("stream_not_observed")
    return found


def is_stall(gap_ms: float, gaps: Sequence[float], course: Course) -> bool:
    return gap_ms >= course.values["stall_ms"] and gap_ms >= course.values["stall_factor"] * median(gaps)


def longest_share(gaps: Sequence[float]) -> float | None:
    """The longest gap ÷ the time from the first read to the last (0–1)."""
    return ratio(max(gaps, default=None), sum(gaps))


def jitter_ms(gaps: Sequence[float]) -> float | None:
    """The interquartile range of one answer's gaps, in ms: how uneven it flows, whatever single gaps do."""
    ordered = sorted(gaps)
    return percentile(ordered, 75) - percentile(ordered, 25) if len(ordered) > 1 else None


KIND = Kind(
    name="streaming",
    code="S4",
    procedure=one_load(judge),
    options=(
        Option(name="stall_ms", default=500, low=1, high=600_000),
        Option(name="stall_factor", default=5, low=1, high=1_000),
    ),
)
