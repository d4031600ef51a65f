"""Mean and percentiles as different tools take them; values that were not observed (NaN) do not count."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from inference.recording.ranks import Extent
from inference.stats import PERCENTILES

_NS_PER_MS = 1e6


def wanted_ranks(n: int) -> list[int]:
    """The ranks that any of the methods here looks at among n values."""
    positions = [(n - 1) * p / 100 for p in PERCENTILES]
    around = {rank for at in positions for rank in (math.floor(at), math.ceil(at))}
    return sorted(around | {_nearest_rank(n, p) for p in PERCENTILES})


@dataclass(frozen=True)
class RankedGaps:
    """Pooled gaps in ns: how many, and their values at the ranks of `wanted_ranks`."""

    whole: Extent
    values: dict[int, int]

    def linear(self) -> dict[str, Any]:
        """Figures in ms, interpolated between ranks."""

        def at(n: int, p: int) -> float:
            place = (n - 1) * p / 100
            low, high = self.values[math.floor(place)], self.values[math.ceil(place)]
            return (low + (high - low) * (place - math.floor(place))) / _NS_PER_MS

        return self._figures(at)

    def nearest(self) -> dict[str, Any]:
        """Figures in ms at the nearest ranks."""
        return self._figures(lambda n, p: self.values[_nearest_rank(n, p)] / _NS_PER_MS)

    def _figures(self, at: Any) -> dict[str, Any]:
        n = self.whole.count
        out: dict[str, Any] = {"n": n, "mean": self.whole.total / _NS_PER_MS / n if n else None}
        for p in PERCENTILES:
            out[f"p{p}"] = at(n, p) if n else None
        return out | {"max": self.whole.greatest / _NS_PER_MS if n else None}


def _nearest_rank(n: int, p: int) -> int:
    return max(0, math.ceil(n * p / 100) - 1)


def linear(values: np.ndarray) -> dict[str, Any]:
    """Interpolated between ranks: numpy's default, ours, vLLM's bench client, aiperf."""
    return _figures(values, lambda ordered, p: float(np.percentile(ordered, p)))


def nearest(values: np.ndarray) -> dict[str, Any]:
    """The value at rank ⌈p·n/100⌉: evalscope."""
    return _figures(values, lambda ordered, p: float(ordered[_nearest_rank(len(ordered), p)]))


def weighted(values: np.ndarray, weights: np.ndarray | None = None) -> dict[str, Any]:
    """The first value at which the share of the weights reaches p: guidellm. `n` is the weights' sum."""
    weights = np.ones(len(values)) if weights is None else weights.astype(float)
    seen = ~np.isnan(values)
    values, weights = values[seen], weights[seen]
    order = np.argsort(values, kind="stable")
    ordered, share = values[order], weights[order]
    total = float(share.sum())
    if not total:
        return _figures(ordered[:0], lambda _ordered, _p: 0.0)
    reached = np.cumsum(share) / total
    out: dict[str, Any] = {"n": round(total), "mean": float((ordered * share).sum() / total)}
    for p in PERCENTILES:
        place = min(int(np.searchsorted(reached, p / 100 - 1e-12, side="left")), len(ordered) - 1)
        out[f"p{p}"] = float(ordered[place])
    return out | {"max": float(ordered[-1])}


def _figures(values: np.ndarray, at: Any) -> dict[str, Any]:
    ordered = np.sort(values[~np.isnan(values)])
    n = len(ordered)
    out: dict[str, Any] = {"n": n, "mean": float(ordered.mean()) if n else None}
    for p in PERCENTILES:
        out[f"p{p}"] = at(ordered, p) if n else None
    return out | {"max": float(ordered[-1]) if n else None}
