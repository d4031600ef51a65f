"""The one engine of a worker process: who has it, and which model it has loaded."""

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from datetime import datetime

from django.utils import timezone

from inference.errors import TargetUnavailable
from inference.targets.base import TargetInfo
from inference.targets.embedded import EngineTarget
from inference.targets.switch_report import SwitchFailed, SwitchReport
from pocs.runs.models import Target


@dataclass(frozen=True)
class Served:
    """What the engine was last opened for; `key` tells whether another target needs the same engine."""

    target_id: int
    key: tuple[object, ...]


def key_of(target: Target) -> tuple[object, ...]:
    """Targets with the same key are served by the same engine process."""
    return (target.location, *sorted(target.engine_settings.items()))


@dataclass(frozen=True)
class Holder:
    """Who has the engine, or waits for it: a measured run, by its number in the database."""

    run_id: int | None = None
    since: datetime = field(default_factory=timezone.now)


@dataclass(frozen=True)
class Switched:
    """One change of the loaded model: from which target to which, for which run (None: live requests)."""

    source_id: int | None
    target_id: int
    run_id: int | None
    report: SwitchReport


class SeatedEngine(EngineTarget):
    """The engine of the seat; `open` first switches it to the target that it is wanted for."""

    def __init__(self, target: Target, report: Callable[[Served, SwitchReport], None]) -> None:
        super().__init__(target.location, **target.engine_settings)
        self._report = report
        self._wanted = self.options
        self._wanted_for = Served(target.pk, key_of(target))
        self.serves: Served | None = None

    def want(self, target: Target) -> None:
        """Raises InputError for settings out of range."""
        self._wanted = EngineTarget(target.location, **target.engine_settings).options
        self._wanted_for = Served(target.pk, key_of(target))

    async def open(self) -> TargetInfo:
        """Raises TargetUnavailable when the wanted model does not serve; the one before still may."""
        if self.serves is None or self._wanted != self.options:
            settings = asdict(self._wanted)
            path = settings.pop("path")
            try:
                report = await self.switch(path, **settings)
            except SwitchFailed as error:
                self._report(self._wanted_for, error.report)
                if error.report.outcome == "lost":
                    self.serves = None
                # without the error's own words: they name the model before, perhaps of another project
                raise TargetUnavailable(error.report.reason or "The model does not serve.") from error
            self._report(self._wanted_for, report)
        self.serves = self._wanted_for
        return await super().open()


class EngineSeat:
    """Either one measured run has the engine for itself (`hold`), or live requests share it (`share`).

    A run that comes while it is shared waits; whoever shares it listens, and lets go soon after
    `wanted_by` says so. The model stays loaded while the same model and settings are asked for.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()  # guards the next three
        self._holder: Holder | None = None
        self._shared = False
        self._waiting: deque[Holder] = deque()
        self._listeners: list[Callable[[], None]] = []
        self._engine: SeatedEngine | None = None
        self._switches: deque[Switched] = deque()
        self._recorders: list[Callable[[Switched], None]] = []
        self.since: datetime | None = None  # the loaded model was loaded

    # -- runs ---------------------------------------------------------------------------------------

    @contextmanager
    def hold(self, target: Target, run_id: int | None = None) -> Iterator[SeatedEngine]:
        """The engine for `target`, not opened yet or open already, for one run alone."""
        with self._alone(Holder(run_id)):
            try:
                yield self.engine_for(target)
            finally:
                self.tell_switches()

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

    @property
    def engine(self) -> SeatedEngine | None:
        """The engine as it is now, for looking at it only; a process may have ended behind it."""
        return self._engine

    def engine_for(self, target: Target) -> SeatedEngine:
        """The engine, for whoever holds or shares the seat; its `open` switches to the target's model.

        Raises InputError for settings that are out of range.
        """
        if self._engine is None:
            self._engine = SeatedEngine(target, self._note_switch)
        self._engine.want(target)
        return self._engine

    def _note_switch(self, wanted_for: Served, report: SwitchReport) -> None:
        served = self._engine.serves if self._engine is not None else None
        source_id = served.target_id if served is not None else None
        run_id = self._holder.run_id if self._holder is not None else None
        self._switches.append(Switched(source_id, wanted_for.target_id, run_id, report))
        if report.outcome != "kept":
            self.since = timezone.now()

    def record_switches(self, recorder: Callable[[Switched], None]) -> None:
        """Let `recorder` write down every switch; it is called by threads that may use the database."""
        self._recorders.append(recorder)

    def tell_switches(self) -> None:
        """Have the switches since the last call recorded; called where the database may be used."""
        while self._switches:
            switched = self._switches.popleft()
            for recorder in self._recorders:
                recorder(switched)

    def close(self) -> None:
        """End the engine process, once nobody holds it."""
        with self._alone(Holder()):
            engine, self._engine, self.since = self._engine, None, None
            if engine is not None:
                asyncio.run(engine.close())

    def _tell(self) -> None:
        for listener in tuple(self._listeners):
            listener()


seat = EngineSeat()
