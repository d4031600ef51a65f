"""From a stored target to one that can be measured; the engine stays loaded between runs."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from inference.targets.base import Target as Measurable
from inference.targets.embedded import EngineTarget
from inference.targets.openai import OpenAITarget
from pocs.runs.choices import TargetKind
from pocs.runs.credentials import unseal
from pocs.runs.models import Target


class EngineSeat:
    """The one engine of this process: loaded once, kept while runs ask for the same model and settings.

    One holder at a time: a measured run has the engine for itself.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._engine: EngineTarget | None = None
        self._key: tuple[object, ...] = ()

    @contextmanager
    def hold(self, target: Target) -> Iterator[EngineTarget]:
        """The engine for `target`, not opened yet or open already; a different one is closed first."""
        key = (target.location, *sorted(target.engine_settings.items()))
        with self._lock:
            if self._engine is None or key != self._key:
                self._close()
                self._engine, self._key = EngineTarget(target.location, **target.engine_settings), key
            yield self._engine

    def close(self) -> None:
        """End the engine process, once nobody holds it."""
        with self._lock:
            self._close()

    def _close(self) -> None:
        engine, self._engine = self._engine, None
        if engine is not None:
            asyncio.run(engine.close())


seat = EngineSeat()


@contextmanager
def measurable(target: Target) -> Iterator[Measurable]:
    """What `inference` measures for a stored target; the caller opens it."""
    if target.kind == TargetKind.ENGINE:
        with seat.hold(target) as engine:
            yield engine
    else:
        yield endpoint_target(target)


def endpoint_target(target: Target) -> OpenAITarget:
    """The endpoint with its credential in clear, for as long as the object lives."""
    return OpenAITarget(target.location, model=target.model, api_key=unseal(target.credential))
