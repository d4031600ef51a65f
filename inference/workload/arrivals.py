"""When requests arrive: by the file, or by a stated shape of load, the same for one seed.

A shape is one word with its figures, so that it can be typed, stored and shown as it is:

- `constant`, `poisson`, `gamma:SHAPE` – gaps of mean 1/rate, with the rate given beside the shape
- `burst:SIZE/PERIOD_S` – SIZE requests at once every PERIOD_S seconds
- `ramp:FROM-TO/SECONDS` – the rate rises (or falls) evenly, then stays at TO
- `steps:RATExSECONDS,RATExSECONDS,…` – one rate after the other; the last one stays (rate 0: a pause)
- `trace` or `trace:SPEED` – the requests' own `arrival_s`, SPEED times as fast

A ramp and steps are spaced evenly; with `,poisson` at the end they are random around the same rate.
"""

import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count

from inference.errors import InputError
from inference.requests import GenerationRequest

#: shapes that need a rate beside them
RATED = ("constant", "poisson", "gamma")
#: shapes that say themselves how fast requests come
SELF_TIMED = ("burst", "ramp", "steps", "trace")

_FORMS = {
    "constant": "constant",
    "poisson": "poisson",
    "gamma": "gamma:SHAPE",
    "burst": "burst:SIZE/PERIOD_S",
    "ramp": "ramp:FROM-TO/SECONDS[,poisson]",
    "steps": "steps:RATExSECONDS,…[,poisson]",
    "trace": "trace[:SPEED]",
}
#: the forms of shapes that need no rate, for help texts
SELF_TIMED_FORMS = ", ".join(_FORMS[kind] for kind in SELF_TIMED)


@dataclass(frozen=True)
class Stretch:
    """A part of a load: the rate goes evenly from one value to the other, in requests a second."""

    start_rate: float
    end_rate: float
    seconds: float  # infinite for the last one

    @property
    def requests(self) -> float:
        if math.isinf(self.seconds):
            return math.inf if self.end_rate else 0.0
        return (self.start_rate + self.end_rate) / 2 * self.seconds

    def after_s(self, requests: float) -> float:
        """Seconds after its start at which so many requests have come: the inverse of the rate's integral."""
        slope = 0.0 if math.isinf(self.seconds) else (self.end_rate - self.start_rate) / self.seconds
        if slope == 0:
            return requests / self.start_rate if requests else 0.0
        root = math.sqrt(max(0.0, self.start_rate**2 + 2 * slope * requests))
        return 2 * requests / (self.start_rate + root) if requests else 0.0


@dataclass(frozen=True)
class Shape:
    """A parsed shape; `kind` says which of the other fields it has."""

    kind: str
    gamma_shape: float | None = None  # of the gaps: None for even ones, 1 for Poisson arrivals
    burst_size: int = 0
    period_s: float = 0.0
    stretches: tuple[Stretch, ...] = ()
    speed: float = 1.0

    @property
    def self_timed(self) -> bool:
        return self.kind in SELF_TIMED


def parse_shape(arrival: str) -> Shape:
    """The shape in a word like `ramp:1-20/60`; InputError that says what the word must look like."""
    kind, _, text = arrival.strip().partition(":")
    try:
        if kind in ("constant", "poisson") and not text:
            return Shape(kind, None if kind == "constant" else 1.0)
        if kind == "gamma":
            return Shape(kind, _positive(text))
        if kind == "burst":
            size, _, period = text.partition("/")
            return Shape(kind, burst_size=_whole(size), period_s=_positive(period))
        if kind == "ramp":
            return _ramp(text)
        if kind == "steps":
            return _steps(text)
        if kind == "trace":
            return Shape(kind, speed=_positive(text) if text else 1.0)
    except ValueError as fault:
        raise InputError(f"arrival must be {_FORMS[kind]}, not {arrival!r}: {fault}") from fault
    raise InputError(f"arrival must be {', '.join(_FORMS.values())}, not {arrival!r}")


def is_self_timed(arrival: str) -> bool:
    """Whether the shape needs no rate beside it."""
    return arrival.partition(":")[0] in SELF_TIMED


def gap_shape(arrival: str) -> float | None:
    """The gamma shape of the gaps: None for even gaps, 1 for Poisson arrivals; InputError for no shape."""
    return parse_shape(arrival).gamma_shape


def arrival_offsets_s(
    requests: Sequence[GenerationRequest], *, rate: float | None, arrival: str = "constant", seed: int = 0
) -> list[float]:
    """Seconds after the start at which each request is due, in the order of `requests`.

    Shapes that need a rate take `rate` (requests a second); without it, and for `trace`, the requests'
    own `arrival_s` counts, 0 where a request has none.
    """
    shape = parse_shape(arrival)
    if shape.kind == "trace" or (rate is None and not shape.self_timed):
        return [(request.arrival_s or 0.0) / shape.speed for request in requests]
    due = offsets(shape, rate=rate, seed=seed)
    return [next(due) for _ in requests]


def offsets(shape: Shape, *, rate: float | None = None, seed: int = 0) -> Iterator[float]:
    """Seconds after the start of one request after the other, without end, never falling.

    Raises InputError where a load ends before it has sent all (steps that end in a rate of 0).
    """
    if shape.kind == "burst":
        for number in count():
            yield (number // shape.burst_size) * shape.period_s
    stretches = shape.stretches or (Stretch(rate or 1.0, rate or 1.0, math.inf),)
    started_s, passed = 0.0, 0.0  # where the current stretch starts: seconds, and requests until then
    part = 0
    for due in _due(shape.gamma_shape, seed):
        while due >= passed + stretches[part].requests:
            if part == len(stretches) - 1:
                raise InputError(f"the steps end at a rate of 0 after {math.ceil(passed)} requests")
            passed += stretches[part].requests
            started_s += stretches[part].seconds
            part += 1
        yield started_s + stretches[part].after_s(due - passed)


def _due(gamma_shape: float | None, seed: int) -> Iterator[float]:
    """Arrivals of mean rate 1; a stretch of load then bends the axis of time (Cinlar's inversion)."""
    if gamma_shape is None:
        yield from map(float, count())
        return
    generator = random.Random(seed)  # noqa: S311 reproducible arrivals, not a secret
    due = 0.0
    while True:
        yield due
        due += generator.gammavariate(gamma_shape, 1 / gamma_shape)


def _ramp(text: str) -> Shape:
    text, spacing = _spacing(text)
    rates, _, seconds = text.partition("/")
    first, _, last = rates.partition("-")
    start, end, lasts = _number(first), _positive(last), _positive(seconds)
    return Shape("ramp", spacing, stretches=(Stretch(start, end, lasts), Stretch(end, end, math.inf)))


def _steps(text: str) -> Shape:
    text, spacing = _spacing(text)
    stretches = []
    for part in text.split(","):
        rate, _, seconds = part.partition("x")
        stretches.append(Stretch(_number(rate), _number(rate), _positive(seconds)))
    stretches[-1] = Stretch(stretches[-1].start_rate, stretches[-1].end_rate, math.inf)
    return Shape("steps", spacing, stretches=tuple(stretches))


def _spacing(text: str) -> tuple[str, float | None]:
    head, comma, last = text.rpartition(",")
    if comma and last in ("poisson", "even"):
        return head, 1.0 if last == "poisson" else None
    return text, None


def _number(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value < math.inf:
        raise ValueError(f"{text!r} must be a number of at least 0")
    return value


def _positive(text: str) -> float:
    value = _number(text)
    if not value:
        raise ValueError(f"{text!r} must be a number above 0")
    return value


def _whole(text: str) -> int:
    if not text.strip().isdecimal() or not int(text):
        raise ValueError(f"{text!r} must be a whole number above 0")
    return int(text)
