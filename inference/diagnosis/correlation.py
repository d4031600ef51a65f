"""Whether one figure of the requests grows with another: rank correlation, and only where both vary."""

import math
from collections.abc import Iterable, Sequence

import numpy as np

#: fewer pairs than this say nothing
LEAST_PAIRS = 12
#: values that differ by less than this share of their middle do not vary
LEAST_SPREAD = 0.1
#: from here on one is said to grow with the other
GROWS_FROM = 0.5
#: more requests than this add nothing but time
MOST_PAIRS = 20_000


def observed_pairs(pairs: Iterable[tuple[float | None, float | None]]) -> list[tuple[float, float]]:
    """The pairs of which both are known, thinned evenly when there are very many."""
    known = [(float(x), float(y)) for x, y in pairs if x is not None and y is not None]
    step = -(-len(known) // MOST_PAIRS) if known else 1
    return known[::step]


def rank_correlation(pairs: Sequence[tuple[float, float]]) -> float | None:
    """Spearman's ρ (−1 … 1); None for too few pairs or where the first figure does not vary.

    Where only the second stands still, nothing grows with the first: 0.
    """
    if len(pairs) < LEAST_PAIRS:
        return None
    x, y = np.asarray(pairs, dtype=float).T
    if not varies(x):
        return None
    a, b = _ranks(x), _ranks(y)
    spread = math.sqrt(float(a.var() * b.var()))
    return float(((a - a.mean()) * (b - b.mean())).mean() / spread) if spread else 0.0


def varies(values: "np.ndarray[tuple[int, ...], np.dtype[np.float64]]") -> bool:
    """Whether the middle nine tenths of the values differ by more than a tenth of their median."""
    low, middle, high = np.percentile(values, (5, 50, 95))
    return bool(high - low > LEAST_SPREAD * max(abs(middle), 1e-9))


def _ranks(
    values: "np.ndarray[tuple[int, ...], np.dtype[np.float64]]",
) -> "np.ndarray[tuple[int, ...], np.dtype[np.float64]]":
    """Ranks from 0, equal values with their mean rank."""
    _unique, place, count = np.unique(values, return_inverse=True, return_counts=True)
    ends = np.cumsum(count)
    ranks: np.ndarray[tuple[int, ...], np.dtype[np.float64]] = ((ends - count) + (ends - 1))[place] / 2.0
    return ranks
