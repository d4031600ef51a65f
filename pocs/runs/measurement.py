"""One load in a thread with an event loop of its own; what it observes waits to be written elsewhere.

The database is never touched here: a slow commit must not delay a stamp.
"""

import asyncio
import contextlib
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from inference.kinds import Course, Stage, conduct, kind_of
from inference.load.generator import LoadPlan, LoadResult, LoadState
from inference.load.resources import ResourceSampler
from inference.outputs import quality_requests
from inference.recording.packing import STARTED
from inference.recording.spool import Spool
from inference.records import RequestRecord, Trace
from inference.requests import GenerationRequest
from inference.targets.base import Target, TargetInfo


@dataclass(frozen=True)
class Moment:
    """The state of the load at one tick: copies, so that another thread may read them."""

    phase: str  # warming or measuring
    total: int
    done: int
    failed: int
    in_flight: tuple[Trace, ...]
    stage: str = ""  # of the kind's procedure, with its number and how many there are at most
    stage_number: int = 1
    stages: int = 1


class Measurement(threading.Thread):
    """Opens the target, builds the workload from the scenario's spec, and runs the load.

    Afterwards `result` holds the load, or `error` what ended it; `info` says what was measured.
    Every record goes to `spool`, which hands it on when it is written; `take_samples` hands over the
    samples since the last call.
    """

    def __init__(
        self,
        target: Target,
        spec: dict[str, Any],
        spool: Spool,
        *,
        kind: str,
        tenant: str = "",
        application: str = "",
    ) -> None:
        super().__init__(name="measurement", daemon=True)
        self.target, self.spec, self.spool, self.kind = target, spec, spool, kind_of(kind)
        spool.in_flight = self._in_flight
        self.tenant, self.application = tenant, application
        self.info: TargetInfo | None = None
        self.result: LoadResult | None = None
        self.found: dict[str, Any] = {}  # the kind's block of the summary
        self.quality: list[RequestRecord] = []  # answers to the scenario's quality set, in its order
        self.course: Course | None = None
        self.error: BaseException | None = None
        self.moment: Moment | None = None
        self.started_ns: int | None = None  # zero of the run's time axis
        self.server: dict[str, Any] | None = None  # what an endpoint told of the measured window
        self._sampler: ResourceSampler | None = None
        self._samples_taken = 0
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

    def take_samples(self) -> list[dict[str, Any]]:
        """Telemetry samples since the last call, each with `at_ms` on the run's time axis."""
        if self._sampler is None:
            return []
        found = self._sampler.samples[self._samples_taken :]
        self._samples_taken += len(found)
        return found

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
        except BaseException as error:
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
        assert self._leave is not None, "the loop has begun"
        values = self.kind.values(self.spec.get("options") or {})
        self.started_ns = time.monotonic_ns()
        self._sampler = ResourceSampler(self.target, started_ns=self.started_ns)
        await self._sampler.sample()  # the shortest run has its resources at both ends
        sampling = asyncio.create_task(self._sampler.run())
        try:
            self.course = Course(
                target=self.target,
                info=self.info,
                spec=self.spec,
                values=values,
                stop=self._leave,
                on_record=self.spool.put,
                on_tick=self._tick,
                on_stage=self._enter,
                on_load=self._note_load,
                on_sent=self._note_sent,
                dress=self._dress,
                samples=self._sampler.samples,
                zero_ns=self.started_ns,
            )
            conducted, self.found = await conduct(self.kind, self.course)
            self.result = conducted.result
            await self._ask_quality_set(self.course)
        finally:
            sampling.cancel()
            await asyncio.gather(sampling, return_exceptions=True)
        await self._sampler.sample()
        self.server = await self._sampler.server()

    def _in_flight(self) -> tuple[Trace, ...]:
        moment = self.moment
        return () if moment is None else moment.in_flight

    async def _ask_quality_set(self, course: Course) -> None:
        """The prompts whose answers are known, after the load and outside its figures."""
        requests = [self._dress(request) for request in quality_requests(self.spec)]
        if not requests or course.stopped:
            return
        course.enter("quality", 1, 1)
        plan = LoadPlan(concurrency=self.spec.get("concurrency"), timeout_s=self.spec.get("timeout_s"))
        result = await course.load(requests, plan)
        course.leave()
        self.quality = [record for record in result.records if not record.warmup]

    def _dress(self, request: GenerationRequest) -> GenerationRequest:
        """The run's tenant and application, where the request names none of its own."""
        return replace(
            request,
            tenant=request.tenant or self.tenant,
            application=request.application or self.application,
        )

    def _note_load(self, plan: LoadPlan, offset: int, requests: Sequence[GenerationRequest]) -> None:
        """What is about to be sent, for whoever finds this run without its worker."""
        assert self.started_ns is not None
        ids = [request.id for request in requests]
        facts = {"started_ns": self.started_ns, "open_loop": plan.open_loop, "offset": offset, "ids": ids}
        self.spool.note(STARTED, **facts)
        self.spool.plan(offset, len(requests))

    def _note_sent(self, trace: Trace, place: int) -> None:
        self.spool.leaves(place, trace.dispatched_ns or 0)

    def _enter(self, stage: Stage) -> None:
        """A stage without requests of its own (a rest, a switch) is seen too."""
        before = self.moment or Moment("warming", 0, 0, 0, ())
        self.moment = replace(before, stage=stage.name, stage_number=stage.number, stages=stage.of)

    def _tick(self, state: LoadState) -> None:
        assert self.course is not None
        stage = self.course.stages[-1]
        self.moment = Moment(
            phase=state.phase,
            total=_total(state, stage),
            done=state.done,
            failed=state.failed,
            in_flight=tuple(state.in_flight.values()),
            stage=stage.name,
            stage_number=stage.number,
            stages=stage.of,
        )


def _total(state: LoadState, stage: Stage) -> int:
    """Requests of the load; where its end is a time, as many as this pace would make."""
    seconds = stage.figures.get("duration_s")
    passed_s = (time.monotonic_ns() - stage.started_ns) / 1e9
    if not seconds or passed_s < 1 or not state.done or state.phase == "warming":
        return state.total
    return max(state.done, round(state.done * seconds / min(passed_s, seconds)))


def _process_of(target: Target) -> int | None:
    return getattr(target, "process_id", None)
