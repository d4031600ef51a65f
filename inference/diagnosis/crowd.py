"""How many other requests a target held while one of them was in a phase: exact, from their own times."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from inference.records import RequestRecord

NS_PER_MS = 1_000_000.0


@dataclass(frozen=True)
class Span:
    """When one request was with the target, in ms on the run's axis; `admitted_ms` None: not observed."""

    sent_ms: float
    admitted_ms: float | None
    ended_ms: float


class Crowd:
    """The requests of a run, asked how many of them ran or waited in a window."""

    def __init__(self, spans: Iterable[Span]) -> None:
        known = list(spans)
        self.told_admission = bool(known) and all(span.admitted_ms is not None for span in known)
        self._sent = np.array([span.sent_ms for span in known], dtype=float)
        self._admitted = np.array(
            [span.sent_ms if span.admitted_ms is None else span.admitted_ms for span in known], dtype=float
        )
        self._ended = np.array([span.ended_ms for span in known], dtype=float)

    def running(self, start_ms: float, end_ms: float) -> float | None:
        """Mean number in the batch over the window, in it or not; with admissions untold, under way."""
        return _mean_present(self._admitted, self._ended, start_ms, end_ms)

    def waiting(self, start_ms: float, end_ms: float) -> float | None:
        """Mean number accepted and not yet in the batch; None where admissions were not told."""
        if not self.told_admission:
            return None
        return _mean_present(self._sent, self._admitted, start_ms, end_ms)


def _mean_present(
    begin: "np.ndarray[tuple[int, ...], np.dtype[np.float64]]",
    end: "np.ndarray[tuple[int, ...], np.dtype[np.float64]]",
    start_ms: float,
    end_ms: float,
) -> float | None:
    if end_ms <= start_ms or not len(begin):
        return None
    overlap = np.minimum(end, end_ms) - np.maximum(begin, start_ms)
    return float(np.clip(overlap, 0.0, None).sum() / (end_ms - start_ms))


def span_of(record: RequestRecord) -> Span | None:
    """The span of a record on the axis of its stamps; None where it was not sent or never ended."""
    stamps = record.stamps
    sent, admitted = stamps.get("sent_ns"), stamps.get("admitted_ns")
    ends = [stamps.get(name) for name in ("last_ns", "finished_ns", "aborted_ns", "failed_ns")]
    known = [end for end in ends if isinstance(end, int)]
    if not isinstance(sent, int) or not known:
        return None
    first = admitted[0] if isinstance(admitted, list) and admitted else None
    queue_ms = record.intervals_ms.get("queue_wait")
    admitted_ms = first / NS_PER_MS if first is not None else None
    if admitted_ms is None and queue_ms is not None:
        admitted_ms = sent / NS_PER_MS + queue_ms
    return Span(sent / NS_PER_MS, admitted_ms, max(known) / NS_PER_MS)


def crowd_of(records: Sequence[RequestRecord]) -> Crowd:
    """Everybody that was under way, whatever came of it."""
    return Crowd(span for record in records if (span := span_of(record)) is not None)
