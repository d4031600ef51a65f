"""How the time of a run's requests divides into phases: sums, shares, medians and tails."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from inference.records import RequestRecord

#: the parts of metrics.md that add up to the end-to-end time
PARTS = ("dispatch_delay", "throttled", "network", "queue_wait", "prefill", "decode", "unexplained")
#: parts of parts, shown beside them and never added
SUB_PARTS = (
    "model_load",
    "prefill_compute",
    "prefill_wait",
    "decode_compute",
    "decode_stall",
    "requeue_wait",
)


#: every place where time can go, in the order in which a request passes them: together they are the
#: summed time, each millisecond in one of them only
PLACES = (
    "dispatch",
    "throttling",
    "network",
    "queue",
    "model_load",
    "prefill",
    "decode",
    "stalls",
    "preemption",
    "unexplained",
)


def places(parts_ms: Mapping[str, float | None]) -> dict[str, float | None]:
    """The intervals of metrics.md (ms) by place: load out of the queue, stalls and preemption out of decode.

    What was not observed is None, also a part of an interval that was observed as a whole only: the
    time then stays with the whole.
    """

    def without(whole: str, *taken: str) -> float | None:
        value = parts_ms.get(whole)
        return None if value is None else max(0.0, value - sum(parts_ms.get(part) or 0.0 for part in taken))

    return {
        "dispatch": parts_ms.get("dispatch_delay"),
        "throttling": parts_ms.get("throttled"),
        "network": parts_ms.get("network"),
        "queue": without("queue_wait", "model_load"),
        "model_load": parts_ms.get("model_load"),
        "prefill": parts_ms.get("prefill"),
        "decode": without("decode", "decode_stall", "requeue_wait"),
        "stalls": parts_ms.get("decode_stall"),
        "preemption": parts_ms.get("requeue_wait"),
        "unexplained": parts_ms.get("unexplained"),
    }


@dataclass(frozen=True)
class TimeSplit:
    """Where the time of the successful requests went; `None` is not observed, never 0."""

    sums_ms: dict[str, float | None]
    shares: dict[str, float | None]  # of the sum of all observed parts, 0–1
    n: int
    source: str  # "requests": summed over them; "summary": mean × n; "none"

    def share(self, name: str) -> float:
        """The share with "not observed" as nothing, for comparisons only."""
        return self.shares.get(name) or 0.0

    def attribution(self) -> list[dict[str, Any]]:
        """`{"place", "ms", "share"}` for each place in order; None where it was not observed."""
        found = places(self.sums_ms)
        whole = sum(max(0.0, value or 0.0) for value in found.values())
        return [
            {
                "place": place,
                "ms": value,
                "share": None if value is None or not whole else max(0.0, value) / whole,
            }
            for place, value in found.items()
        ]

    def of(self, part: str, whole: str) -> float | None:
        """`part` as a share of `whole`, e.g. decode_stall of decode; None where either is absent or zero."""
        part_ms, whole_ms = self.sums_ms.get(part), self.sums_ms.get(whole)
        return part_ms / whole_ms if part_ms is not None and whole_ms else None


def split_time(records: Sequence[RequestRecord], summary: Mapping[str, Any]) -> TimeSplit:
    """Sum the intervals of the measured successes; without records, from the summary's means × n.

    The wait for a client's slot (`dispatch_delay`) is the target's doing only in open loop, where the
    latencies start at `scheduled`; in closed loop it is left out.
    """
    measured = [record for record in records if record.outcome == "success" and not record.warmup]
    if measured:
        names = (*PARTS, *SUB_PARTS)
        sums = {name: _sum([record.intervals_ms.get(name) for record in measured]) for name in names}
        if summary.get("latency_from") != "scheduled":
            sums["dispatch_delay"] = None
        return _as_split(sums, len(measured), "requests")
    sums = {
        part: _summed(summary.get(field))
        for part, field in (
            ("queue_wait", "queue_wait_ms"),
            ("prefill", "prefill_ms"),
            ("decode", "decode_ms"),
        )
    }
    n = max((int((summary.get(f"{name}_ms") or {}).get("n") or 0) for name in sums), default=0)
    return _as_split(sums, n, "summary" if any(value is not None for value in sums.values()) else "none")


def _as_split(sums: dict[str, float | None], n: int, source: str) -> TimeSplit:
    whole = sum(max(0.0, sums.get(part) or 0.0) for part in PARTS)
    shares = {
        part: None if sums.get(part) is None or not whole else max(0.0, sums[part] or 0.0) / whole
        for part in PARTS
    }
    return TimeSplit(sums, shares, n, source)


def _sum(values: Sequence[float | None]) -> float | None:
    observed = [value for value in values if value is not None]
    return sum(observed) if observed else None


def _summed(found: Mapping[str, Any] | None) -> float | None:
    """n × mean of a distribution; the median stands in where no mean was told."""
    if not found or not found.get("n"):
        return None
    typical = found.get("mean") if found.get("mean") is not None else found.get("p50")
    return None if typical is None else typical * found["n"]
