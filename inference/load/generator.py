"""Sends requests by plan, closed or open loop, stamps them, and checks that it was itself on time."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from inference.errors import InputError
from inference.load.self_check import SelfCheck
from inference.phases import derive
from inference.records import RequestRecord, Trace
from inference.requests import GenerationRequest
from inference.targets.base import Target
from inference.workload.arrivals import arrival_offsets_s, is_self_timed, parse_shape
from inference.workload.conversations import Turn, conversations, is_answered, next_turn
from inference.workload.warmup import warmup_requests

DEFAULT_TICK_S = 0.25


@dataclass(frozen=True, kw_only=True)
class LoadPlan:
    """How requests arrive.

    `concurrency` alone: closed loop with that many slots, the next request leaves when a slot is free.
    `rate` (requests a second, spaced by `arrival`) or an `arrival` that needs no rate (the shapes are in
    `inference.workload.arrivals`): open loop; a `concurrency` beside it is the number of client slots, and
    waiting for one counts from `scheduled`. Neither: open loop by the requests' own `arrival_s`, or all at
    once where they have none. What arrives is conversations, most of one request; in closed loop a
    slot stays with its conversation.
    `warmup` requests run before the window; `timeout_s` counts from the moment a slot took the request.
    `workload` says for the summary where the requests came from.
    """

    concurrency: int | None = None
    rate: float | None = None
    arrival: str = "constant"
    warmup: int = 0
    timeout_s: float | None = None
    seed: int = 0
    workload: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.concurrency is not None and self.concurrency < 1:
            raise InputError(f"concurrency must be at least 1, not {self.concurrency}")
        if self.rate is not None and not 0 < self.rate < float("inf"):
            raise InputError(f"rate must be above 0 requests a second, not {self.rate}")
        if self.warmup < 0:
            raise InputError(f"warmup must be 0 or more requests, not {self.warmup}")
        if self.timeout_s is not None and not 0 < self.timeout_s < float("inf"):
            raise InputError(f"timeout must be above 0 seconds, not {self.timeout_s}")
        parse_shape(self.arrival)

    @property
    def open_loop(self) -> bool:
        return self.rate is not None or self.concurrency is None or is_self_timed(self.arrival)

    def as_json(self) -> dict[str, Any]:
        stated = asdict(self) | {"open_loop": self.open_loop}
        if not self.workload:
            del stated["workload"]
        return stated


@dataclass
class LoadState:
    """What is under way, for live figures: read it in `on_tick`, never change it."""

    total: int  # requests of the current phase
    phase: str = "warming"  # warming, then measuring
    done: int = 0
    failed: int = 0  # ended neither in success nor cancelled on purpose
    started_ns: int = 0
    in_flight: dict[str, Trace] = field(default_factory=dict)


@dataclass
class LoadResult:
    """The records of one load (warm-up first, then input order) and how well the client kept time."""

    records: list[RequestRecord]
    load: dict[str, Any]
    self_check: dict[str, Any]
    started_ns: int
    ended_ns: int
    started_at_unix_ns: int  # wall clock of started_ns
    interrupted: bool = False


@dataclass(frozen=True)
class Together:
    """What a generator shares with others of the same load: its warm-up requests, and the common start.

    `begin` is awaited when the warm-up is over; it returns the instant of the window's start on this clock.
    """

    warming: Sequence[GenerationRequest]
    begin: Callable[[], Awaitable[int]]


@dataclass
class _Run:
    """The one run of this call: what its coroutines share."""

    target: Target
    plan: LoadPlan
    state: LoadState
    check: SelfCheck
    records: list[RequestRecord]
    on_record: Callable[[RequestRecord], None] | None
    on_trace_start: Callable[[Trace], None] | None
    together: Together | None = None
    unsent_turns: int = 0  # of conversations that had no answer to go on from

    async def conversation(
        self,
        turns: Sequence[Turn],
        *,
        scheduled_ns: int | None = None,
        warmup: bool = False,
        open_loop: bool,
        slots: asyncio.Semaphore | None = None,
    ) -> None:
        """One turn after the other; a later one is due when the answer before it was thought over."""
        said: GenerationRequest | None = None
        answer: Trace | None = None
        for number, (index, request) in enumerate(turns):
            if said is not None and answer is not None:
                if not is_answered(answer):
                    self.unsent_turns += len(turns) - number
                    return
                if request.think_s:
                    await asyncio.sleep(request.think_s)
                request = next_turn(request, said, answer)  # noqa: PLW2901
                scheduled_ns = None
            due_ns = time.monotonic_ns() if scheduled_ns is None else scheduled_ns
            options: dict[str, Any] = {"scheduled_ns": due_ns, "warmup": warmup, "open_loop": open_loop}
            if slots is None:
                answer = await self.one(request, index, **options)
            else:
                free_at_once = not slots.locked()
                async with slots:
                    ready_ns = due_ns if free_at_once else time.monotonic_ns()
                    answer = await self.one(request, index, ready_ns=ready_ns, **options)
            said = request

    async def one(
        self,
        request: GenerationRequest,
        index: int,
        *,
        scheduled_ns: int,
        ready_ns: int | None = None,
        warmup: bool = False,
        open_loop: bool,
    ) -> Trace:
        """One request from its slot to its record; a cancelled load still gets the partial record."""
        dispatched_ns = time.monotonic_ns()
        trace = Trace(request.id, index, warmup, scheduled_ns=scheduled_ns, dispatched_ns=dispatched_ns)
        trace.ready_ns = scheduled_ns if ready_ns is None else ready_ns
        if not warmup:
            self.check.dispatched(dispatched_ns - trace.ready_ns)
        self.state.in_flight[request.id] = trace
        if self.on_trace_start:
            self.on_trace_start(trace)
        try:
            async with asyncio.timeout(self.plan.timeout_s):
                await self.target.run(request, trace)
        except TimeoutError:
            trace.ended = "timeout"
            trace.error = trace.error or f"no complete answer within {self.plan.timeout_s:g} s"
        except asyncio.CancelledError:
            trace.ended = "client"
            trace.error = trace.error or "the load was stopped"
            raise
        finally:
            if trace.closed_ns is None:
                trace.closed_ns = time.monotonic_ns()
            del self.state.in_flight[request.id]
            record = derive(trace, request, open_loop=open_loop, index=index, warmup=warmup)
            self.records.append(record)
            self.state.done += 1
            self.state.failed += record.outcome not in ("success", "cancelled")
            if self.on_record:
                self.on_record(record)
        return trace


async def run_load(
    target: Target,
    requests: Sequence[GenerationRequest],
    plan: LoadPlan,
    *,
    on_record: Callable[[RequestRecord], None] | None = None,
    on_trace_start: Callable[[Trace], None] | None = None,
    on_tick: Callable[[LoadState], None] | None = None,
    tick_s: float = DEFAULT_TICK_S,
    stop: asyncio.Event | None = None,
    together: Together | None = None,
) -> LoadResult:
    """Send `requests` to an opened target as planned and return all records.

    `on_record` gets each ended request (warm-up ones flagged), `on_trace_start` each trace as its
    request leaves, `on_tick` the state every `tick_s` seconds. When `stop` is set or the calling task is
    cancelled, running requests are aborted at the target and what was measured is returned with
    `interrupted=True`; requests that never left have no record.
    """
    state = LoadState(total=len(requests))
    check = SelfCheck()
    run = _Run(target, plan, state, check, [], on_record, on_trace_start, together)
    started_ns, started_at_unix_ns = time.monotonic_ns(), time.time_ns()
    state.started_ns = started_ns
    helpers = [asyncio.create_task(check.sample_loop_lag())]
    if on_tick:
        helpers.append(asyncio.create_task(_tick(state, on_tick, tick_s)))
    work = asyncio.create_task(_warm_and_measure(run, requests))
    stopper = asyncio.create_task(stop.wait()) if stop else None
    interrupted = False
    try:
        await asyncio.wait({work, stopper} if stopper else {work}, return_when=asyncio.FIRST_COMPLETED)
        interrupted = not work.done()
    except asyncio.CancelledError:
        interrupted = True
        if task := asyncio.current_task():
            task.uncancel()
    finally:
        work.cancel()
        for helper in [*helpers, *([stopper] if stopper else [])]:
            helper.cancel()
        results = await asyncio.gather(work, *helpers, return_exceptions=True)
    for result in results:
        if isinstance(result, BaseException) and not isinstance(result, asyncio.CancelledError):
            raise result
    run.records.sort(key=lambda record: (not record.warmup, record.index))
    return LoadResult(
        records=run.records,
        load=plan.as_json(),
        self_check=check.as_json() | ({"unsent_turns": run.unsent_turns} if run.unsent_turns else {}),
        started_ns=started_ns,
        ended_ns=time.monotonic_ns(),
        started_at_unix_ns=started_at_unix_ns,
        interrupted=interrupted,
    )


async def _warm_and_measure(run: _Run, requests: Sequence[GenerationRequest]) -> None:
    together = run.together
    warming = together.warming if together else warmup_requests(requests, run.plan.warmup)
    if warming:
        run.state.total = len(warming)
        await _closed_loop(run, warming, run.plan.concurrency or 1, warmup=True)
    begin = getattr(run.target, "begin_window", None)
    if begin is not None:  # the counters of a server are read from here on
        await begin()
    origin_ns = await together.begin() if together else None
    run.state.phase, run.state.total = "measuring", len(requests)
    run.state.done = run.state.failed = 0
    run.check.start()
    if run.plan.open_loop:
        await _open_loop(run, requests, origin_ns)
    else:
        await _closed_loop(run, requests, run.plan.concurrency or 1)
    run.check.stop()


async def _closed_loop(
    run: _Run, requests: Sequence[GenerationRequest], slots: int, *, warmup: bool = False
) -> None:
    talks = conversations(requests)
    waiting = iter(talks)

    async def slot(waiting: Iterator[list[Turn]]) -> None:
        for turns in waiting:
            await run.conversation(turns, warmup=warmup, open_loop=False)

    async with asyncio.TaskGroup() as group:
        for _ in range(min(slots, len(talks))):
            group.create_task(slot(waiting))


async def _open_loop(run: _Run, requests: Sequence[GenerationRequest], origin_ns: int | None = None) -> None:
    """Each conversation begins at its planned time whatever the target does: no coordinated omission."""
    talks = conversations(requests)
    firsts = [turns[0][1] for turns in talks]
    offsets = arrival_offsets_s(firsts, rate=run.plan.rate, arrival=run.plan.arrival, seed=run.plan.seed)
    slots = asyncio.Semaphore(run.plan.concurrency) if run.plan.concurrency else None
    if origin_ns is None:
        origin_ns = time.monotonic_ns()
    async with asyncio.TaskGroup() as group:
        for number in sorted(range(len(talks)), key=lambda i: offsets[i]):
            scheduled_ns = origin_ns + int(offsets[number] * 1_000_000_000)
            delay_s = (scheduled_ns - time.monotonic_ns()) / 1_000_000_000
            if delay_s > 0:
                await asyncio.sleep(delay_s)
            group.create_task(
                run.conversation(talks[number], scheduled_ns=scheduled_ns, open_loop=True, slots=slots)
            )


async def _tick(state: LoadState, on_tick: Callable[[LoadState], None], tick_s: float) -> None:
    while True:
        await asyncio.sleep(tick_s)
        on_tick(state)
