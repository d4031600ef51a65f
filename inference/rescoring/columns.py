"""What the definitions of all tools need of each request, as arrays: one pass over any number of records."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from inference.recording.ranks import at_ranks, extent, held_if_few
from inference.recording.reads import Read, gaps_ns
from inference.records import RequestRecord
from inference.rescoring.spread import RankedGaps, wanted_ranks

ABSENT = -1
NO_ERROR = ("success", "incomplete")
_AT_ONCE = 1000  # requests whose gaps are held at once


@dataclass(frozen=True)
class Columns:
    """One entry a measured request; stamps in ns, −1 where not observed."""

    scheduled: np.ndarray
    sent: np.ndarray
    role: np.ndarray  # a chunk that came before any output and only named the role
    first: np.ndarray
    last: np.ndarray
    ended: np.ndarray  # the stream's end, else the last stamp there is
    output_tokens: np.ndarray  # −1 where not known
    in_first_read: np.ndarray  # tokens; 1 where not known
    success: np.ndarray
    no_error: np.ndarray  # a success, or an answer that merely ended too early
    streamed: np.ndarray
    reads: list[Sequence[Read]]
    open_loop: bool
    excluded: int  # requests that overlap the warm-up, which our own window leaves out
    _known: dict[bytes, RankedGaps] = field(default_factory=dict)

    def gaps(self, of: np.ndarray, more: np.ndarray | None = None) -> RankedGaps:
        """The pooled gaps of the chosen requests, and `more` gaps in ns, at the ranks that any tool looks at.

        Exact for any number: the reads of a long run lie on disk, and are gone through in pieces.
        """
        key = np.packbits(of).tobytes() + (b"" if more is None else more.tobytes())
        if key not in self._known:
            self._known[key] = self._ranked(of, more)
        return self._known[key]

    def _ranked(self, of: np.ndarray, more: np.ndarray | None) -> RankedGaps:
        chosen = np.flatnonzero(of).tolist()

        def chunks() -> Iterator[np.ndarray]:
            for start in range(0, len(chosen), _AT_ONCE):
                yield np.concatenate([gaps_ns(self.reads[i]) for i in chosen[start : start + _AT_ONCE]])
            if more is not None:
                yield more

        source = held_if_few(chunks)
        whole = extent(source)
        return RankedGaps(whole, at_ranks(source, wanted_ranks(whole.count), whole) if whole.count else {})


def collect(records: Iterable[RequestRecord], *, open_loop: bool, excluded: int = 0) -> Columns:
    """The columns of the measured records; warm-up requests are left out, as every tool does."""
    rows: list[tuple[int, ...]] = []
    reads: list[Sequence[Read]] = []
    for record in records:
        if record.warmup:
            continue
        rows.append(_row(record))
        reads.append(record.reads)
    table = np.array(rows, dtype=np.int64).reshape(len(rows), 11)
    scheduled, sent, role, first, last, ended, output_tokens, in_first_read, *flags = table.T
    success, no_error, streamed = (column.astype(bool) for column in flags)
    return Columns(
        scheduled=scheduled,
        sent=sent,
        role=role,
        first=first,
        last=last,
        ended=ended,
        output_tokens=output_tokens,
        in_first_read=in_first_read,
        success=success,
        no_error=no_error,
        streamed=streamed,
        reads=reads,
        open_loop=open_loop,
        excluded=excluded,
    )


def _row(record: RequestRecord) -> tuple[int, ...]:
    stamps = record.stamps
    first, last = _stamp(stamps.get("first_ns")), _stamp(stamps.get("last_ns"))
    role = _stamp(record.detail.get("role_ns"))
    others = ("finished_ns", "aborted_ns", "failed_ns")
    end = max(last, *(_stamp(stamps.get(name)) for name in others))
    closed = _stamp(stamps.get("closed_ns"))
    in_first = record.reads[0][1] if len(record.reads) else None
    return (
        _stamp(stamps.get("scheduled_ns")),
        _stamp(stamps.get("sent_ns")),
        role if ABSENT in (role, first) or role < first else ABSENT,
        first,
        last,
        closed if closed != ABSENT else end,
        ABSENT if record.output_tokens is None else record.output_tokens,
        in_first or 1,
        record.outcome == "success",
        record.outcome in NO_ERROR and len(record.reads) > 0,
        record.streamed,
    )


def _stamp(value: object) -> int:
    return value if isinstance(value, int) else ABSENT
