"""The first verdict: where the time goes, why the first token is late, and which action fits."""

from typing import Any

import pytest

from inference.diagnosis import diagnose
from inference.records import RequestRecord


def record(*, outcome: str = "success", warmup: bool = False, **intervals: float | None) -> RequestRecord:
    """A request whose intervals are given in ms."""
    return RequestRecord(
        id="r",
        outcome=outcome,  # type: ignore[arg-type]
        finish_reason="stop",
        error=None,
        text="x",
        reasoning_text="",
        token_ids=None,
        input_tokens=10,
        cached_tokens=0,
        output_tokens=5,
        output_tokens_source="engine",
        ttft_ms=None,
        ttfv_ms=None,
        ttfot_ms=None,
        tpot_ms=None,
        e2e_ms=None,
        max_gap_ms=None,
        stamps={},
        intervals_ms=dict(intervals),
        reads=[],
        warmup=warmup,
    )


def spread(p50: float, p95: float | None = None, n: int = 200) -> dict[str, Any]:
    return {"n": n, "mean": p50, "p50": p50, "p95": p50 * 2 if p95 is None else p95}


def summary(**fields: Any) -> dict[str, Any]:
    return {
        "attempted": 200,
        "succeeded": 200,
        "requests": {"success": 200},
        "latency_from": "sent",
        "ttft_ms": spread(100.0),
        "tpot_ms": spread(20.0),
        "queue_wait_ms": spread(10.0),
        "prefill_ms": spread(85.0),
        "decode_ms": spread(400.0),
        "output_tokens_per_second": 100.0,
        **fields,
    }


def codes(verdict: dict[str, Any], part: str = "findings") -> list[str]:
    return [item["code"] for item in verdict[part]]


def figures(verdict: dict[str, Any], code: str) -> dict[str, Any]:
    return next(
        item["figures"] for item in [*verdict["findings"], *verdict["advice"]] if item["code"] == code
    )


@pytest.mark.parametrize(
    ("intervals", "where", "advice"),
    [
        ({"queue_wait": 900.0, "prefill": 50.0, "decode": 50.0}, "queue", "change_batching"),
        ({"queue_wait": 10.0, "prefill": 800.0, "decode": 100.0}, "prefill", "shorten_prompt"),
        ({"queue_wait": 10.0, "prefill": 80.0, "decode": 900.0}, "decode", "give_decode_more"),
        ({"queue_wait": 400.0, "prefill": 100.0, "decode": 400.0}, "mixed", "give_decode_more"),
        ({"network": 900.0, "decode": 100.0}, "unknown", "observe_the_server"),
    ],
)
def test_the_stage_with_most_of_the_time_and_its_action(
    intervals: dict[str, float], where: str, advice: str
) -> None:
    verdict = diagnose([record(**intervals)], summary())

    assert verdict["where"] == where
    assert advice in codes(verdict, "advice")


def test_a_slow_decode_never_leads_to_a_shorter_prompt() -> None:
    """X11."""
    verdict = diagnose([record(queue_wait=1.0, prefill=5.0, decode=900.0)], summary())

    assert "shorten_prompt" not in codes(verdict, "advice")


def test_shares_are_of_the_sum_and_absent_parts_stay_absent() -> None:
    records = [record(prefill=100.0, decode=300.0), record(prefill=300.0, decode=300.0)]

    shares = diagnose(records, summary())["shares"]

    assert shares["prefill"] == pytest.approx(0.4)
    assert shares["decode"] == pytest.approx(0.6)
    assert shares["queue_wait"] is None


def test_only_measured_successes_are_summed() -> None:
    records = [
        record(decode=100.0),
        record(decode=9000.0, outcome="failed"),
        record(queue_wait=9000.0, warmup=True),
    ]

    verdict = diagnose(records, summary())

    assert (verdict["n"], verdict["source"]) == (1, "requests")
    assert verdict["shares"]["decode"] == 1.0


def test_the_wait_for_a_client_slot_counts_only_in_open_loop() -> None:
    records = [record(dispatch_delay=500.0, decode=500.0)]

    assert diagnose(records, summary())["shares"]["dispatch_delay"] is None
    open_loop = diagnose(records, summary(latency_from="scheduled"))
    assert open_loop["shares"]["dispatch_delay"] == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("intervals", "code"),
    [
        ({"queue_wait": 900.0, "prefill": 100.0}, "ttft_by_queueing"),
        ({"queue_wait": 10.0, "prefill": 100.0}, "ttft_by_context_computation"),
        ({"queue_wait": 900.0, "model_load": 890.0, "prefill": 100.0}, "ttft_by_model_load"),
        ({"network": 500.0, "queue_wait": 1.0, "prefill": 10.0}, "ttft_by_network"),
        ({"throttled": 500.0, "queue_wait": 1.0, "prefill": 10.0}, "ttft_by_throttling"),
    ],
)
def test_the_first_token_is_read_with_its_five_causes(intervals: dict[str, float], code: str) -> None:
    """D2, X8: it rests on the queue wait beside it."""
    verdict = diagnose([record(decode=1.0, **intervals)], summary())

    found = figures(verdict, code)
    assert found["ttft_p50_ms"] == 100.0
    assert found["queue_wait_p95_ms"] == 20.0
    assert 0.5 < found["share"] <= 1.0


def test_an_unsplit_first_token_is_not_called_prefill() -> None:
    verdict = diagnose([record(decode=400.0, unexplained=600.0)], summary(prefill_ms=None))

    assert verdict["where"] == "unknown"
    assert figures(verdict, "before_first_token_not_split")["share"] == pytest.approx(0.6)
    assert not [code for code in codes(verdict) if code.startswith("ttft_by")]


def test_nothing_is_said_about_streaming_when_nothing_succeeded() -> None:
    phases = ("ttft_ms", "tpot_ms", "queue_wait_ms", "prefill_ms", "decode_ms")
    nothing = {name: {"n": 0, "p50": None} for name in phases}
    verdict = diagnose([], summary(succeeded=0, requests={"cancelled": 24}, **nothing))

    assert codes(verdict) == ["no_time_observed", "cancelled_on_purpose"]
    assert verdict["advice"] == []


def test_a_first_token_that_was_not_observed_is_said_so() -> None:
    verdict = diagnose([record()], summary(ttft_ms={"n": 0, "p50": None}, tpot_ms={"n": 0, "p50": None}))

    assert {"first_token_not_observed", "generation_speed_not_observed"} <= set(codes(verdict))


def test_throughput_and_speed_of_one_request_agree() -> None:
    """529 tokens/s at 108 ms a token are some 57 requests at once, no contradiction."""
    verdict = diagnose([record(decode=1.0)], summary(output_tokens_per_second=529.0, tpot_ms=spread(108.0)))

    assert figures(verdict, "throughput_and_tpot_agree")["decoding_at_once"] == pytest.approx(57.1, abs=0.1)


def test_memory_shortage_comes_before_a_larger_batch() -> None:
    records = [record(queue_wait=900.0, prefill=10.0, decode=90.0, requeue_wait=40.0)]

    verdict = diagnose(records, summary(memory={"kv_pool_bytes": 100, "kv_used_peak_bytes": 99}))

    assert {"preempted_for_memory", "kv_pool_full"} <= set(codes(verdict))
    advice = codes(verdict, "advice")
    assert advice[0] == "free_memory_first"
    assert "change_batching" not in advice


def test_refusals_name_throttling_and_leave_the_percentiles() -> None:
    """25 successes and 5 refusals by rate limit."""
    found = summary(attempted=30, requests={"success": 25, "rate_limited": 5}, ttft_ms=spread(100.0, n=25))

    verdict = diagnose([record(prefill=100.0)], found)

    assert figures(verdict, "throttled") == {"n": 5, "attempted": 30}
    assert figures(verdict, "thin_sample") == {"n": 25}
    assert "raise_limits_or_slow_down" in codes(verdict, "advice")


def test_stalls_of_decode_ask_for_smaller_chunks() -> None:
    verdict = diagnose([record(decode=100.0, decode_compute=60.0, decode_stall=40.0)], summary())

    assert figures(verdict, "decode_stalls")["share"] == pytest.approx(0.4)
    assert "smaller_prefill_chunks" in codes(verdict, "advice")


def test_without_records_the_summary_speaks() -> None:
    verdict = diagnose([], summary())

    assert (verdict["source"], verdict["where"], verdict["n"]) == ("summary", "decode", 200)
    assert verdict["shares"]["decode"] == pytest.approx(400 / 495)


def test_nothing_observed_is_said_and_no_stage_is_named() -> None:
    verdict = diagnose([], {"attempted": 0})

    assert verdict["where"] == "unknown"
    assert codes(verdict) == ["no_time_observed"]
