"""The embedded engine as a target: requests go to the engine process, its events become the trace."""

import asyncio
import contextlib
import threading
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Callable
from concurrent.futures import Future
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from inference.engine.crashes import Crashes
from inference.engine.events import Event
from inference.engine.host import MUTE_LIMIT_S, EngineHost, Retired
from inference.engine.options import EngineOptions
from inference.errors import InputError, TargetUnavailable
from inference.records import Trace
from inference.requests import GenerationRequest
from inference.targets.base import TargetInfo
from inference.targets.follower import Follower, fail, refuse, wire
from inference.targets.gate import GateFull
from inference.targets.loaded import Loaded, new_host, start
from inference.targets.switch_report import SwitchReport
from inference.targets.switching import Asked, Place, Switch

ABORT_WAIT_S = 10.0  # an abort takes at most one step; a mute engine does not hold the caller longer
TURN_EVERY_S = 0.02
SETTINGS = frozenset(field.name for field in fields(EngineOptions)) - {"path"}


class EngineTarget:
    """A model folder (safetensors) or `.gguf` file, served by the embedded engine in its own process.

    One target serves any number of runs, one after another or at once, from any event loop. `open` on an
    open target is free; after the engine process has died it starts a new one, unless it has died at each
    of its last starts. Settings are those of `EngineOptions`; raises InputError for what is unknown or out
    of range, before anything is started. `mute_limit_s`: a process that gives no sign of life for so
    long is ended.
    """

    def __init__(self, path: str | Path, *, mute_limit_s: float = MUTE_LIMIT_S, **settings: Any) -> None:
        self.options = EngineOptions(path=_path(path), **_known(settings))
        self._mute_limit_s = mute_limit_s
        self._place = Place()
        self._turn = threading.Lock()  # one opens, switches or closes at a time
        self._switch: Switch | None = None  # the one that is being made
        self.last_switch: SwitchReport | None = None
        self._crashes: defaultdict[EngineOptions, Crashes] = defaultdict(Crashes)

    # -- life ---------------------------------------------------------------------------------------

    async def open(self) -> TargetInfo:
        """Load the model, or say at once what the loaded one is; raises TargetUnavailable."""
        if (loaded := self._serving()) is not None:
            return loaded.info
        async with self._alone():
            if (loaded := self._serving()) is None:
                self._forget_dead()
                if (refusal := self._refusal(self.options)) is not None:
                    raise TargetUnavailable(refusal)
                self._place.loaded = loaded = await self._start()
            return loaded.info

    async def switch(
        self, path: str | Path, *, how: Asked = "auto", drain_limit_s: float | None = None, **settings: Any
    ) -> SwitchReport:
        """Put another model in the place of this one; the settings not named stay as they are.

        `beside` loads it while the old one serves, `unload_first` after the old one has ended its open
        requests (at most `drain_limit_s`, else a minute) and is gone; arriving requests wait meanwhile.
        `auto` chooses by memory. Raises SwitchFailed with the report when the new model does not serve: the
        old one does, unless the report says `lost`. When the calling task is cancelled, the new model is
        given up, and the old one is in its place soon afterwards; `last_switch` tells the end of it.
        """
        new = replace(self.options, path=_path(path), **_known(settings))
        if how not in ("auto", "beside", "unload_first"):
            raise InputError(f"how must be auto, beside or unload_first, not {how!r}.")
        await self._take_turn()
        switch = Switch(
            self._place,
            self.options,
            new,
            how=how,
            drain_limit_s=drain_limit_s,
            mute_limit_s=self._mute_limit_s,
            refusal=self._refusal(new),
        )
        done: Future[SwitchReport] = Future()
        threading.Thread(target=self._make, args=(switch, new, done), name="switch", daemon=True).start()
        over = asyncio.wrap_future(done)
        over.add_done_callback(lambda one: one.cancelled() or one.exception())  # nobody may ask for it
        try:
            return await asyncio.shield(over)
        except asyncio.CancelledError:
            await asyncio.to_thread(switch.abandon, "The switch was given up.")
            raise

    def _make(self, switch: Switch, new: EngineOptions, done: "Future[SwitchReport]") -> None:
        """Switch in a thread of its own, which has its turn until it is over, whoever still waits for it."""
        self._switch = switch
        try:
            outcome: BaseException | SwitchReport = switch.run()
            self.options = new
        except BaseException as error:
            outcome = error
        for host in switch.hosts:
            self._note_end(host)
        self._switch, self.last_switch = None, switch.report
        self._turn.release()
        if isinstance(outcome, SwitchReport):
            done.set_result(outcome)
        else:
            done.set_exception(outcome)

    async def close(self) -> None:
        """End the engine process, and a switch that is being made; requests that are open fail."""
        switch = self._switch
        if switch is not None:
            await asyncio.to_thread(switch.close, "The engine was closed.")
        async with self._alone():
            loaded, self._place.loaded = self._place.loaded, None
            self._place.empty = "The engine is not open."
            if loaded is not None:
                await asyncio.to_thread(loaded.host.close)

    @property
    def process_id(self) -> int | None:
        """The engine process, for whoever measures its memory from outside."""
        loaded = self._serving()
        return loaded.host.pid if loaded is not None else None

    def _serving(self) -> Loaded | None:
        loaded = self._place.loaded
        return loaded if loaded is not None and loaded.host.alive else None

    @contextlib.asynccontextmanager
    async def _alone(self) -> AsyncIterator[None]:
        """Only one opens, switches or closes at a time, whatever loop or thread it comes from."""
        await self._take_turn()
        try:
            yield
        finally:
            self._turn.release()

    async def _take_turn(self) -> None:
        while not self._turn.acquire(blocking=False):  # noqa: ASYNC110  its holder may be in another loop
            await asyncio.sleep(TURN_EVERY_S)

    def _forget_dead(self) -> None:
        """Note how the last process ended, before another takes its place."""
        loaded, self._place.loaded = self._place.loaded, None
        if loaded is not None:
            self._note_end(loaded.host)

    def _note_end(self, host: EngineHost) -> None:
        if host.crashed:
            crashes = self._crashes[host.options]
            crashes.ended(host.death or "", ready_s=host.ready_s, served=host.finished > 0)

    def _refusal(self, options: EngineOptions) -> str | None:
        return self._crashes[options].refusal(options.model_path.name)

    async def _start(self) -> Loaded:
        host = new_host(self.options, self._mute_limit_s)
        try:
            return await asyncio.to_thread(start, host)
        except asyncio.CancelledError:
            await asyncio.to_thread(host.close)
            raise
        except TargetUnavailable:
            self._note_end(host)
            raise

    # -- requests -----------------------------------------------------------------------------------

    async def run(
        self, request: GenerationRequest, trace: Trace, *, on_read: Callable[[], None] | None = None
    ) -> None:
        """As every target does; `on_read` is called after each read that has gone into the trace."""
        trace.output_tokens_source = "engine"
        trace.sent_ns = time.monotonic_ns()
        loop = asyncio.get_running_loop()
        batches: asyncio.Queue[tuple[int, list[Event]]] = asyncio.Queue()

        def sink(read_ns: int, events: list[Event]) -> None:
            with contextlib.suppress(RuntimeError):  # the loop of a run that is over may be closed
                loop.call_soon_threadsafe(batches.put_nowait, (read_ns, events))

        try:
            host, handle = await self._take_place(trace, sink)
        except TargetUnavailable as error:
            fail(trace, str(error))
            return
        except GateFull:
            reason = f"The engine is switching models, and {self.options.max_waiting} requests wait already."
            refuse(trace, reason, time.monotonic_ns(), busy=True)
            return
        follower = Follower(host, handle, request, trace, on_read)
        try:
            follower.submit()
            await follower.follow(batches)
        except asyncio.CancelledError:
            follower.abort()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(ABORT_WAIT_S):
                    await follower.follow(batches)
            trace.ended = "client"
            raise
        finally:
            host.unsubscribe(handle)

    async def _take_place(
        self, trace: Trace, sink: Callable[[int, list[Event]], None]
    ) -> tuple[EngineHost, int]:
        """The engine that takes this request, and its handle there; waits while no model is loaded.

        That wait is part of the queue wait, as its `model_load`.
        """
        while True:
            arrived_ns = time.monotonic_ns()
            try:
                waited = await self._place.gate.passed()
            except asyncio.CancelledError:
                trace.aborted_ns, trace.ended = time.monotonic_ns(), "client"
                raise
            if waited:
                trace.queued_ns = trace.queued_ns or arrived_ns
                trace.model_load_ns += time.monotonic_ns() - arrived_ns
            loaded = self._place.loaded
            if loaded is None:
                raise TargetUnavailable(self._place.empty)
            try:
                return loaded.host, loaded.host.subscribe(sink)
            except Retired:  # it is about to be replaced: the gate is shut now, or another has its place
                continue

    # -- the engine itself ----------------------------------------------------------------------------

    async def telemetry(self) -> dict[str, Any]:
        return await self._call("telemetry")

    async def reset_prefix_cache(self) -> None:
        """Forget all cached prefixes, so that the next run starts cold; held blocks are untouched."""
        await self._call("reset_prefix_cache")

    def tokenize(self, text: str) -> list[int] | None:
        """Ids of plain text, without special tokens; raises TargetUnavailable when the engine is not open."""
        return self._open_host().call("tokenize", text)

    async def prompt_tokens(self, request: GenerationRequest) -> int:
        """Tokens of the request's prompt as the engine would compute it; raises TargetUnavailable."""
        return await self._call("prompt_tokens", wire(request))

    async def _call(self, name: str, *arguments: Any) -> Any:
        return await asyncio.to_thread(self._open_host().call, name, *arguments)

    def _open_host(self) -> EngineHost:
        loaded = self._place.loaded
        if loaded is None:
            raise TargetUnavailable(self._place.empty)
        return loaded.host


def _path(path: str | Path) -> str:
    return str(Path(path).expanduser())


def _known(settings: dict[str, Any]) -> dict[str, Any]:
    unknown = sorted(settings.keys() - SETTINGS)
    if unknown:
        raise InputError(f"The engine has no setting {unknown[0]!r}.")
    return settings
