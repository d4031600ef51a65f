"""The five suspects for a slow service (D1) and the five causes of a late first token (D2), each judged."""

from collections.abc import Mapping
from typing import Any

from inference.diagnosis.judgement import CLEAR_SHARE, Judgement, by_share
from inference.diagnosis.resources import Resources
from inference.diagnosis.shares import TimeSplit

#: up to so many requests in the batch on average, a request has the model for itself
ALONE = 1.5


def suspects(split: TimeSplit, summary: Mapping[str, Any], resources: Resources) -> list[Judgement]:
    """First token, generation speed, memory shortage, queueing, the model itself: each with its figures."""
    return [
        _first_token(split, summary),
        _generation(split, summary),
        _memory(summary, resources),
        _queueing(split, summary, resources),
        _model(split, resources),
    ]


def _first_token(split: TimeSplit, summary: Mapping[str, Any]) -> Judgement:
    ttft = summary.get("ttft_ms") or {}
    figures = {"ttft_p50_ms": ttft.get("p50"), "ttft_p95_ms": ttft.get("p95"), "n": ttft.get("n") or 0}
    if not ttft.get("n"):
        return Judgement("first_token", "not_observed", figures, "stream_the_answers")
    after = split.shares.get("decode")
    share = None if after is None or split.source == "none" else 1.0 - after
    return _or_by_limit(
        by_share("first_token", share, least=CLEAR_SHARE, settle="server_times", **figures),
        summary,
        ("ttft_ms", "ttfv_ms"),
    )


def _generation(split: TimeSplit, summary: Mapping[str, Any]) -> Judgement:
    tpot = summary.get("tpot_ms") or {}
    figures = {"tpot_p50_ms": tpot.get("p50"), "tpot_p95_ms": tpot.get("p95"), "n": tpot.get("n") or 0}
    if not tpot.get("n"):
        return Judgement("generation", "not_observed", figures, "stream_the_answers")
    share = split.shares.get("decode")
    return _or_by_limit(
        by_share("generation", share, least=CLEAR_SHARE, settle="server_times", **figures),
        summary,
        ("tpot_ms", "itl_ms", "max_gap_ms", "decode_ms"),
    )


def _or_by_limit(found: Judgement, summary: Mapping[str, Any], metrics: tuple[str, ...]) -> Judgement:
    """A limit that is not held makes its phase a suspect, however small its share of the time is."""
    broken = [
        limit
        for limit in summary.get("limits") or ()
        if limit.get("metric") in metrics and limit.get("holds") is False
    ]
    if not broken:
        return found
    limit = broken[0]
    figures = dict(found.figures) | {
        "limit_metric": limit["metric"],
        "limit_percentile": limit.get("percentile"),
        "limit_ms": limit.get("bound", limit.get("max")),
        "value_ms": limit.get("value"),
    }
    return Judgement(f"{found.code}_beyond_limit", "supported", figures)


def _memory(summary: Mapping[str, Any], resources: Resources) -> Judgement:
    figures = {
        "kv_usage_peak": resources.kv_usage_peak,
        "preemptions": resources.preemptions,
        "oom_steps": resources.oom_steps,
        "cache_hit_rate": resources.cache_hit_rate,
    }
    if not resources.memory_observed:
        return Judgement("memory", "not_observed", figures, "server_metrics")
    return Judgement("memory", "supported" if resources.memory_short else "ruled_out", figures)


def _queueing(split: TimeSplit, summary: Mapping[str, Any], resources: Resources) -> Judgement:
    queue = summary.get("queue_wait_ms") or {}
    figures: dict[str, Any] = {
        "queue_wait_p50_ms": queue.get("p50"),
        "queue_wait_p95_ms": queue.get("p95"),
        "waiting_peak": resources.waiting_peak,
        "running_peak": resources.running_peak,
    }
    share = split.shares.get("queue_wait")
    if share is None and resources.waiting_peak is not None:  # nobody's wait was told, but that none waited
        verdict: Any = "ruled_out" if resources.waiting_peak == 0 else "supported"
        return Judgement("queueing_by_gauge", verdict, figures)
    return by_share("queueing", share, settle="server_times", **figures)


def _model(split: TimeSplit, resources: Resources) -> Judgement:
    """The model's own computation: the place only where requests had it (nearly) for themselves."""
    computed = [split.sums_ms.get(name) for name in ("prefill_compute", "decode_compute")]
    whole = sum(max(0.0, split.sums_ms.get(part) or 0.0) for part in split.shares)
    share = sum(value or 0.0 for value in computed) / whole if any(computed) and whole else None
    figures = {"share": share, "running_mean": resources.running_mean}
    if share is None:
        return Judgement("model", "not_observed", figures, "run_alone")
    if share < CLEAR_SHARE:
        return Judgement("model", "ruled_out", figures)
    if resources.running_mean is None or resources.running_mean > ALONE:
        return Judgement("model_shared", "not_observed", figures, "run_alone")
    return Judgement("model", "supported", figures)


def first_token_causes(split: TimeSplit, summary: Mapping[str, Any], resources: Resources) -> list[Judgement]:
    """D2: queueing, context computation, model load, network, throttling, as shares of the time before it.

    TTFT is never taken for prefill (X8): what no cause explains is the figure `unexplained_share` of each.
    """
    queue_ms, load_ms = split.sums_ms.get("queue_wait"), split.sums_ms.get("model_load")
    parts = {
        "queueing": None if queue_ms is None else max(0.0, queue_ms - (load_ms or 0.0)),
        "context_computation": split.sums_ms.get("prefill"),
        "model_load": load_ms if load_ms is not None or queue_ms is None else 0.0,
        "network": split.sums_ms.get("network"),
        "throttling": split.sums_ms.get("throttled"),
    }
    unexplained = max(0.0, split.sums_ms.get("unexplained") or 0.0)
    whole = sum(value for value in parts.values() if value is not None) + unexplained
    shares = {name: None if value is None or not whole else value / whole for name, value in parts.items()}
    state: dict[str, dict[str, Any]] = {
        "queueing": {"waiting_peak": resources.waiting_peak, "running_peak": resources.running_peak},
        "context_computation": {
            "input_tokens_p50": (summary.get("input_tokens_per_request") or {}).get("p50"),
            "cache_hit_rate": resources.cache_hit_rate,
        },
    }
    settle = {"model_load": "server_times", "network": "server_times", "throttling": "server_times"}
    found = [
        by_share(
            f"ttft_{name}",
            share,
            settle=settle.get(name, "server_times"),
            ms_per_request=None if parts[name] is None or not split.n else (parts[name] or 0.0) / split.n,
            unexplained_share=unexplained / whole if whole else None,
            **state.get(name, {}),
        )
        for name, share in shares.items()
    ]
    return [_throttled(found[-1], summary) if item.code == "ttft_throttling" else item for item in found]


def _throttled(found: Judgement, summary: Mapping[str, Any]) -> Judgement:
    """Refusals by rate limit name throttling even where no request came through after a wait."""
    refused = (summary.get("requests") or {}).get("rate_limited") or 0
    attempted = summary.get("attempted") or 0
    figures = dict(found.figures) | {"n": refused, "attempted": attempted}
    if refused:
        return Judgement("ttft_throttling", "supported", figures)
    if found.verdict == "not_observed" and attempted:  # nobody was sent away, so nobody waited for it
        return Judgement("ttft_throttling", "ruled_out", figures)
    return Judgement(found.code, found.verdict, figures, found.settle)
