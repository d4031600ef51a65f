"""Where the time of a request went, as segments one after the other on a time axis.

The segments are the intervals that add up to the end-to-end time (see `inference.phases`), laid end
to end in the order in which they pass, then the release. What was not observed has no segment.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from pocs.runs.charts import phase_label
from pocs.runs.models import RequestRecord
from pocs.runs.wording import Share

#: interval -> CSS class of its colour, in the order in which the phases pass
PHASES = {
    "dispatch_delay": "dispatch",
    "throttled": "throttled",
    "network": "network",
    "queue_wait": "queue",
    "prefill": "prefill",
    "unexplained": "unexplained",  # at an endpoint it lies before the first token
    "decode": "decode",
    "release": "release",
}
#: width of a drawn timeline in its own units
DRAWN_UNITS = 1000
#: segments shorter than this are drawn this wide, so that they can be seen
LEAST_UNITS = 1.5
SHOWN_FROM_MS = 0.05
SHOWN_SHARE = 0.0005


@dataclass(frozen=True)
class Segment:
    """One phase of one request: where it lies on the axis (ms) and in the drawing (units)."""

    phase: str
    from_ms: float
    to_ms: float
    x: float = 0.0
    width: float = 0.0

    @property
    def css(self) -> str:
        return f"phase-{PHASES.get(self.phase, 'unexplained')}"

    @property
    def label(self) -> str:
        return phase_label(self.phase)

    @property
    def ms(self) -> float:
        return self.to_ms - self.from_ms


def segments(intervals_ms: Mapping[str, float | None], *, sent_ms: float = 0.0) -> list[Segment]:
    """The segments of a request that was sent at `sent_ms` on the wanted axis (before it: dispatch delay)."""
    at_ms = sent_ms - (intervals_ms.get("dispatch_delay") or 0.0)
    found = []
    for phase in PHASES:
        length_ms = intervals_ms.get(phase) or 0.0
        if length_ms < SHOWN_FROM_MS:
            at_ms += max(length_ms, 0.0)
            continue
        found.append(Segment(phase, at_ms, at_ms + length_ms))
        at_ms += length_ms
    return found


def total_ms(intervals_ms: Mapping[str, float | None]) -> float:
    """From scheduled to released: the length of the request's whole timeline."""
    return sum(max(intervals_ms.get(phase) or 0.0, 0.0) for phase in PHASES)


def drawn(intervals_ms: Mapping[str, float | None], span_ms: float) -> list[Segment]:
    """The segments of one request from its own start, scaled so that `span_ms` is the drawing's width."""
    scale = DRAWN_UNITS / span_ms if span_ms > 0 else 0.0
    sent_ms = intervals_ms.get("dispatch_delay") or 0.0
    return [
        Segment(
            part.phase,
            part.from_ms,
            part.to_ms,
            x=round(part.from_ms * scale, 1),
            width=round(max(part.ms * scale, LEAST_UNITS), 1),
        )
        for part in segments(intervals_ms, sent_ms=sent_ms)
    ]


@dataclass(frozen=True)
class DrawnShare:
    """One phase's share (0 … 1) of the summed time, with its place in a bar of `DRAWN_UNITS`."""

    label: str
    share: float
    css: str
    x: float
    width: float


def drawn_shares(shares: Iterable[Share]) -> list[DrawnShare]:
    """The observed shares laid end to end."""
    found, at = [], 0.0
    for part in shares:
        if not part.share or part.share < SHOWN_SHARE:
            continue
        css = f"phase-{PHASES.get(part.part, 'unexplained')}"
        width = part.share * DRAWN_UNITS
        found.append(DrawnShare(part.label, part.share, css, round(at, 1), round(width, 1)))
        at += width
    return found


def waterfall_rows(records: Iterable[RequestRecord]) -> list[dict[str, Any]]:
    """The data of the waterfall chart: requests in the order in which they were sent, a row each."""
    known = [record for record in records if record.started_ms is not None]
    known.sort(key=lambda record: (record.started_ms, record.index))
    return [
        {
            "row": row,
            "id": record.request_id,
            "phase": part.phase,
            "from_ms": round(part.from_ms, 2),
            "to_ms": round(part.to_ms, 2),
        }
        for row, record in enumerate(known)
        for part in segments(record.intervals_ms, sent_ms=record.started_ms or 0.0)
    ]


def legend() -> list[tuple[str, str]]:
    """(CSS class, name) of each phase, in order."""
    return [(f"phase-{css}", phase_label(phase)) for phase, css in PHASES.items()]
