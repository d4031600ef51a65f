"""Values at given ranks of any number of integers, exactly, and without holding or sorting all of them."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

Chunks = Callable[[], Iterable[np.ndarray]]

#: so many values are held and sorted at once
HELD = 1 << 23
_BINS = 1 << 16


def held_if_few(chunks: Chunks) -> Chunks:
    """The same values, read once and held where they are few enough; else as they came, to be read again."""
    parts: list[np.ndarray] = []
    count = 0
    for part in chunks():
        count += len(part)
        if count > HELD:
            return chunks
        parts.append(part)
    return lambda: parts


@dataclass(frozen=True)
class Extent:
    """How many values there are, their sum, and the least and greatest (0 where there is none)."""

    count: int
    total: int
    least: int
    greatest: int


def extent(chunks: Chunks) -> Extent:
    """One pass over the values, which are int64."""
    count = total = 0
    least: int | None = None
    greatest: int | None = None
    for chunk in chunks():
        if not len(chunk):
            continue
        count += len(chunk)
        total += int(chunk.sum())
        low, high = int(chunk.min()), int(chunk.max())
        least = low if least is None else min(least, low)
        greatest = high if greatest is None else max(greatest, high)
    return Extent(count, total, least or 0, greatest or 0)


def at_ranks(chunks: Chunks, ranks: Sequence[int], whole: Extent) -> dict[int, int]:
    """The values at these ranks (0 is the least) of the values in ascending order.

    Few values are sorted; many are counted in bins between their extremes, and only the bins that hold a
    wanted rank are looked into, by further passes. `chunks` is called once for each pass.
    """
    if whole.count <= HELD:
        ordered = np.sort(_joined(chunks()))
        return {rank: int(ordered[rank]) for rank in ranks}
    return _in_range(chunks, sorted(set(ranks)), whole.least, whole.greatest)


def _in_range(chunks: Chunks, ranks: Sequence[int], low: int, high: int) -> dict[int, int]:
    """The values at ranks counted among those from `low` to `high`."""
    width = (high - low) // _BINS + 1
    counts = np.zeros(_BINS, dtype=np.int64)
    for chunk in _inside(chunks(), low, high):
        counts += np.bincount((chunk - low) // width, minlength=_BINS)
    ends = np.cumsum(counts)
    found: dict[int, int] = {}
    by_bin: dict[int, list[int]] = {}
    for rank in ranks:
        by_bin.setdefault(int(np.searchsorted(ends, rank, side="right")), []).append(rank)
    for place, wanted in by_bin.items():
        first = int(ends[place] - counts[place])
        begin = low + place * width
        end = min(high, begin + width - 1)
        if width == 1:
            found |= dict.fromkeys(wanted, begin)
        elif counts[place] <= HELD:
            ordered = np.sort(_joined(_inside(chunks(), begin, end)))
            found |= {rank: int(ordered[rank - first]) for rank in wanted}
        else:
            inner = _in_range(chunks, [rank - first for rank in wanted], begin, end)
            found |= {rank: inner[rank - first] for rank in wanted}
    return found


def _inside(chunks: Iterable[np.ndarray], low: int, high: int) -> Iterator[np.ndarray]:
    for chunk in chunks:
        yield chunk[(chunk >= low) & (chunk <= high)]


def _joined(chunks: Iterable[np.ndarray]) -> np.ndarray:
    parts = [chunk for chunk in chunks if len(chunk)]
    return np.concatenate(parts) if parts else np.empty(0, dtype=np.int64)
