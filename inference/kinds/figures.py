"""Figures that several kinds state of their records."""

from collections.abc import Iterable, Sequence
from statistics import median
from typing import Any

from inference.records import RequestRecord
from inference.stats import figures, measured_window


def window(records: Sequence[RequestRecord]) -> list[RequestRecord]:
    """The measured records, as the summary takes them."""
    return measured_window(records)[0]


def successes(records: Sequence[RequestRecord]) -> list[RequestRecord]:
    """Of these, the successful ones: percentiles are over them."""
    return [record for record in window(records) if record.outcome == "success"]


def spread(name: str, values: Iterable[float | None], *, unit: str = "ms") -> dict[str, Any]:
    """`{name_n, name_p50_unit, name_p95_unit, name_max_unit}` of what was observed, else null."""
    found = figures(values)
    ends = {place: f"{name}_{place}_{unit}" if unit else f"{name}_{place}" for place in ("p50", "p95", "max")}
    return {f"{name}_n": found["n"], **{ends[place]: found[place] for place in ends}}


def ratio(above: float | None, below: float | None) -> float | None:
    return above / below if above is not None and below else None


def middle(values: Iterable[float | None]) -> float | None:
    observed = [value for value in values if value is not None]
    return median(observed) if observed else None


def peak_in_flight(records: Sequence[RequestRecord]) -> int | None:
    """The most requests that were under way at once, from sent to the end of the stream."""
    events: list[tuple[int, int]] = []
    for record in records:
        sent, closed = record.stamps.get("sent_ns"), record.stamps.get("closed_ns")
        if isinstance(sent, int) and isinstance(closed, int):
            events += [(sent, 1), (closed, -1)]
    running = peak = 0
    for _, step in sorted(events):
        running += step
        peak = max(peak, running)
    return peak if events else None


def refused(record: RequestRecord) -> bool:
    return record.outcome == "rate_limited"


def error_share(records: Sequence[RequestRecord]) -> float | None:
    """Unsuccessful requests that were not asked for ÷ all attempted (0–1)."""
    if not records:
        return None
    return sum(record.outcome not in ("success", "cancelled") for record in records) / len(records)
