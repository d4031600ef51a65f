"""Several generators as one load: one start, one stop, one progress, and one exact result.

Nothing is merged from figures: the result holds every record, and figures are taken over all of them. Whether
the client was on time is judged for each generator by itself, since merging would hide the one that was late.
"""

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from inference.errors import TargetUnavailable
from inference.load.division import Part
from inference.load.following import Following
from inference.load.generator import DEFAULT_TICK_S, LoadPlan, LoadResult, LoadState
from inference.records import RequestRecord
from inference.targets.base import Target

POLL_S = 0.05
#: between the order to begin and the start itself, for the order to arrive everywhere
LEAD_S = 0.25
STOP_GRACE_S = 10.0


@dataclass
class Ended:
    """How a generator ended its part; stamps on this host's monotonic clock."""

    self_check: dict[str, Any]
    started_ns: int
    ended_ns: int
    started_at_unix_ns: int
    interrupted: bool


class Generator(Protocol):
    """One generator, here or elsewhere. `poll` never waits, and says all there is before `ended` is set.

    `lost` says why nothing more will come, as the end of a sentence that begins with the generator's name;
    `ledger_whole` whether it is known of every request if it was sent; `facts` are for the summary.
    """

    part: Part
    warm: bool
    tick: dict[str, Any]
    ended: Ended | None
    lost: str
    ledger_whole: bool
    lead_s: float

    def start(self) -> None: ...
    def poll(self) -> list[dict[str, Any]]: ...
    def begin(self, origin_ns: int) -> None: ...
    def stop(self) -> None: ...
    def close(self) -> None: ...
    def facts(self) -> dict[str, Any]: ...


class _Load:
    """One load under way."""

    def __init__(
        self,
        generators: Sequence[Generator],
        requests: int,
        on_record: Callable[[RequestRecord], None] | None,
    ) -> None:
        self.generators = generators
        self.following = [Following(generator.part) for generator in generators]
        self.on_record = on_record
        self.state = LoadState(total=requests, started_ns=time.monotonic_ns())
        self.given_up: set[int] = set()

    def poll(self) -> None:
        """Take in what every generator has to say, and account for those that were lost."""
        for generator, following in zip(self.generators, self.following, strict=True):
            records = following.take(generator.poll())
            if generator.lost and generator.part.number not in self.given_up:
                self.given_up.add(generator.part.number)
                records += following.unaccounted(generator.lost, ledger_whole=generator.ledger_whole)
            if self.on_record:
                for record in records:
                    self.on_record(record)

    @property
    def over(self) -> bool:
        return all(generator.ended or generator.lost for generator in self.generators)

    def note_progress(self) -> LoadState:
        ticks = [generator.tick for generator in self.generators]
        if any(one.measured for one in self.following) or any(
            tick.get("phase") == "measuring" for tick in ticks
        ):
            self.state.phase = "measuring"
            self.state.total = sum(len(one.part.requests) for one in self.following)
            self.state.done = sum(one.measured for one in self.following)
            self.state.failed = sum(one.failed for one in self.following)
        else:
            for name in ("total", "done", "failed"):
                setattr(self.state, name, sum(tick.get(name) or 0 for tick in ticks))
        self.state.in_flight = {
            trace.request_id: trace for one in self.following for trace in one.under_way.values()
        }
        return self.state


async def send_together(
    generators: Sequence[Generator],
    target: Target,
    plan: LoadPlan,
    *,
    on_record: Callable[[RequestRecord], None] | None = None,
    on_tick: Callable[[LoadState], None] | None = None,
    tick_s: float = DEFAULT_TICK_S,
    stop: asyncio.Event | None = None,
) -> LoadResult:
    """Let the generators send their parts of `plan` and return all records as one load.

    Each opens the target for itself; `target` is the one that was opened here, for what its server tells. A
    generator that is lost after the start is accounted for, request by request; one that cannot begin raises
    TargetUnavailable.
    """
    load = _Load(generators, sum(len(generator.part.requests) for generator in generators), on_record)
    started_at_unix_ns = time.time_ns()
    stop = stop or asyncio.Event()
    try:
        for generator in generators:
            generator.start()
        if await _all_warm(load, stop, on_tick, tick_s):
            begin = getattr(target, "begin_window", None)
            if begin is not None:
                await begin()
            origin_ns = time.monotonic_ns() + int(max(one.lead_s for one in generators) * 1e9)
            for generator in generators:
                generator.begin(origin_ns)
        await _to_the_end(load, stop, on_tick, tick_s)
    finally:
        for generator in generators:
            generator.close()
    return _result(load, plan, started_at_unix_ns)


async def _all_warm(
    load: _Load, stop: asyncio.Event, on_tick: Callable[[LoadState], None] | None, tick_s: float
) -> bool:
    """Wait until every generator is ready to begin; False when the load is to be stopped before."""
    ticked_s = time.monotonic()
    while not stop.is_set():
        load.poll()
        for generator in load.generators:
            if generator.lost or generator.ended:
                why = generator.lost or "ended"
                raise TargetUnavailable(f"{generator.part.name} {why} before the load began")
        if all(generator.warm for generator in load.generators):
            return True
        ticked_s = _tick(load, on_tick, tick_s, ticked_s)
        await asyncio.sleep(POLL_S)
    return False


async def _to_the_end(
    load: _Load, stop: asyncio.Event, on_tick: Callable[[LoadState], None] | None, tick_s: float
) -> None:
    ticked_s = time.monotonic()
    stopped_s: float | None = None
    while True:
        load.poll()
        if load.over:
            break
        if stop.is_set() and stopped_s is None:
            stopped_s = time.monotonic()
            for generator in load.generators:
                generator.stop()
        if stopped_s is not None and time.monotonic() - stopped_s > STOP_GRACE_S:
            for generator in load.generators:
                generator.close()
            load.poll()  # what they still had to say
            for generator in load.generators:
                if not generator.ended:
                    generator.lost = generator.lost or "did not stop when it was asked to"
        ticked_s = _tick(load, on_tick, tick_s, ticked_s)
        await asyncio.sleep(POLL_S)
    if on_tick:
        on_tick(load.note_progress())


def _tick(load: _Load, on_tick: Callable[[LoadState], None] | None, tick_s: float, ticked_s: float) -> float:
    now_s = time.monotonic()
    if on_tick is None or now_s - ticked_s < tick_s:
        return ticked_s
    on_tick(load.note_progress())
    return now_s


def _result(load: _Load, plan: LoadPlan, started_at_unix_ns: int) -> LoadResult:
    ends = [generator.ended for generator in load.generators if generator.ended]
    records = [record for following in load.following for record in following.records]
    records.sort(key=lambda record: (not record.warmup, record.index))
    return LoadResult(
        records=records,
        load=plan.as_json() | {"generators": len(load.generators)},
        self_check=merged_checks([_checked(generator) for generator in load.generators]),
        started_ns=load.state.started_ns,
        ended_ns=time.monotonic_ns(),
        started_at_unix_ns=started_at_unix_ns,
        interrupted=any(end.interrupted for end in ends),
    )


def _checked(generator: Generator) -> dict[str, Any]:
    head = {
        "number": generator.part.number,
        "of": generator.part.of,
        "requests": len(generator.part.requests),
        "lost": generator.lost or None,
    }
    return head | generator.facts() | (generator.ended.self_check if generator.ended else {})


def merged_checks(checks: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Of each delay the worst generator's figures, the processor shares and unsent turns added up.

    `generators` has every one's own, by which a run is judged.
    """
    found: dict[str, Any] = {}
    for name in ("dispatch_delay_ms", "loop_lag_ms"):
        told = [check[name] for check in checks if check.get(name)]
        found[name] = max(told, key=lambda figures: figures.get("p99") or 0.0) if told else None
    shares = [check["cpu_share"] for check in checks if check.get("cpu_share") is not None]
    found["cpu_share"] = sum(shares) if shares else None
    if turns := sum(check.get("unsent_turns") or 0 for check in checks):
        found["unsent_turns"] = turns
    return found | {"generators": [dict(check) for check in checks]}
