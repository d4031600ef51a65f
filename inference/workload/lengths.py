"""Lengths of prompts and answers: fixed, or drawn from a stated distribution, the same for one seed.

A distribution is one word with its figures, all in tokens: `fixed:512`, `uniform:min=100,max=900`,
`normal:mean=512,sigma=128`, `lognormal:p50=400,p95=1800` or `lognormal:mean=512,sigma=300` (mean and
standard deviation of the lengths themselves). `min=` and `max=` cut off the tails of the last two.
`trace` takes the lengths of the workload file.
"""

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass

from inference.errors import InputError

_NORMAL_P95 = 1.6448536269514722  # standard deviations
_TRIES = 1000  # draws outside the cut before the cut itself is taken
_MOST = 10_000_000

_FIGURES = {
    "uniform": ({"min", "max"},),
    "normal": ({"mean", "sigma"},),
    "lognormal": ({"p50", "p95"}, {"mean", "sigma"}),
}
_FORMS = {
    "fixed": "fixed:512",
    "uniform": "uniform:min=100,max=900",
    "normal": "normal:mean=512,sigma=128",
    "lognormal": "lognormal:p50=400,p95=1800 or lognormal:mean=512,sigma=300",
    "trace": "trace",
}


@dataclass(frozen=True)
class Lengths:
    """A parsed distribution; `location` and `spread` are those of the lengths, or of their logarithm."""

    kind: str
    location: float = 0.0
    spread: float = 0.0
    lowest: int = 1
    highest: int = _MOST


def parse_lengths(text: str) -> Lengths:
    """The distribution in a word such as `normal:mean=512,sigma=128`; InputError that says the right form."""
    kind, _, figures = text.strip().partition(":")
    try:
        if kind == "trace" and not figures:
            return Lengths(kind)
        if kind == "fixed":
            return Lengths(kind, location=_tokens(figures))
        if kind in _FIGURES:
            return _distribution(kind, figures)
    except ValueError as fault:
        raise InputError(f"lengths must look like {_FORMS[kind]}, not {text!r}: {fault}") from fault
    raise InputError(f"lengths must look like {', '.join(_FORMS.values())}, not {text!r}")


def _distribution(kind: str, text: str) -> Lengths:
    given: dict[str, float] = {}
    for part in text.split(","):
        name, _, value = part.strip().partition("=")
        if name not in ("min", "max", "mean", "sigma", "p50", "p95") or name in given:
            raise ValueError(f"{part.strip()!r} is no figure of it, or there twice")
        given[name] = _tokens(value)
    wanted = next((names for names in _FIGURES[kind] if names <= set(given)), None)
    if wanted is None or set(given) - wanted - {"min", "max"}:
        raise ValueError("other figures are needed")
    lowest, highest = int(given.get("min", 1)), int(given.get("max", _MOST))
    if lowest > highest:
        raise ValueError(f"min {lowest} is above max {highest}")
    if kind == "uniform":
        return Lengths(kind, lowest=lowest, highest=highest)
    if kind == "normal":
        location, spread = given["mean"], given["sigma"]
        middle = location
    elif "p50" in wanted:
        if given["p95"] < given["p50"]:
            raise ValueError("p95 is below p50")
        location, middle = math.log(given["p50"]), given["p50"]
        spread = (math.log(given["p95"]) - location) / _NORMAL_P95
    else:
        variance = math.log1p((given["sigma"] / given["mean"]) ** 2)
        location, spread = math.log(given["mean"]) - variance / 2, math.sqrt(variance)
        middle = given["mean"]
    if not lowest <= middle <= highest:
        raise ValueError(f"its middle {middle:g} lies outside {lowest} to {highest}")
    return Lengths(kind, location, spread, lowest, highest)


def draw_lengths(n: int, lengths: Lengths, *, seed: int = 0, values: Sequence[int] = ()) -> list[int]:
    """`n` lengths in tokens; `values` are those of the workload file, taken in its order, for `trace`."""
    if lengths.kind == "trace":
        if not values:
            raise InputError("lengths from a trace need a workload file that states lengths")
        return [values[i % len(values)] for i in range(n)]
    if lengths.kind == "fixed":
        return [int(lengths.location)] * n
    source = random.Random(f"{seed}-lengths")  # noqa: S311 reproducible lengths, not a secret
    if lengths.kind == "uniform":
        return [source.randint(lengths.lowest, lengths.highest) for _ in range(n)]
    return [_drawn(lengths, source) for _ in range(n)]


def _drawn(lengths: Lengths, source: random.Random) -> int:
    """One length inside the cut: drawn again until it is, so that no heap stands at the ends."""
    value = 0
    for _ in range(_TRIES):
        drawn = source.gauss(lengths.location, lengths.spread)
        value = round(math.exp(min(drawn, 30.0)) if lengths.kind == "lognormal" else drawn)
        if lengths.lowest <= value <= lengths.highest:
            return value
    return min(lengths.highest, max(lengths.lowest, value))


def _tokens(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 < value <= _MOST:
        raise ValueError(f"{text!r} must be a number above 0")
    return value
