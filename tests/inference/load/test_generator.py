"""The load generator: loops, arrivals, time-outs, stopping, callbacks and its view of itself."""

import asyncio
import time
from typing import Any

import pytest

from inference.errors import InputError
from inference.load.generator import LoadPlan, LoadState, run_load
from inference.load.resources import ResourceSampler
from inference.records import RequestRecord, Trace
from inference.requests import GenerationRequest
from inference.targets.base import TargetInfo


class FakeTarget:
    """Answers with one token after `service_s`; remembers how many ran at once and who was left."""

    def __init__(self, service_s: float = 0.01) -> None:
        self.service_s = service_s
        self.running = self.peak = 0
        self.order: list[str] = []
        self.aborted: list[str] = []

    async def open(self) -> TargetInfo:
        return TargetInfo(kind="http", model="fake")

    async def run(self, request: GenerationRequest, trace: Trace) -> None:
        trace.sent_ns = time.monotonic_ns()
        self.order.append(request.id)
        self.running += 1
        self.peak = max(self.peak, self.running)
        try:
            await asyncio.sleep(self.service_s)
            trace.reads.append((time.monotonic_ns(), 1))
            trace.text, trace.finish_reason, trace.ended = "x", "stop", "orderly"
            trace.output_tokens, trace.output_tokens_source = 1, "usage"
        except asyncio.CancelledError:
            self.aborted.append(request.id)
            trace.ended = "client"
            raise
        finally:
            self.running -= 1

    async def telemetry(self) -> dict[str, Any]:
        return {"running": self.running}

    def tokenize(self, text: str) -> list[int] | None:
        return None

    async def close(self) -> None:
        return None


def requests(n: int, **fields: Any) -> list[GenerationRequest]:
    return [GenerationRequest(id=f"q{i}", prompt="x", **fields) for i in range(n)]


async def test_a_closed_loop_keeps_its_slots_full_and_its_records_in_input_order() -> None:
    target = FakeTarget()
    result = await run_load(target, requests(12), LoadPlan(concurrency=3, warmup=2))
    assert target.peak == 3
    assert [record.id for record in result.records] == ["warmup-1", "warmup-2", *(f"q{i}" for i in range(12))]
    assert [record.warmup for record in result.records[:3]] == [True, True, False]
    assert [record.index for record in result.records[2:]] == list(range(12))
    assert target.order[:2] == ["warmup-1", "warmup-2"]  # done before the first measured one leaves
    assert result.interrupted is False
    assert result.self_check["dispatch_delay_ms"]["n"] == 12
    assert result.self_check["loop_lag_ms"]["n"] > 0


async def test_all_at_once_is_an_open_loop_without_a_limit() -> None:
    target = FakeTarget(0.05)
    result = await run_load(target, requests(20), LoadPlan())
    assert target.peak == 20
    assert len({record.stamps["scheduled_ns"] for record in result.records}) == 1


async def test_the_file_s_arrivals_are_kept_whatever_their_order() -> None:
    late, early = (
        GenerationRequest(id="late", prompt="x", arrival_s=0.06),
        GenerationRequest(id="early", prompt="x"),
    )
    target = FakeTarget(0.001)
    result = await run_load(target, [late, early], LoadPlan())
    assert target.order == ["early", "late"]
    assert [record.id for record in result.records] == ["late", "early"]
    scheduled = [record.stamps["scheduled_ns"] for record in result.records]
    assert scheduled[0] - scheduled[1] == 60_000_000  # type: ignore[operator]


async def test_a_slow_target_does_not_slow_the_arrivals() -> None:
    """No coordinated omission: requests leave when due, though none has been answered."""
    target = FakeTarget(0.2)
    result = await run_load(target, requests(10), LoadPlan(rate=200))
    assert target.peak == 10
    gaps = [record.intervals_ms["dispatch_delay"] or 0 for record in result.records]
    assert max(gaps) < 60
    assert all((record.e2e_ms or 0) >= 199 for record in result.records)


async def test_waiting_for_a_slot_counts_from_scheduled_and_is_no_late_client() -> None:
    target = FakeTarget(0.03)
    result = await run_load(target, requests(5), LoadPlan(concurrency=1, rate=1000))
    assert target.peak == 1
    assert (result.records[-1].e2e_ms or 0) >= 140
    assert result.self_check["dispatch_delay_ms"]["max"] < 60


async def test_a_timeout_is_an_outcome_and_the_target_is_told() -> None:
    target = FakeTarget(5)
    result = await run_load(target, requests(2), LoadPlan(concurrency=2, timeout_s=0.02))
    assert [record.outcome for record in result.records] == ["timeout", "timeout"]
    assert sorted(target.aborted) == ["q0", "q1"]


@pytest.mark.parametrize("how", ["stop", "cancel"])
async def test_a_stopped_load_returns_what_was_measured(how: str) -> None:
    target = FakeTarget(0.01)
    stop = asyncio.Event()

    def on_record(record: RequestRecord) -> None:
        if record.id == "q3":
            target.service_s = 60
            stop.set() if how == "stop" else asyncio.get_running_loop().call_soon(work.cancel)

    work = asyncio.create_task(
        run_load(
            target,
            requests(50),
            LoadPlan(concurrency=2),
            on_record=on_record,
            stop=stop if how == "stop" else None,
        )
    )
    result = await work
    assert result.interrupted is True
    assert [record.outcome for record in result.records][:4] == ["success"] * 4
    cut = [record for record in result.records if record.outcome == "cancelled"]
    assert 1 <= len(cut) <= 2
    assert {record.error for record in cut} == {"the load was stopped"}
    assert sorted(target.aborted) == [record.id for record in cut]
    assert len(result.records) < 10


async def test_what_is_under_way_can_be_watched() -> None:
    target = FakeTarget(0.05)
    started: list[Trace] = []
    seen: list[tuple[str, int, int]] = []

    def on_tick(state: LoadState) -> None:
        seen.append((state.phase, state.done, len(state.in_flight)))

    await run_load(
        target,
        requests(4),
        LoadPlan(concurrency=2, warmup=1),
        on_trace_start=started.append,
        on_tick=on_tick,
        tick_s=0.01,
    )
    assert started[0].request_id == "warmup-1"
    assert len(started) == 5
    assert ("warming", 0, 1) in seen
    assert ("measuring", 2, 2) in seen


async def test_trouble_in_a_callback_ends_the_load_and_is_told() -> None:
    def on_record(record: RequestRecord) -> None:
        raise RuntimeError("disk full")

    with pytest.raises(ExceptionGroup) as caught:
        await run_load(FakeTarget(), requests(3), LoadPlan(concurrency=1), on_record=on_record)
    assert "disk full" in str(caught.value.exceptions[0])


@pytest.mark.parametrize(
    "wrong", [{"concurrency": 0}, {"rate": 0}, {"rate": float("nan")}, {"warmup": -1}, {"timeout_s": 0}]
)
def test_a_plan_out_of_range_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        LoadPlan(**wrong)


async def test_resources_are_sampled_on_the_run_s_own_axis() -> None:
    sampler = ResourceSampler(FakeTarget())
    await sampler.sample()
    second = await sampler.sample()
    assert second["running"] == 0
    assert second["at_ms"] >= sampler.samples[0]["at_ms"] >= 0
    assert "rss_bytes" not in second  # an endpoint's memory is not ours to see
