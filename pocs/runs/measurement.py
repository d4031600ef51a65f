"""One load in a thread with an event loop of its own; what it observes waits to be written elsewhere.

The database is never touched here: a slow commit must not delay a stamp.
"""

import asyncio
import contextlib
import threading
import time
from collections import deque
from dataclasses import dataclass, replace
from typing import Any

from inference.load.generator import LoadResult, LoadState, run_load
from inference.records import RequestRecord, Trace
from inference.targets.base import Target, TargetInfo
from inference.telemetry import GpuSampler, HostSampler
from inference.workload.scenario import plan_for

SAMPLE_EVERY_S = 0.5


@dataclass(frozen=True)
class Moment:
    """The state of the load at one tick: copies, so that another thread may read them."""

    phase: str  # warming or measuring
    total: int
    done: int
    failed: int
    in_flight: tuple[Trace, ...]


class Measurement(threading.Thread):
    """Opens the target, builds the workload from the scenario's spec, and runs the load.

    Afterwards `result` holds the load, or `error` what ended it; `info` says what was measured.
    Until then `take_records` and `take_samples` hand over what has come in since the last call.
    """

    def __init__(
        self, target: Target, spec: dict[str, Any], *, tenant: str = "", application: str = ""
    ) -> None:
        super().__init__(name="measurement", daemon=True)
        self.target, self.spec = target, spec
        self.tenant, self.application = tenant, application
        self.info: TargetInfo | None = None
        self.result: LoadResult | None = None
        self.error: BaseException | None = None
        self.moment: Moment | None = None
        self.started_ns: int | None = None  # zero of the run's time axis
        self._host = HostSampler()
        self._gpu: GpuSampler | None = None
        self._records: deque[RequestRecord] = deque()
        self._samples: deque[dict[str, Any]] = deque()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._leave: asyncio.Event | None = None
        self._work: asyncio.Task[None] | None = None
        self._leave_wanted = threading.Event()

    # -- for the thread that follows -----------------------------------------------------------------

    def stop(self) -> None:
        """Leave: running requests are aborted and what was measured is kept. Safe to call again."""
        self._leave_wanted.set()
        loop = self._loop
        if loop is not None:
            with contextlib.suppress(RuntimeError):  # the loop has just ended by itself
                loop.call_soon_threadsafe(self._stop_here)

    def take_records(self) -> list[RequestRecord]:
        """Records of the requests that ended since the last call."""
        return _drained(self._records)

    def take_samples(self) -> list[dict[str, Any]]:
        """Telemetry samples since the last call, each with `at_ms` on the run's time axis."""
        return _drained(self._samples)

    @property
    def target_died(self) -> bool:
        """Whether an engine that was open has lost its process."""
        return self.info is not None and self.info.kind == "engine" and _process_of(self.target) is None

    # -- the thread itself ----------------------------------------------------------------------------

    def run(self) -> None:
        try:
            asyncio.run(self._main())
        except asyncio.CancelledError:
            return  # stopped before the load had begun: there is no result
        except BaseException as error:  # noqa: BLE001 the follower decides what it means
            self.error = error

    async def _main(self) -> None:
        self._loop, self._leave = asyncio.get_running_loop(), asyncio.Event()
        self._work = asyncio.create_task(self._measure())
        if self._leave_wanted.is_set():
            self._stop_here()
        await self._work

    def _stop_here(self) -> None:
        """In the loop: end the load orderly, or give up preparing it."""
        assert self._leave is not None
        self._leave.set()
        if self.started_ns is None and self._work is not None:
            self._work.cancel()

    async def _measure(self) -> None:
        self.info = await self.target.open()
        reset = getattr(self.target, "reset_prefix_cache", None)
        if reset is not None:
            await reset()  # each run starts cold, whatever ran before
        requests, plan = await asyncio.to_thread(plan_for, self.spec, self.target.tokenize)
        requests = [
            replace(
                request,
                tenant=request.tenant or self.tenant,
                application=request.application or self.application,
            )
            for request in requests
        ]
        local = self.info.kind == "engine"
        self._host = HostSampler(_process_of(self.target) if local else None)
        self._gpu = GpuSampler() if local else None
        self.started_ns = time.monotonic_ns()
        await self._sample()  # the shortest run has its resources at both ends
        sampler = asyncio.create_task(self._sample_on())
        try:
            self.result = await run_load(
                self.target,
                requests,
                plan,
                on_record=self._records.append,
                on_tick=self._tick,
                stop=self._leave,
            )
        finally:
            sampler.cancel()
            await asyncio.gather(sampler, return_exceptions=True)
        await self._sample()

    def _tick(self, state: LoadState) -> None:
        self.moment = Moment(
            phase=state.phase,
            total=state.total,
            done=state.done,
            failed=state.failed,
            in_flight=tuple(state.in_flight.values()),
        )

    async def _sample_on(self) -> None:
        while True:
            await asyncio.sleep(SAMPLE_EVERY_S)
            await self._sample()

    async def _sample(self) -> None:
        """One sample of the target's resources and the machine's."""
        assert self.started_ns is not None
        at_ms = (time.monotonic_ns() - self.started_ns) / 1e6
        machine = await asyncio.to_thread(self._host.sample)
        devices = await asyncio.to_thread(self._gpu.sample) if self._gpu is not None else {}
        # what the target tells of itself is nearer to it than what is seen from outside
        sample = {"at_ms": at_ms} | machine | devices | await self._target_telemetry()
        self._samples.append(sample)

    async def _target_telemetry(self) -> dict[str, Any]:
        """What the target tells of itself now; nothing when it cannot be asked at the moment."""
        try:
            return await self.target.telemetry()
        except Exception:  # noqa: BLE001 a mute target is seen in its requests, a sample must not end a run
            return {}


def _process_of(target: Target) -> int | None:
    return getattr(target, "process_id", None)


def _drained(box: deque[Any]) -> list[Any]:
    found = []
    while box:
        found.append(box.popleft())
    return found
