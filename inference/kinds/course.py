"""The course of one run: what a procedure has at hand, and how its loads become one result."""

import asyncio
import contextlib
import hashlib
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from inference.load.generator import LoadPlan, LoadResult, LoadState, run_load
from inference.records import RequestRecord, Trace
from inference.requests import GenerationRequest
from inference.targets.base import Target, TargetInfo
from inference.workload.scenario import plan_for

#: prompts are kept with so many records of a run, so that answers can be judged by people
PROMPTS_KEPT = 200
PROMPT_CHARACTERS = 4_000


@dataclass
class Stage:
    """One part of a run, on the monotonic clock; `figures` are what it was made with, such as its rate."""

    name: str
    number: int
    of: int
    figures: dict[str, Any] = field(default_factory=dict)
    started_ns: int = 0
    ended_ns: int | None = None
    requests: int = 0


@dataclass(kw_only=True)
class Course:
    """One run under way. `values` are the kind's options, `stop` is set when the run is to end early.

    `on_record`, `on_tick` and `on_stage` are called from the loop that runs the procedure; `dress` gives each
    request what the run adds to it; `on_load` is told what a load is about to send and the place of its first
    request in the run, `on_sent` each measured request right before it leaves, with its place; `samples`
    grows while the target's resources are sampled beside it.
    """

    target: Target
    info: TargetInfo
    spec: Mapping[str, Any]
    values: Mapping[str, Any]
    stop: asyncio.Event
    on_record: Callable[[RequestRecord], None] | None = None
    on_tick: Callable[[LoadState], None] | None = None
    on_stage: Callable[[Stage], None] | None = None
    on_load: Callable[[LoadPlan, int, Sequence[GenerationRequest]], None] | None = None
    on_sent: Callable[[Trace, int], None] | None = None
    dress: Callable[[GenerationRequest], GenerationRequest] = lambda request: request
    send: Callable[..., Any] = run_load
    samples: Sequence[Mapping[str, Any]] = ()
    zero_ns: int = field(default_factory=time.monotonic_ns)  # of the run's time axis
    stages: list[Stage] = field(default_factory=list)
    rules: dict[str, str] = field(default_factory=dict)  # request id → the phase it was to be left in
    ended: int = 0  # measured requests that have ended
    failed: int = 0  # of these, neither in success nor cancelled on purpose
    _offset: int = 0

    @property
    def planned(self) -> int:
        """Measured requests of the loads so far."""
        return sum(stage.requests for stage in self.stages)

    @property
    def stopped(self) -> bool:
        return self.stop.is_set()

    def enter(self, name: str, number: int, of: int, **figures: Any) -> Stage:
        """Begin a stage; the one before has ended."""
        self.leave()
        stage = Stage(name, number, of, figures, started_ns=time.monotonic_ns())
        self.stages.append(stage)
        if self.on_stage:
            self.on_stage(stage)
        return stage

    def leave(self) -> None:
        """End the stage that is under way, if one is."""
        if self.stages and self.stages[-1].ended_ns is None:
            self.stages[-1].ended_ns = time.monotonic_ns()

    async def plan(self, **changes: Any) -> tuple[list[GenerationRequest], LoadPlan]:
        """Requests and plan of the scenario with these fields changed."""
        spec = {**self.spec, **changes}
        requests, plan = await asyncio.to_thread(
            plan_for, spec, self.target.tokenize, context_tokens=self.info.max_model_tokens
        )
        return [self.dress(request) for request in requests], plan

    async def load(
        self, requests: Sequence[GenerationRequest], plan: LoadPlan, *, until: asyncio.Event | None = None
    ) -> LoadResult:
        """Send one load, until `until` where that comes first; records are numbered after those of before.

        Only the first load of a run warms up: a warm-up later on would put what came before outside the
        measured window.
        """
        stage, offset = self.stages[-1], self._offset
        if offset:
            plan = replace(plan, warmup=0)
            start = f"{stage.name}-{stage.number}-"
            requests = [
                replace(one, id=start + one.id, follows=start + one.follows if one.follows else None)
                for one in requests
            ]
        self._offset += len(requests)
        stage.requests += len(requests)
        prompts = _kept_prompts(requests)
        if self.on_load:
            self.on_load(plan, offset, requests)
        for request in requests:
            if request.cancel is not None:
                self.rules[request.id] = request.cancel.phase

        def ended(record: RequestRecord) -> None:
            if not record.warmup:
                record.index += offset
                self.ended += 1
                self.failed += record.outcome not in ("success", "cancelled")
                if prompt := prompts.get(record.id):
                    record.detail["prompt"] = prompt
            if stage.of > 1:
                record.detail["stage"] = f"{stage.number} {stage.name}"
            if self.on_record:
                self.on_record(record)

        def leaves(trace: Trace) -> None:
            if not trace.warmup:
                trace.index += offset
                if self.on_sent:
                    self.on_sent(trace, trace.index)

        before = self.ended
        result: LoadResult = await self.send(
            self.target,
            requests,
            plan,
            on_record=ended,
            on_trace_start=leaves,
            on_tick=self.on_tick,
            stop=until or self.stop,
        )
        if until is not None:  # nobody knew how many there would be
            stage.requests += self.ended - before - len(requests)
        return result

    async def rest(self, seconds: float) -> None:
        """Wait, or less where the run is to end."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self.stop.wait(), seconds)

    def stages_json(self) -> list[dict[str, Any]]:
        """The stages on the run's time axis, in ms since its zero."""
        found = []
        for stage in self.stages:
            row = {name: value for name, value in asdict(stage).items() if not name.endswith("_ns")}
            row["started_ms"] = (stage.started_ns - self.zero_ns) / 1e6
            row["ended_ms"] = None if stage.ended_ns is None else (stage.ended_ns - self.zero_ns) / 1e6
            found.append(row)
        return found


def joined(results: Sequence[LoadResult]) -> LoadResult:
    """Several loads of one run as one: all records, and the client's worst delays."""
    first, last = results[0], results[-1]
    if len(results) == 1:
        return first
    records = [record for result in results for record in result.records]
    records.sort(key=lambda record: (not record.warmup, record.index))
    return replace(
        first,
        records=records,
        load={**first.load, "loads": len(results)},
        self_check=_worst([result.self_check for result in results]),
        ended_ns=last.ended_ns,
        interrupted=any(result.interrupted for result in results),
    )


def _worst(checks: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Of each figure the worst load's: merging would hide the load in which the client was late."""
    found: dict[str, Any] = {}
    for name in checks[0]:
        values = [check[name] for check in checks if check.get(name) is not None]
        if name == "generators":  # each load's generators are judged by themselves
            found[name] = [one for several in values for one in several]
            continue
        found[name] = max(values, key=_badness) if values else None
    return found


def _badness(value: Any) -> float:
    if isinstance(value, Mapping):
        return float(value.get("p99") or 0.0)
    return float(value) if isinstance(value, int | float) else 0.0


def _kept_prompts(requests: Sequence[GenerationRequest]) -> dict[str, str]:
    """The prompts of at most so many requests, spread evenly and the same for the same requests."""
    chosen = sorted(requests, key=lambda one: hashlib.sha256(one.id.encode()).digest())[:PROMPTS_KEPT]
    return {one.id: text[:PROMPT_CHARACTERS] for one in chosen if (text := _prompt_of(one))}


def _prompt_of(request: GenerationRequest) -> str:
    if request.prompt is not None:
        return request.prompt
    contents = [message.get("content") for message in request.messages or ()]
    return "\n\n".join(content for content in contents if isinstance(content, str))
