"""The engine of the seat, as live requests use it: loaded once for all who wait, and looked at."""

import asyncio
import time
from typing import Any

from channels.db import database_sync_to_async

from inference.errors import InferenceError
from inference.targets.base import TargetInfo
from inference.targets.embedded import EngineTarget
from pocs.runs.models import Target
from pocs.runs.seat import EngineSeat
from pocs.serving import wire
from pocs.serving.errors import ApiError, unavailable

WATCH_EVERY_S = 2.0
#: a model that could not be loaded is not tried again for so long; its requests fail with the same reason
FAILED_FOR_S = 5.0


class Engines:
    """Belongs to the loop of one desk; may load only while the desk shares the seat."""

    def __init__(self, seat: EngineSeat) -> None:
        self._seat = seat
        self._loading: asyncio.Task[tuple[EngineTarget, TargetInfo]] | None = None
        self._loading_mark = ""
        self._failed: dict[str, tuple[float, ApiError]] = {}
        self.resources: dict[str, Any] | None = None  # as last looked at; None while a run is not disturbed

    @property
    def mark(self) -> str:
        """Mark of the engine that the seat has now; empty for none."""
        engine = self._seat.engine
        return wire.engine_mark(engine.serves.key) if engine is not None and engine.serves is not None else ""

    @property
    def loading(self) -> bool:
        return self._loading is not None and not self._loading.done()

    async def engine_for(self, target: Target) -> tuple[EngineTarget, TargetInfo]:
        """The opened engine; a request that leaves meanwhile ends its own waiting, not the load.

        Raises ApiError (503) with the reason when the model cannot be loaded.
        """
        mark = wire.mark_of(target)
        until, error = self._failed.get(mark, (0.0, None))
        if error is not None and time.monotonic() < until:
            raise error
        try:
            if self.mark == mark and not self.loading:
                engine = self._seat.engine_for(target)
                if engine.process_id is not None:
                    return engine, await engine.open()
            return await self._loaded(target, mark)
        except InferenceError as raised:
            found = unavailable(f"The model cannot be loaded: {raised}", code="model_unavailable")
            self._failed[mark] = (time.monotonic() + FAILED_FOR_S, found)
            raise found from raised

    async def _loaded(self, target: Target, mark: str) -> tuple[EngineTarget, TargetInfo]:
        """Wait for the load of this engine, after one of another that nobody waits for any more."""
        while self._loading is not None and not self._loading.done() and self._loading_mark != mark:
            await asyncio.wait({self._loading})
        if self._loading is None or self._loading.done():
            self._loading, self._loading_mark = asyncio.create_task(self._load(target)), mark
        return await asyncio.shield(self._loading)

    async def _load(self, target: Target) -> tuple[EngineTarget, TargetInfo]:
        engine = self._seat.engine_for(target)
        try:
            return engine, await engine.open()
        finally:
            await database_sync_to_async(self._seat.tell_switches)()

    async def settle(self) -> None:
        """Wait for a load that is under way."""
        if self._loading is not None:
            await asyncio.gather(self._loading, return_exceptions=True)

    # -- for the page -----------------------------------------------------------------------------------

    def loaded(self) -> dict[str, Any] | None:
        """What the seat has: its target, since when, and whether its process lives."""
        engine, since = self._seat.engine, self._seat.since
        if engine is None or engine.serves is None or since is None:
            return None
        return {
            "target_id": engine.serves.target_id,
            "since": since.isoformat(),
            "alive": engine.process_id is not None,
        }

    async def watch(self) -> None:
        """Look at the engine's resources from time to time; never while a run has it."""
        while True:
            engine = self._seat.engine
            if self._seat.wanted_by is not None or engine is None or engine.process_id is None:
                self.resources = None
            elif not self.loading:
                try:
                    self.resources = await engine.telemetry()
                except InferenceError:
                    self.resources = None
            await asyncio.sleep(WATCH_EVERY_S)
