"""How long the stages of a load take (M22): each is timed where it happens."""

import contextlib
import time
from collections.abc import Iterator


@contextlib.contextmanager
def timed(stages_ms: dict[str, float], name: str) -> Iterator[None]:
    """Add the milliseconds spent inside to `stages_ms[name]`, also where the stage fails."""
    begun_ns = time.monotonic_ns()
    try:
        yield
    finally:
        stages_ms[name] = stages_ms.get(name, 0.0) + (time.monotonic_ns() - begun_ns) / 1e6
