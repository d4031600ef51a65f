"""Suspects, causes and tests: each supported, ruled out or not observed, with the figures it rests on."""

from typing import Any

import pytest

from inference.diagnosis import Setting, diagnose
from tests.inference.diagnosis.making import timed
from tests.inference.diagnosis.test_verdict import record, spread, summary


def verdicts(found: dict[str, Any], part: str) -> dict[str, str]:
    return {item["code"]: item["verdict"] for item in found[part]}


def one(found: dict[str, Any], part: str, code: str) -> dict[str, Any]:
    return next(item for item in found[part] if item["code"] == code)


def advice(found: dict[str, Any]) -> list[str]:
    return [item["code"] for item in found["advice"]]


def test_every_suspect_is_judged() -> None:
    """D1: all five, whatever was observed."""
    records = [
        record(queue_wait=700.0, prefill=100.0, prefill_compute=90.0, decode=200.0, decode_compute=150.0)
    ]
    engine = {"preemptions": 0, "running_mean": 4.0, "waiting_peak": 9}

    found = diagnose(records, summary(engine=engine, memory={"kv_usage_peak": 0.4}))

    assert verdicts(found, "suspects") == {
        "first_token": "supported",
        "generation": "ruled_out",
        "memory": "ruled_out",
        "queueing": "supported",
        "model": "ruled_out",
    }
    assert one(found, "suspects", "queueing")["figures"]["waiting_peak"] == 9


def test_what_was_not_told_is_not_ruled_out() -> None:
    found = diagnose([record(decode=100.0, unexplained=50.0)], summary())

    assert verdicts(found, "suspects")["memory"] == "not_observed"
    assert verdicts(found, "suspects")["model"] == "not_observed"
    assert {"server_metrics", "run_alone"} <= set(found["settle"])


def test_a_model_that_is_shared_is_not_accused_of_being_slow() -> None:
    records = [record(prefill=10.0, prefill_compute=10.0, decode=90.0, decode_compute=85.0)]

    alone = diagnose(records, summary(engine={"running_mean": 1.0}))
    shared = diagnose(records, summary(engine={"running_mean": 16.0}))

    assert verdicts(alone, "suspects")["model"] == "supported"
    assert verdicts(shared, "suspects")["model_shared"] == "not_observed"


def test_a_limit_that_is_not_held_makes_a_suspect() -> None:
    limit = {"metric": "ttft_ms", "percentile": "p95", "max": 50.0, "value": 200.0, "holds": False}

    found = diagnose([record(prefill=50.0, decode=950.0)], summary(limits=[limit]))

    assert one(found, "suspects", "first_token_beyond_limit")["figures"]["limit_ms"] == 50.0


def test_the_five_causes_of_the_first_token_are_all_judged() -> None:
    """D2, X8: prefill is one of five, and what nobody explains is said."""
    records = [record(queue_wait=600.0, prefill=200.0, network=10.0, unexplained=190.0, decode=1.0)]

    found = diagnose(records, summary())

    assert verdicts(found, "causes") == {
        "ttft_queueing": "supported",
        "ttft_context_computation": "supported",
        "ttft_model_load": "ruled_out",
        "ttft_network": "ruled_out",
        "ttft_throttling": "ruled_out",
    }
    queueing = one(found, "causes", "ttft_queueing")["figures"]
    assert queueing["share"] == pytest.approx(0.6)
    assert queueing["unexplained_share"] == pytest.approx(0.19)
    assert queueing["ms_per_request"] == pytest.approx(600.0)


def test_refusals_by_rate_limit_are_a_cause_of_the_first_token() -> None:
    """Case 5: 5 of 30 were refused."""
    found = diagnose(
        [record(prefill=100.0)], summary(attempted=30, requests={"success": 25, "rate_limited": 5})
    )

    throttling = one(found, "causes", "ttft_throttling")
    assert throttling["verdict"] == "supported"
    assert (throttling["figures"]["n"], throttling["figures"]["attempted"]) == (5, 30)


def test_prefill_that_grows_with_the_context_and_faster_than_it() -> None:
    """D3: 2 ms a token at 100 tokens, 4 ms at 1,000."""
    records = [
        timed(i, prefill=tokens * (2.0 if tokens < 500 else 4.0), decode=10.0, input_tokens=tokens)
        for i, tokens in enumerate([100, 120, 140] * 4 + [1000, 1100, 1200] * 4)
    ]

    tests = verdicts(diagnose(records, summary()), "tests")

    assert tests["prefill_with_context"] == "supported"
    assert tests["prefill_by_attention"] == "supported"
    assert tests["prefill_waits_for_batch"] == "not_observed"


def test_one_length_says_nothing_of_the_length() -> None:
    records = [timed(i, prefill=100.0 + i, decode=10.0) for i in range(30)]

    found = diagnose(records, summary())

    assert one(found, "tests", "prefill_with_context")["settle"] == "two_input_lengths"


def test_decode_that_slows_with_the_others_in_the_batch() -> None:
    """D4: the first twenty run alone at 10 ms a token, the last twenty all at once at 30."""
    alone = [
        timed(i, sent_ms=i * 1000.0, queue_wait=0.0, prefill=1.0, decode=190.0, tpot_ms=10.0)
        for i in range(20)
    ]
    crowded = [
        timed(20 + i, sent_ms=50_000.0 + i, queue_wait=0.0, prefill=1.0, decode=570.0, tpot_ms=30.0)
        for i in range(20)
    ]

    tests = verdicts(diagnose(alone + crowded, summary()), "tests")

    assert tests["decode_with_batch"] == "supported"
    assert tests["decode_with_context"] == "not_observed"


@pytest.mark.parametrize(
    ("engine", "memory", "expected"),
    [
        ({}, {}, {"memory_short": "not_observed"}),
        ({"preemptions": 0}, {"kv_usage_peak": 0.5}, {"memory_short": "ruled_out"}),
        (
            {"preemptions": 3, "waiting_peak": 8, "oom": 0, "gpu_utilisation_mean": 0.3},
            {"kv_usage_peak": 1.0},
            {
                "memory_makes_queue": "supported",
                "memory_runs_out": "ruled_out",
                "memory_leaves_device_idle": "supported",
            },
        ),
    ],
)
def test_short_memory_is_tested_against_queue_and_device(
    engine: dict[str, Any], memory: dict[str, Any], expected: dict[str, str]
) -> None:
    """D5."""
    tests = verdicts(diagnose([record(decode=1.0)], summary(engine=engine, memory=memory)), "tests")

    assert {code: verdict for code, verdict in tests.items() if code.startswith("memory")} == expected


QUEUED = {"queue_wait": 900.0, "prefill": 50.0, "decode": 50.0}


def test_capacity_is_advised_only_with_evidence_of_a_busy_device() -> None:
    """X7: slow is not too few GPUs."""
    untold = diagnose([record(**QUEUED)], summary())
    idle = diagnose([record(**QUEUED)], summary(engine={"gpu_utilisation_mean": 0.3}))
    busy = diagnose([record(**QUEUED)], summary(engine={"gpu_utilisation_mean": 0.97}))
    short = diagnose(
        [record(**QUEUED)], summary(engine={"gpu_utilisation_mean": 0.97}, memory={"kv_usage_peak": 1.0})
    )

    assert "add_capacity" not in advice(untold)
    assert "measure_the_device_first" in advice(untold)
    assert "add_capacity" not in advice(idle)
    assert "add_capacity" in advice(busy)
    assert "change_batching" not in advice(busy)
    assert "add_capacity" not in advice(short)


def test_a_prefix_shorter_than_a_block_is_named_with_both_numbers() -> None:
    """Case 10: turning the cache on would change nothing."""
    engine = {"prefix_cache_queries": 9000, "prefix_cache_hits": 0}
    setting = Setting(shared_prefix_tokens=240, block_tokens=784)

    found = diagnose([record(prefill=900.0, decode=10.0)], summary(engine=engine), setting=setting)

    assert "share_prefixes" not in advice(found)
    named = one(found, "advice", "prefix_shorter_than_block")["figures"]
    assert (named["shared_prefix_tokens"], named["block_tokens"]) == (240, 784)


def test_the_goal_decides_which_technique_comes_first() -> None:
    """T7–T10: one that fits another goal stays, behind, and each technique names what it may spoil."""
    records = [record(prefill=10.0, decode=900.0)]
    engine = {"running_mean": 2.0}

    def first(goal: Any) -> dict[str, Any]:
        found = diagnose(records, summary(engine=engine), setting=Setting(goal=goal))
        assert found["goal"] == goal
        return found["advice"][0]

    latency, cost = first("latency"), first("cost")

    assert (latency["technique"], latency["serves_goal"]) == ("T2", True)
    assert (cost["technique"], cost["risks"]) == ("T1", ["accuracy", "rollback"])
    assert cost["settle"] == "one_change_against_baseline"


def test_confidence_says_what_keeps_it_down() -> None:
    few = diagnose([record(decode=1.0)], summary())
    many = diagnose(
        [record(decode=1.0)] * 200,
        summary(engine={"gpu_utilisation_mean": 0.9}, memory={"kv_usage_peak": 0.2}),
    )

    assert few["confidence"]["level"] == "low"
    assert few["confidence"]["reasons"][0]["code"] == "confidence_samples"
    assert many["confidence"]["level"] == "high"


def test_the_time_by_place_adds_up() -> None:
    records = [
        record(
            queue_wait=100.0,
            model_load=80.0,
            prefill=50.0,
            decode=200.0,
            decode_stall=40.0,
            requeue_wait=10.0,
        )
    ]

    places = {item["place"]: item["ms"] for item in diagnose(records, summary())["attribution"]}

    assert places["queue"] == 20.0
    assert places["model_load"] == 80.0
    assert (places["decode"], places["stalls"], places["preemption"]) == (150.0, 40.0, 10.0)
    assert places["network"] is None
    assert sum(value or 0.0 for value in places.values()) == 350.0


def test_throughput_of_many_is_no_contradiction() -> None:
    """Case 11: 529 tokens/s at 108 ms a token are some 57 at once."""
    found = diagnose([record(decode=1.0)], summary(output_tokens_per_second=529.0, tpot_ms=spread(108.0)))

    assert "throughput_and_tpot_agree" in [item["code"] for item in found["findings"]]
