"""Intervals around what was counted and fitted: 95 % confidence, without further packages."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

Z_95 = 1.959964
#: two-sided 95 % quantiles of Student's t by degrees of freedom; above 30 the normal one is close enough
T_95 = (
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131,
    2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
)  # fmt: skip


def share_interval(count: int, n: int) -> tuple[float, float] | None:
    """Wilson's score interval of a share `count`/`n` (0–1); None where nothing was counted."""
    if n == 0:
        return None
    share, z2 = count / n, Z_95**2
    centre = (share + z2 / (2 * n)) / (1 + z2 / n)
    half = Z_95 / (1 + z2 / n) * math.sqrt(share * (1 - share) / n + z2 / (4 * n * n))
    return max(0.0, centre - half), min(1.0, centre + half)


@dataclass(frozen=True)
class Slope:
    """A straight line's slope with its 95 % interval; `low` and `high` are None below three points."""

    per_step: float
    low: float | None
    high: float | None

    @property
    def direction(self) -> str:
        """`rising`, `falling`, `steady` (the interval holds zero), or `unknown` where there is none."""
        if self.low is None or self.high is None:
            return "unknown"
        return "rising" if self.low > 0 else "falling" if self.high < 0 else "steady"


def slope(points: Sequence[tuple[float, float]]) -> Slope | None:
    """Least squares over (x, y); None below two points or where all x are the same."""
    n = len(points)
    if n < 2:
        return None
    mean_x, mean_y = math.fsum(x for x, _ in points) / n, math.fsum(y for _, y in points) / n
    spread = math.fsum((x - mean_x) ** 2 for x, _ in points)
    if spread == 0:
        return None
    found = math.fsum((x - mean_x) * (y - mean_y) for x, y in points) / spread
    if n < 3:
        return Slope(found, None, None)
    residual = math.fsum((y - mean_y - found * (x - mean_x)) ** 2 for x, y in points)
    half = _t_95(n - 2) * math.sqrt(residual / (n - 2) / spread)
    return Slope(found, found - half, found + half)


def _t_95(freedom: int) -> float:
    return T_95[freedom - 1] if freedom <= len(T_95) else Z_95
