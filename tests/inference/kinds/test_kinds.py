"""Each kind's procedure against a target of known behaviour."""

import json
from typing import Any

import pytest

from inference.errors import InputError
from inference.kinds import KINDS

from .conftest import Bench, Conduct, codes

CHECKLIST = {"S1", "S2", "S3", "S4", "S5", "S6", "S7", "S12", "S13", "M24", "M27", "M28"}


def test_every_kind_of_the_checklist_is_there() -> None:
    assert {kind.code for kind in KINDS.values()} == CHECKLIST
    assert all(name == kind.name for name, kind in KINDS.items())


@pytest.mark.parametrize(
    "name", ["short_request", "long_context", "high_concurrency", "streaming", "long_answer"]
)
async def test_a_single_load_states_facts_with_n(name: str, run_kind: Conduct) -> None:
    conducted, block, _course = await run_kind(name, Bench(), concurrency=4, output_tokens=20)

    assert len(conducted.result.records) == 8
    assert block["statements"]
    json.dumps(block, allow_nan=False)
    assert [stage["number"] for stage in block["stages"]] == [1]
    assert block["stages"][0]["ended_ms"] >= block["stages"][0]["started_ms"]


async def test_concurrency_that_was_asked_for_is_reached(run_kind: Conduct) -> None:
    _conducted, block, _course = await run_kind("high_concurrency", Bench(), concurrency=4)
    assert block["facts"]["peak_at_once"] == 4
    assert "concurrency_reached" in codes(block)


async def test_a_stall_is_found_and_counted(run_kind: Conduct) -> None:
    class Stalling(Bench):
        async def _serve(self, request: Any, trace: Any) -> None:
            await super()._serve(request, trace)
            trace.token_ns = [*trace.token_ns[:-1], trace.token_ns[-1] + 900_000_000]
            trace.reads = [(ns, 1) for ns in trace.token_ns]

    _conducted, block, _course = await run_kind("streaming", Stalling(), output_tokens=12)
    assert block["facts"]["stalls"] == 8
    assert block["facts"]["longest_gap_max_ms"] > 900
    assert block["facts"]["longest_gap_share_p50"] > 0.9
    assert codes(block) == ["stream_stalls"]


INTERRUPTIONS = [{"phase": "decode", "every": 4, "after_tokens": 2}]


async def test_what_was_left_is_watched_until_it_is_back(run_kind: Conduct) -> None:
    conducted, block, course = await run_kind(
        "interruption", Bench(service_s=0.1), interruptions=INTERRUPTIONS
    )

    assert [stage["name"] for stage in block["stages"]] == ["rest", "load", "wave"]
    assert set(course.rules.values()) == {"decode"}
    row = block["tables"]["phases"][0]
    assert (row["asked"], row["left_there"], row["ended_before"]) == (4, 4, 0)
    assert row["release_n"] == 4
    gauges = {row["gauge"]: row["state"] for row in block["tables"]["gauges"]}
    assert gauges["running"] == gauges["kv_blocks_used"] == "back"
    assert block["facts"]["level_back_ms"] is not None
    assert "level_back" in codes(block)
    indexes = [record.index for record in conducted.result.records]
    assert indexes == sorted(set(indexes))


async def test_blocks_that_stay_are_named(run_kind: Conduct) -> None:
    class Leaking(Bench):
        async def _serve(self, request: Any, trace: Any) -> None:
            await super()._serve(request, trace)
            self.held += request.cancel is not None

    bench = Leaking(service_s=0.1)
    _conducted, block, _course = await run_kind(
        "interruption", bench, options={"release_limit_s": 1}, interruptions=INTERRUPTIONS
    )
    assert "level_not_back" in codes(block)
    states = {row["gauge"]: row["state"] for row in block["tables"]["gauges"]}
    assert (states["kv_blocks_used"], states["running"]) == ("held", "back")
    assert block["facts"]["level_back_ms"] is None


async def test_a_frozen_gauge_proves_nothing(run_kind: Conduct, monkeypatch: pytest.MonkeyPatch) -> None:
    """Gauges of an endpoint that stand still after the cut say nothing of release (M18)."""
    monkeypatch.setattr("inference.kinds.levels.PROBE_AFTER_S", 0.1)
    bench = Bench(kind="http")
    told = iter([{"running": 0, "kv_usage": 0.0}])
    bench.gauges = lambda: next(told, {"running": 2, "kv_usage": 0.99})
    _conducted, block, _course = await run_kind(
        "interruption", bench, options={"release_limit_s": 1}, interruptions=INTERRUPTIONS
    )
    assert {row["state"] for row in block["tables"]["gauges"]} == {"frozen"}
    assert "gauges_frozen" in codes(block)
    assert block["facts"]["level_back_ms"] is None
    assert any(request.id == "release-probe" for request in bench.seen)


async def test_cycles_show_what_stays(run_kind: Conduct) -> None:
    class Growing(Bench):
        rss = 100 * 2**20

        async def telemetry(self) -> dict[str, Any]:
            self.rss += 30 * 2**20
            return {"rss_bytes": self.rss, "kv_used_bytes": 0}

    _conducted, block, _course = await run_kind(
        "resource_reclaim", Growing(), options={"rest_s": 0, "cycles": 5}
    )
    assert len(block["tables"]["cycles"]) == 5
    assert block["facts"]["rss_slope_bytes"] == pytest.approx(60 * 2**20)
    assert codes(block) == ["memory_leaks", "cache_returns"]
    _conducted, block, _course = await run_kind(
        "resource_reclaim", Bench(), options={"rest_s": 0, "cycles": 2}
    )
    assert codes(block) == ["memory_not_told"]


async def test_classes_keep_their_shares_and_are_compared(run_kind: Conduct) -> None:
    conducted, block, _course = await run_kind(
        "production_replay", Bench(), options={"classes": "chat 75% 16 4\nreport 25 32 24"}, requests=40
    )
    rows = {row["class"]: row for row in block["tables"]["classes"]}
    assert (rows["chat"]["requests"], rows["report"]["requests"]) == (30, 10)
    assert rows["report"]["output_p50_tokens"] == 24
    assert "class_that_waits" in codes(block)
    order = [record.application for record in conducted.result.records]
    assert order[:30] != ["chat"] * 30


async def test_a_line_that_is_no_class_is_named(run_kind: Conduct) -> None:
    with pytest.raises(InputError, match="'chat many'"):
        await run_kind("production_replay", Bench(), options={"classes": "chat many"})


LIMITS = [{"metric": "ttft_ms", "percentile": "p95", "max": 60.0}]


async def test_the_capacity_lies_between_what_held_and_what_did_not(run_kind: Conduct) -> None:
    """Two slots of 20 ms serve 100 a second: that is where the limit on the first token breaks."""
    conducted, block, _course = await run_kind(
        "capacity_search",
        Bench(service_s=0.02, slots=2),
        options={"rate_low": 60, "rate_high": 400, "steps": 3, "step_requests": 80},
        limits=[LIMITS[0] | {"max": 250.0}],
    )
    facts, steps = block["facts"], block["tables"]["steps"]
    assert len(steps) <= 3
    assert steps[0]["verdict"] == "pass"
    assert steps[1]["verdict"] == "fail"
    assert 60 <= facts["capacity_requests_per_second"] < 400
    assert facts["capacity_low_requests_per_second"] <= facts["capacity_requests_per_second"]
    assert steps[0]["limits"][0]["n"] == 80
    assert len(conducted.result.records) == 80, "the run's own figures are those of the load that held"


async def test_a_search_without_limits_is_refused(run_kind: Conduct) -> None:
    with pytest.raises(InputError, match="at least one limit"):
        await run_kind("capacity_search", Bench())


async def test_what_never_breaks_is_no_capacity(run_kind: Conduct) -> None:
    options = {"rate_low": 100, "rate_high": 400, "steps": 3, "step_requests": 10}
    _conducted, block, _course = await run_kind("capacity_search", Bench(), options=options, limits=LIMITS)
    assert codes(block) == ["capacity_above"]
    slow = Bench(service_s=0.5)
    _conducted, block, _course = await run_kind("capacity_search", slow, options=options, limits=LIMITS)
    assert codes(block) == ["capacity_below"]


async def test_throttling_finds_the_rate_and_keeps_the_wait(run_kind: Conduct) -> None:
    _conducted, block, _course = await run_kind(
        "throttling",
        Bench(service_s=0.02, slots=1, room=1),
        options={"rate_low": 20, "rate_high": 400, "steps": 3, "step_requests": 12},
    )
    facts = block["facts"]
    assert facts["refused_requests"] > 0
    assert facts["retry_after_named_share"] == 1.0
    assert facts["served_after_wait"] == facts["sent_again"]
    assert codes(block) == ["refused_from", "retry_after_kept"]


async def test_nobody_refused_is_said(run_kind: Conduct) -> None:
    options = {"rate_low": 50, "rate_high": 200, "steps": 2, "step_requests": 5}
    _conducted, block, _course = await run_kind("throttling", Bench(), options=options)
    assert codes(block) == ["nobody_refused"]


async def test_a_soak_runs_for_its_time_and_states_its_drift(run_kind: Conduct) -> None:
    conducted, block, course = await run_kind("soak", Bench(), options={"duration_s": 1, "windows": 4})
    stage = course.stages[0]
    assert 0.9 < (stage.ended_ns - stage.started_ns) / 1e9 < 3
    assert len(conducted.result.records) > 50
    assert not conducted.result.interrupted
    assert {record.outcome for record in conducted.result.records} == {"success"}
    rows = block["tables"]["windows"]
    assert [row["window"] for row in rows] == [1, 2, 3, 4]
    assert all(row["requests"] for row in rows)
    assert block["facts"]["tpot_p95_per_hour_low_ms"] < block["facts"]["tpot_p95_per_hour_high_ms"]


async def test_prompts_are_kept_for_people_to_judge(run_kind: Conduct) -> None:
    conducted, _block, _course = await run_kind("short_request", Bench())
    assert all("Case" in record.detail["prompt"] for record in conducted.result.records)


async def test_a_switch_needs_a_target_that_can(run_kind: Conduct) -> None:
    with pytest.raises(InputError, match="only the embedded engine"):
        await run_kind("model_switch", Bench(kind="http"))


def test_options_are_held_to_their_range() -> None:
    kind = KINDS["soak"]
    assert kind.values({})["windows"] == 6
    with pytest.raises(InputError, match="windows"):
        kind.values({"windows": 1})
    with pytest.raises(InputError, match="no option"):
        kind.values({"rate_low": 1})
