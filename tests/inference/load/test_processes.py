"""Several generator processes against the simulator: one clock, every request once, whoever is killed."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from itertools import pairwise
from pathlib import Path

import pytest

from inference.load.following import NOT_SENT, UNDER_WAY
from inference.load.generator import LoadPlan, LoadState
from inference.load.processes import GeneratorProcesses
from inference.load.simulator import MODEL, SimulatedTimes, Simulator
from inference.requests import GenerationRequest
from inference.targets.openai import OpenAITarget
from inference.validity import validity


@pytest.fixture
async def url() -> AsyncIterator[str]:
    simulator = Simulator(SimulatedTimes(ttft_ms=20, itl_ms=5, output_tokens=4))
    port = await simulator.start(0)
    yield f"http://127.0.0.1:{port}/v1"
    await simulator.stop()


def requests(n: int) -> list[GenerationRequest]:
    return [GenerationRequest(id=f"q{i}", prompt="x", max_tokens=4) for i in range(n)]


async def test_two_processes_send_one_load_on_one_clock(url: str, tmp_path: Path) -> None:
    target = OpenAITarget(url, MODEL)
    both = GeneratorProcesses(2, {"base_url": url, "model": MODEL}, tmp_path)
    ticks: list[tuple[str, int]] = []

    def on_tick(state: LoadState) -> None:
        ticks.append((state.phase, state.done))

    result = await both.send(target, requests(12), LoadPlan(rate=40, warmup=2), on_tick=on_tick, tick_s=0.05)

    assert [(one.warmup, one.index, one.outcome) for one in result.records] == (
        [(True, i, "success") for i in range(2)] + [(False, i, "success") for i in range(12)]
    )
    scheduled = [one.stamps["scheduled_ns"] for one in result.records[2:]]
    assert {b - a for a, b in pairwise(scheduled)} == {25_000_000}  # type: ignore[operator]
    assert ticks[-1] == ("measuring", 12)
    assert [one["requests"] for one in result.self_check["generators"]] == [6, 6]
    assert all(one["dispatch_delay_ms"]["n"] == 6 for one in result.self_check["generators"])
    assert (result.load["generators"], result.load["rate"], result.interrupted) == (2, 40, False)


async def test_a_killed_process_is_accounted_for_and_makes_the_run_invalid(url: str, tmp_path: Path) -> None:
    both = GeneratorProcesses(2, {"base_url": url, "model": MODEL}, tmp_path)
    plan = LoadPlan(concurrency=2)
    killed = asyncio.Event()

    def on_tick(state: LoadState) -> None:
        second = both.generators[1]
        if not killed.is_set() and second.tick.get("done", 0) >= 2 and second.process_id:
            os.kill(second.process_id, signal.SIGKILL)
            killed.set()

    result = await both.send(OpenAITarget(url, MODEL), requests(80), plan, on_tick=on_tick, tick_s=0.02)

    assert [one.index for one in result.records] == list(range(80))
    first, second = result.records[::2], result.records[1::2]
    assert {one.outcome for one in first} == {"success"}
    ended = [one for one in second if one.outcome == "success"]
    under_way = [one for one in second if UNDER_WAY in one.flags]
    never = [one for one in second if NOT_SENT in one.flags]
    assert len(ended) >= 2
    assert len(under_way) <= 1
    assert len(ended) + len(under_way) + len(never) == 40
    assert all("generator 2 of 2 was ended by SIGKILL" in (one.error or "") for one in under_way + never)
    verdict = validity({"self_check": result.self_check}, result.records)
    assert "generator 2 of 2: it was ended by SIGKILL" in verdict["reasons"]
