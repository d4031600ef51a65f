"""The difference between two sides with its 95 % interval: whole runs resampled, then requests within them.

A percentile of n resampled values is the k-th of them in order, whose rank follows a beta distribution:
drawing that rank gives the bootstrap distribution at any n without resampling the values themselves.
"""

from collections.abc import Callable, Sequence

import numpy as np

from inference.comparison.data import Values

DRAWS = 4_000
Draw = Callable[[np.random.Generator, int], Values]


def percentile_draw(ordered: Values, share: float) -> Draw:
    """Draws of the percentile `share` (0–1) of the ascending values of one run."""
    n = len(ordered)
    rank = share * (n - 1) + 1

    def draw(random: np.random.Generator, size: int) -> Values:
        places = random.beta(rank, n + 1 - rank, size)
        found: Values = np.quantile(ordered, places)
        return found

    return draw


def share_draw(share: float, n: int) -> Draw:
    """Draws of a share of n requests."""

    def draw(random: np.random.Generator, size: int) -> Values:
        found: Values = random.binomial(n, share, size) / n
        return found

    return draw


def fixed_draw(value: float) -> Draw:
    """A figure of the whole run: it varies between runs only."""
    return lambda random, size: np.full(size, value)


def difference_interval(
    baseline: Sequence[Draw], candidate: Sequence[Draw], *, seed: int
) -> tuple[float, float]:
    """95 % interval of candidate − baseline, each side the mean over its runs; the same for equal seeds."""
    random = np.random.default_rng(seed)
    differences = _side(candidate, random) - _side(baseline, random)
    low, high = np.percentile(differences, (2.5, 97.5))
    return float(low), float(high)


def _side(runs: Sequence[Draw], random: np.random.Generator) -> Values:
    total = np.zeros(DRAWS)
    for _slot in runs:
        chosen = random.integers(0, len(runs), DRAWS)
        for number, draw in enumerate(runs):
            here = chosen == number
            total[here] += draw(random, int(here.sum()))
    return total / len(runs)
