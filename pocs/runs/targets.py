"""From a stored target to one that can be measured; the engine stays loaded between runs."""

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime

from django.utils import timezone

from inference.targets.base import Target as Measurable
from inference.targets.embedded import EngineTarget
from inference.targets.openai import OpenAITarget
from pocs.runs.choices import TargetKind
from pocs.runs.credentials import unseal
from pocs.runs.models import Target


@dataclass(frozen=True)
class Holder:
    """Who has the engine, or waits for it: a measured run, by its number in the database."""

    run_id: int | None = None
    since: datetime = field(default_factory=timezone.now)


class EngineSeat:
    """The one engine of this process: loaded once, kept while the same model and settings are asked for.

    Either one measured run has it for itself (`hold`), or live requests share it (`share`). A run that
    comes while it is shared waits; whoever shares it listens, and lets go soon after `wanted_by` says so.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()  # guards the next three
        self._holder: Holder | None = None
        self._shared = False
        self._waiting: deque[Holder] = deque()
        self._listeners: list[Callable[[], None]] = []
        self._engine: EngineTarget | None = None
        self._key: tuple[object, ...] = ()

    # -- runs ---------------------------------------------------------------------------------------

    @contextmanager
    def hold(self, target: Target, run_id: int | None = None) -> Iterator[EngineTarget]:
        """The engine for `target`, not opened yet or open already, for one run alone."""
        with self._alone(Holder(run_id)):
            yield self.engine_for(target)

    @contextmanager
    def _alone(self, me: Holder) -> Iterator[None]:
        with self._changed:
            self._waiting.append(me)
        self._tell()
        with self._changed:
            self._changed.wait_for(
                lambda: self._waiting[0] is me and self._holder is None and not self._shared
            )
            self._holder = self._waiting.popleft()
        self._tell()
        try:
            yield
        finally:
            with self._changed:
                self._holder = None
                self._changed.notify_all()
            self._tell()

    # -- live requests --------------------------------------------------------------------------------

    @property
    def wanted_by(self) -> Holder | None:
        """The run that has the engine or waits for it; None when live requests may use it."""
        with self._changed:
            return self._holder or (self._waiting[0] if self._waiting else None)

    def share(self) -> bool:
        """Take the engine for live requests; False while a run has it or waits for it."""
        with self._changed:
            self._shared = self._shared or (self._holder is None and not self._waiting)
            return self._shared and not self._waiting

    def unshare(self) -> None:
        """The last live request has ended."""
        with self._changed:
            self._shared = False
            self._changed.notify_all()

    def listen(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Call `listener`, from any thread, when `wanted_by` may have changed; returns how to end that."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    # -- the engine -----------------------------------------------------------------------------------

    @staticmethod
    def key_of(target: Target) -> tuple[object, ...]:
        """Targets with the same key are served by the same engine process."""
        return (target.location, *sorted(target.engine_settings.items()))

    @property
    def key(self) -> tuple[object, ...]:
        """Key of the engine as it is now; empty when there is none."""
        return self._key

    def engine_for(self, target: Target) -> EngineTarget:
        """The engine of this target, for who holds or shares the seat; a different one is closed first."""
        key = self.key_of(target)
        if self._engine is None or key != self._key:
            self._close()
            self._engine, self._key = EngineTarget(target.location, **target.engine_settings), key
        return self._engine

    def close(self) -> None:
        """End the engine process, once nobody holds it."""
        with self._alone(Holder()):
            self._close()

    def _close(self) -> None:
        engine, self._engine, self._key = self._engine, None, ()
        if engine is not None:
            asyncio.run(engine.close())

    def _tell(self) -> None:
        for listener in tuple(self._listeners):
            listener()


seat = EngineSeat()


@contextmanager
def measurable(target: Target, *, run_id: int | None = None) -> Iterator[Measurable]:
    """What `inference` measures for a stored target; the caller opens it."""
    if target.kind == TargetKind.ENGINE:
        with seat.hold(target, run_id) as engine:
            yield engine
    else:
        yield endpoint_target(target)


def endpoint_target(target: Target) -> OpenAITarget:
    """The endpoint with its credential in clear, for as long as the object lives."""
    return OpenAITarget(target.location, model=target.model, api_key=unseal(target.credential))
