"""Limits: which figures, which interval, and when nothing may be said."""

from typing import Any

import pytest

from inference.criteria import judge_limits, normalised, percentile_interval, samples_needed
from inference.stats import summarise
from tests.inference.diagnosis.making import timed


def judged(limit: dict[str, Any], ttfts: list[float], **summary: Any) -> dict[str, Any]:
    records = [timed(i, sent_ms=i, prefill=ttft, decode=100.0) for i, ttft in enumerate(ttfts)]
    return judge_limits([limit], records, summarise(records) | summary)[0]


P95 = {"metric": "ttft_ms", "percentile": "p95", "max": 800.0}


def test_a_limit_of_before_keeps_its_meaning() -> None:
    assert normalised(P95) == {
        "metric": "ttft_ms",
        "percentile": "p95",
        "bound": 800.0,
        "unit": "ms",
        "direction": "max",
        "max": 800.0,
    }
    seconds = {"metric": "ttft_ms", "percentile": "p95", "bound": 0.8, "unit": "s", "direction": "max"}
    assert normalised(seconds)["bound"] == 800.0
    assert normalised({"metric": "output_tokens_per_second", "bound": 50})["direction"] == "min"


@pytest.mark.parametrize(
    ("ttfts", "verdict", "reason"),
    [
        ([100.0] * 200, "pass", "limit_holds"),
        ([900.0] * 200, "fail", "limit_broken"),
        ([100.0] * 20, "inconclusive", "limit_few_samples"),
        ([900.0] * 20, "fail", "limit_broken"),
        ([100.0] * 190 + [900.0] * 10, "inconclusive", "limit_overlaps"),
        ([], "inconclusive", "limit_not_observed"),
    ],
)
def test_the_interval_decides(ttfts: list[float], verdict: str, reason: str) -> None:
    found = judged(P95, ttfts)

    assert (found["verdict"], found["reason"], found["n"]) == (verdict, reason, len(ttfts))


def test_too_few_samples_say_how_many_would_do() -> None:
    found = judged(P95, [100.0] * 20)

    assert found["needed"] == samples_needed(0.95) == 72
    assert found["interval"] == [100.0, None]
    assert found["holds"] is True


def test_the_worst_of_all_is_judged_as_it_is() -> None:
    assert judged({"metric": "ttft_ms", "percentile": "max", "max": 800.0}, [1.0, 900.0])["verdict"] == "fail"


def test_an_error_rate_has_an_interval_of_its_own() -> None:
    limit = {"metric": "error_rate", "bound": 0.05, "direction": "max"}

    assert judged(limit, [1.0] * 10)["verdict"] == "inconclusive"
    assert judged(limit, [1.0] * 200)["verdict"] == "pass"
    assert judged(limit, [1.0] * 200, error_rate=0.4)["verdict"] == "fail"


def test_a_lower_bound() -> None:
    limit = {"metric": "output_tokens_per_second", "bound": 100.0, "unit": "tokens/s", "direction": "min"}

    assert judged(limit, [1.0] * 5, output_tokens_per_second=120.0)["verdict"] == "pass"
    assert judged(limit, [1.0] * 5, output_tokens_per_second=90.0)["verdict"] == "fail"
    assert judged(limit, [1.0] * 5, output_tokens_per_second=None)["reason"] == "limit_not_observed"


def test_without_requests_only_a_clear_value_is_judged() -> None:
    def alone(p95: float) -> dict[str, Any]:
        return judge_limits([P95], [], {"ttft_ms": {"n": 500, "p95": p95}})[0]

    assert alone(100.0)["verdict"] == "pass"
    assert alone(790.0)["reason"] == "limit_no_interval"
    assert judge_limits([P95], [], {"ttft_ms": {"n": 9, "p95": 790.0}})[0]["reason"] == "limit_few_samples"


def test_the_interval_covers_the_percentile_by_order_statistics() -> None:
    """For the median of 100 values the ranks are 40 and 61 (tables of the sign test)."""
    assert percentile_interval([float(i) for i in range(1, 101)], 0.5) == (40.0, 61.0)


def test_gaps_count_by_their_requests() -> None:
    records = [timed(i, prefill=1.0, decode=100.0) for i in range(5)]
    for record in records:
        record.reads = [(k * 20_000_000, 1) for k in range(100)]
    limit = {"metric": "itl_ms", "percentile": "p95", "bound": 50.0}

    found = judge_limits([limit], records, summarise(records))[0]

    assert (found["n"], found["reason"]) == (495, "limit_few_samples")


def test_goodput_asks_each_request_only_what_it_can_answer() -> None:
    records = [timed(i, prefill=100.0 * i, decode=10.0) for i in range(10)]
    limits = [P95, {"metric": "error_rate", "bound": 0.01}]

    assert summarise(records, limits=limits)["goodput"] == 0.9
