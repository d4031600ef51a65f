"""What the engine tells of itself: every figure has a name, a source and a meaning, and adds up."""

import os
import time
from pathlib import Path
from typing import Any

import pytest

from inference.engine import events, memory, telemetry
from inference.engine.telemetry import Watch, fragmentation, snapshot
from inference.stats import summarise
from inference.telemetry import KEYS, HostSampler, source_of
from inference.telemetry.residents import Residents, resident_bytes
from inference.telemetry.series import memory_watermark

MS = 1_000_000
DOCUMENT = Path(__file__).parents[3] / "docs" / "metrics.md"


def test_who_waits_and_for_how_long_is_told() -> None:
    watch = Watch()
    watch.observe([events.queued(1, 10 * MS, 5), events.queued(2, 20 * MS, 5)], 0)
    assert watch.figures(50 * MS)["waiting"] == 2
    assert watch.figures(50 * MS)["oldest_waiting_ms"] == 40
    watch.observe([events.admitted(1, 60 * MS, 0)], 3)
    assert watch.figures(70 * MS)["oldest_waiting_ms"] == 50
    watch.observe([events.preempted(1, 80 * MS, 5), events.aborted(2, 85 * MS), events.freed(2, 85 * MS)], 1)
    assert watch.figures(90 * MS)["waiting"] == 1
    assert watch.figures(90 * MS)["oldest_waiting_ms"] == 10  # since it lost its place
    watch.observe([events.admitted(1, 95 * MS, 0)], 2)
    assert watch.figures(99 * MS)["waiting"] == 0
    assert "oldest_waiting_ms" not in watch.figures(99 * MS)
    assert watch.kv_peak_blocks == 3


def test_release_times_are_of_the_last_minute() -> None:
    watch = Watch()
    for handle in range(1, 11):
        end_ns = handle * MS
        watch.observe(
            [events.finished(handle, end_ns, "stop", ""), events.freed(handle, end_ns + handle * MS)], 0
        )
    found = watch.figures(100 * MS)
    assert (found["release_n"], found["release_ms_max"]) == (10, 10)
    assert found["release_ms_p50"] == 5.5
    assert "release_n" not in watch.figures(100 * MS + telemetry.RELEASE_WINDOW_NS)


def test_steps_that_ran_out_of_memory_are_counted_once() -> None:
    watch = Watch()
    reason = "The step failed: RuntimeError: DefaultCPUAllocator: can't allocate memory."
    watch.observe([events.failed(1, 5, reason), events.failed(2, 5, reason)], 0)
    watch.observe([events.failed(3, 5, "The step failed: ValueError: odd.")], 0)
    assert watch.figures(9)["oom_total"] == 1


def test_empty_slots_of_held_blocks_are_fragmentation(bench: Any) -> None:
    one = bench(prefix_cache=False)
    assert fragmentation([], 4, 0) is None
    assert "kv_fragmentation" not in snapshot(one.engine)
    one.submit(range(10, 19), max_tokens=4)  # nine tokens: two blocks of four and a quarter
    one.step()
    assert snapshot(one.engine)["kv_fragmentation"] == pytest.approx(1 - 9 / 12)
    one.finish()


def test_blocks_that_are_shared_are_not_counted_twice(bench: Any) -> None:
    one = bench()
    one.run(range(10, 18), max_tokens=1)
    for _ in range(2):
        one.submit(range(10, 20), max_tokens=8)
    one.step(2)
    held = one.engine.blocks.held
    told = snapshot(one.engine)["kv_fragmentation"]
    empty = sum(len(x.blocks) * 4 - x.num_computed for x in one.engine.scheduler.running)
    assert held == 4  # two that are shared, and one of each
    assert told == pytest.approx(empty / (held * 4))
    one.finish()


def test_every_figure_has_a_meaning_and_stands_in_the_document(bench: Any) -> None:
    one, watch = bench(), Watch()
    watch.observe([events.queued(1, 1, 5), events.finished(2, 1, "stop", ""), events.freed(2, 2)], 1)
    one.submit(range(10, 19), max_tokens=2)
    one.step()
    told = snapshot(one.engine, watch) | HostSampler().sample()
    assert told.keys() <= KEYS.keys()
    assert {KEYS[key].source for key in told} == {"engine", "kernel"}
    one.finish()
    document = DOCUMENT.read_text(encoding="utf-8")
    assert [key for key in KEYS if f"`{_shortened(key)}`" not in document] == []
    assert source_of("running", "engine") == "engine"
    assert source_of("running", "http") == "server aggregate"
    assert source_of("load_1m", "http") == "kernel"


def _shortened(key: str) -> str:
    """Counters of the three kinds of steps share one line of the document."""
    kind, _, rest = key.partition("_")
    return f"KIND_{rest}" if kind in ("prefill", "decode", "mixed") else key


def test_peaks_between_samples_count_and_load_is_told_at_both_ends() -> None:
    samples = [
        {"at_ms": 0, "kv_used_bytes": 4, "kv_used_peak_bytes": 4, "load_1m": 0.5, "oom_total": 1},
        {"at_ms": 1, "kv_used_bytes": 2, "kv_used_peak_bytes": 9, "load_1m": 2.5, "oom_total": 2},
    ]
    assert (memory_watermark(samples) or {})["kv_used_peak_bytes"] == 9
    engine = summarise([], telemetry=samples)["engine"]
    assert (engine["load_1m_before"], engine["load_1m_after"], engine["oom"]) == (0.5, 2.5, 1)


def test_the_peak_of_memory_can_begin_anew() -> None:
    block = bytearray(64 * 2**20)
    before = memory.resident_bytes()[1]
    del block
    memory.restart_resident_peak()
    assert memory.resident_bytes()[1] <= before


def test_residents_are_sampled_between_two_moments() -> None:
    here = Residents(lambda: [os.getpid(), 2**22 + 1])
    here.start()
    deadline = time.monotonic() + 20
    here.peak_bytes = 0
    while not here.peak_bytes and time.monotonic() < deadline:
        pass
    here.stop()
    assert here.before_bytes > 0
    assert here.after_bytes > 0
    assert here.peak_bytes >= here.after_bytes
    assert here.device_peak_bytes is None
    assert resident_bytes([2**22 + 1]) == 0
