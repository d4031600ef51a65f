"""Percentiles, the summary of a run, its validity, and live figures."""

import json
from typing import Any

import numpy as np
import pytest

from inference.records import RequestRecord, Trace
from inference.stats import figures, live_figures, summarise
from inference.targets.base import TargetInfo
from inference.telemetry.series import memory_watermark

MS = 1_000_000
S = 1_000_000_000


def record(
    number: int = 1,
    *,
    start_ms: float = 0,
    ttft_ms: float | None = 100,
    tokens: int | None = 5,
    **changes: Any,
) -> RequestRecord:
    """Sent at `start_ms`; `tokens` tokens, the first after `ttft_ms`, then one every 10 ms."""
    sent_ns = round((1000 + start_ms) * MS)
    reads = [(sent_ns + round(((ttft_ms or 0) + 10 * i) * MS), 1) for i in range(tokens or 0)]
    last_ns = reads[-1][0] if reads else None
    fields: dict[str, Any] = {
        "id": f"r{number}",
        "outcome": "success",
        "finish_reason": "stop",
        "error": None,
        "text": "x",
        "reasoning_text": "",
        "token_ids": None,
        "input_tokens": 20,
        "cached_tokens": None,
        "output_tokens": tokens,
        "output_tokens_source": "usage",
        "ttft_ms": ttft_ms,
        "ttfv_ms": ttft_ms,
        "ttfot_ms": ttft_ms,
        "tpot_ms": 10.0 if (tokens or 0) > 1 else None,
        "e2e_ms": None if last_ns is None else (last_ns - sent_ns) / MS,
        "max_gap_ms": 10.0 if (tokens or 0) > 1 else None,
        "stamps": {"sent_ns": sent_ns, "last_ns": last_ns, "finished_ns": last_ns},
        "intervals_ms": {"queue_wait": 30.0, "prefill": 60.0, "decode": 10.0 * ((tokens or 1) - 1)},
        "reads": reads,
    }
    return RequestRecord(**{**fields, **changes})


def failed(number: int, outcome: str, **changes: Any) -> RequestRecord:
    return record(number, ttft_ms=None, tokens=None, outcome=outcome, error="x", input_tokens=None, **changes)


def test_percentiles_interpolate_linearly_like_numpy() -> None:
    values = [float(x) for x in np.random.default_rng(3).exponential(100, 137)]
    found = figures(values)
    for p in (50, 90, 95, 99):
        assert found[f"p{p}"] == pytest.approx(float(np.percentile(values, p)))
    assert (found["n"], found["max"], found["thin"]) == (137, max(values), False)


def test_nothing_observed_is_null_and_few_are_thin() -> None:
    assert figures([None, None]) == {
        "n": 0, "mean": None, "p50": None, "p90": None, "p95": None, "p99": None, "max": None, "thin": True,
    }  # fmt: skip
    assert figures([7.0])["p99"] == 7.0
    assert figures(range(99))["thin"] is True


def test_a_summary_has_the_contract_s_fields_and_is_json() -> None:
    summary = summarise(
        [record(i, start_ms=100 * i) for i in range(4)], load={"concurrency": 2, "open_loop": False}
    )
    assert summary["schema"] == "phasegate-run/1"
    assert summary["requests"]["success"] == summary["attempted"] == 4
    assert sum(summary["requests"].values()) == 4
    assert summary["window_s"] == pytest.approx(0.44)
    assert (summary["input_tokens"], summary["output_tokens"]) == (80, 20)
    assert summary["output_tokens_per_second"] == pytest.approx(20 / 0.44)
    assert summary["total_tokens_per_second"] == pytest.approx(100 / 0.44)
    assert summary["requests_per_second"] == pytest.approx(4 / 0.44)
    assert summary["itl_ms"]["n"] == 16
    for name in ("ttft_ms", "tpot_ms", "itl_ms", "e2e_ms", "queue_wait_ms", "prefill_ms", "decode_ms"):
        assert {"n", "mean", "p50", "p90", "p95", "p99", "max"} <= set(summary[name])
    for name in ("cache_hit_rate", "memory", "engine"):
        assert summary[name] is None
    assert summary["validity"]["valid"] is True
    json.dumps(summary, allow_nan=False)


def test_only_successes_are_in_percentiles_and_all_attempts_in_rates() -> None:
    rows = [record(1), record(2), failed(3, "rate_limited"), failed(4, "cancelled")]
    limits = [
        {"metric": "ttft_ms", "percentile": "p95", "max": 150},
        {"metric": "prefill_ms", "percentile": "p95", "max": 59},
    ]
    summary = summarise(rows, limits=limits)
    assert summary["ttft_ms"]["n"] == 2
    assert summary["error_rate"] == 0.25  # the cancelled one was asked for
    assert [limit["holds"] for limit in summary["limits"]] == [True, False]
    assert summary["goodput"] == 0.0
    assert summarise(rows, limits=limits[:1])["goodput"] == 0.5


def test_a_limit_on_what_was_not_observed_is_neither_met_nor_broken() -> None:
    limits = [{"metric": "ttft_ms", "percentile": "p95", "max": 150}]
    summary = summarise([record(1, ttft_ms=None)], limits=limits)
    assert summary["limits"][0]["holds"] is None
    assert summary["goodput"] == 0.0


def test_one_token_is_neither_good_nor_bad_for_tpot() -> None:
    limits = [{"metric": "tpot_ms", "percentile": "p95", "max": 5}]
    assert summarise([record(1, tokens=1), record(2)], limits=limits)["goodput"] == 0.5


def test_what_overlaps_the_warm_up_or_the_cool_down_is_excluded_and_counted() -> None:
    warm = record(0, start_ms=0, warmup=True)  # until 140 ms
    rows = [warm, record(1, start_ms=100), record(2, start_ms=150), record(3, start_ms=900)]
    summary = summarise(rows, cooldown_from_ns=1_900 * MS)
    assert (summary["warmup_requests"], summary["excluded_requests"], summary["attempted"]) == (1, 2, 1)


def test_cache_hits_are_counted_in_tokens_of_admitted_requests() -> None:
    rows = [record(1, cached_tokens=0), record(2, cached_tokens=16), failed(3, "failed")]
    assert summarise(rows)["cache_hit_rate"] == pytest.approx(16 / 40)


@pytest.mark.parametrize(
    ("check", "reason"),
    [
        ({"dispatch_delay_ms": {"p99": 80.0}}, "requests left the client late: p99 80.0 ms, limit 50 ms"),
        ({"loop_lag_ms": {"p99": 51.0}}, "the client's event loop lagged: p99 51.0 ms, limit 50 ms"),
    ],
)
def test_a_late_client_makes_the_run_invalid(check: dict[str, Any], reason: str) -> None:
    verdict = summarise([record(1)], self_check=check)["validity"]
    assert (verdict["valid"], verdict["reasons"]) == (False, [reason])


def test_few_samples_are_judged_by_p90_and_the_engine_s_stamps_not_by_the_loop() -> None:
    lag = {"loop_lag_ms": {"p90": 4.0, "p99": 300.0, "thin": True}}
    assert summarise([record(1)], self_check=lag)["validity"]["valid"] is True
    lag = {"loop_lag_ms": {"p90": 4.0, "p99": 300.0, "thin": False}}
    engine = TargetInfo(kind="engine", model="m")
    assert summarise([record(1)], self_check=lag, target=engine)["validity"]["valid"] is True
    assert summarise([record(1)], self_check=lag)["validity"]["valid"] is False


def test_a_run_without_success_is_well_measured_and_lacks_figures() -> None:
    verdict = summarise([failed(1, "failed"), failed(2, "timeout")])["validity"]
    assert verdict["lacks"] == ["none of 2 requests succeeded"]
    assert (verdict["valid"], verdict["reasons"]) == (True, [])
    assert summarise([])["validity"]["lacks"] == ["no request was measured"]
    assert summarise([record(1)], interrupted=True)["validity"]["valid"] is False


def test_memory_is_split_and_its_peak_kept() -> None:
    samples = [
        {
            "at_ms": 0,
            "weights_bytes": 100,
            "kv_used_bytes": 5,
            "kv_usage": 0.5,
            "running": 1,
            "preemptions_total": 3,
        },
        {
            "at_ms": 500,
            "weights_bytes": 100,
            "kv_used_bytes": 9,
            "kv_usage": 0.9,
            "running": 3,
            "preemptions_total": 4,
        },
        {
            "at_ms": 900,
            "weights_bytes": 100,
            "kv_used_bytes": 0,
            "kv_usage": 0.0,
            "rss_bytes": 700,
            "running": 0,
            "preemptions_total": 4,
        },
    ]
    assert memory_watermark(samples) == {
        "weights_bytes": 100,
        "kv_used_peak_bytes": 9,
        "kv_usage_peak": 0.9,
        "rss_peak_bytes": 700,
        "samples": 3,
    }
    engine = summarise([record(1)], telemetry=samples)["engine"]
    assert (engine["running_peak"], engine["preemptions"]) == (3, 1)


def test_concurrency_is_what_was_really_under_way() -> None:
    rows = [record(1), record(2), record(3, start_ms=140)]
    found = summarise(rows, load={"concurrency": 2})["concurrency"]
    assert (found["asked"], found["peak"]) == (2, 2)
    assert found["mean"] == pytest.approx(420 / 280)


def test_live_figures_count_the_tokens_of_running_requests() -> None:
    running = Trace("r9", reads=[(2 * S - 300 * MS, 2), (2 * S - 2 * S + 5, 7)])
    engine = Trace("r8", token_ns=[2 * S - 100 * MS, 2 * S - 50 * MS])
    found = live_figures([record(1)], window_s=1.0, now_ns=2 * S, in_flight=[running, engine])
    assert found["output_tokens_per_second"] == 5 + 2 + 2
    assert (found["ttft_ms_p50"], found["queue_wait_ms_p95"], found["error_rate"]) == (100, 30, 0.0)
    nothing = live_figures([], window_s=1.0)
    assert nothing["ttft_ms_p50"] is nothing["error_rate"] is nothing["output_tokens_per_second"] is None
