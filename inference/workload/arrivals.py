"""When requests arrive: at once, by the file, or spaced by a rate with a stated distribution."""

import random
from collections.abc import Sequence

from inference.errors import InputError
from inference.requests import GenerationRequest


def gap_shape(arrival: str) -> float | None:
    """The gamma shape of the gaps: None for constant gaps, 1 for Poisson arrivals.

    Raises InputError for a name that is none of `constant`, `poisson` and `gamma:SHAPE`.
    """
    if arrival == "constant":
        return None
    if arrival == "poisson":
        return 1.0
    kind, _, text = arrival.partition(":")
    try:
        shape = float(text)
    except ValueError:
        shape = 0.0
    if kind != "gamma" or not 0 < shape < float("inf"):
        raise InputError(
            f"arrival must be constant, poisson or gamma:SHAPE with SHAPE above 0, not {arrival!r}"
        )
    return shape


def arrival_offsets_s(
    requests: Sequence[GenerationRequest], *, rate: float | None, arrival: str = "constant", seed: int = 0
) -> list[float]:
    """Seconds after the start at which each request is due, in the order of `requests`.

    With `rate` (requests a second) the gaps have mean 1/rate: constant, or gamma distributed with the
    shape of `arrival` (burstier below 1, smoother above). Without it, the requests' own `arrival_s`,
    0 where a request has none.
    """
    if rate is None:
        return [request.arrival_s or 0.0 for request in requests]
    shape = gap_shape(arrival)
    if shape is None:
        return [index / rate for index in range(len(requests))]
    generator = random.Random(seed)  # noqa: S311 reproducible arrivals, not a secret
    offsets: list[float] = []
    at_s = 0.0
    for _ in requests:
        offsets.append(at_s)
        at_s += generator.gammavariate(shape, 1 / (shape * rate))
    return offsets
