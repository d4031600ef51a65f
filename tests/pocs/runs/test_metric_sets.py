"""Metrics that an endpoint's server tells for all requests at once count, and say who told them."""

from typing import Any

from pocs.runs.choices import MetricSet, Validity
from pocs.runs.judgement import judge
from pocs.runs.metric_sets import missing_metrics


def spread(n: int = 40) -> dict[str, Any]:
    return {"n": n, "mean": 2.0, "p50": 1.0, "p90": 3.0, "p95": 4.0, "p99": 5.0, "max": 6.0}


def of_an_endpoint(**fields: Any) -> dict[str, Any]:
    """A summary of a plain endpoint: the client's figures alone."""
    return {
        "attempted": 40,
        "succeeded": 40,
        "ttft_ms": spread(),
        "tpot_ms": spread(),
        "queue_wait_ms": {"n": 0, "mean": None, "p50": None, "p95": None},
        "output_tokens_per_second": 9.0,
        "output_tokens": 99,
        "error_rate": 0.0,
        "cache_hit_rate": None,
        "memory": None,
        "engine": None,
        "server": None,
        "validity": {"valid": True, "reasons": []},
        **fields,
    }


TOLD = {"n": 40, "mean": 0.4, "p50_at_most": 300.0, "p95_at_most": 300.0, "source": "server aggregate"}


def test_a_plain_endpoint_lacks_what_only_a_server_can_tell() -> None:
    assert missing_metrics(MetricSet.MINIMUM_EIGHT, of_an_endpoint()) == ["M5", "M6", "M7", "M8"]


def test_what_the_server_tells_of_all_requests_fills_the_set() -> None:
    told = of_an_endpoint(
        memory={"kv_usage_peak": 0.4, "samples": 9},
        server={"times": {"queue_wait_ms": TOLD}},
        cache_hit_rate=0.3,
        engine={"gpu_utilisation_mean": 0.8},
    )
    assert missing_metrics(MetricSet.MINIMUM_EIGHT, told) == []
    assert judge(MetricSet.POC_SIX, told) == (Validity.VALID, [])


def test_a_mean_of_the_server_without_any_percentile_stands_alone_and_does_not_count() -> None:
    alone = {"n": 40, "mean": 0.4, "p50_at_most": None, "p95_at_most": None}
    assert "M7" in missing_metrics(
        MetricSet.POC_SIX, of_an_endpoint(server={"times": {"queue_wait_ms": alone}})
    )
    none = TOLD | {"n": 0, "mean": None}
    assert "M7" in missing_metrics(
        MetricSet.POC_SIX, of_an_endpoint(server={"times": {"queue_wait_ms": none}})
    )
