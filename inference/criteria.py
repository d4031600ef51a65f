"""Limits as data: one figure, its percentile, its bound → pass, fail or inconclusive, with the figures.

A limit is `{"metric", "percentile", "bound", "unit", "direction"}`. Times need a percentile, since a mean
hides the tail (M32); figures of the whole run (error rate, throughput) have none. What decides is the 95 %
interval around the run's own figure: within the bound → pass, beyond it → fail, across it → inconclusive.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from inference.intervals import share_interval
from inference.recording.reads import gaps_ns

Verdict = Literal["pass", "fail", "inconclusive"]
Direction = Literal["max", "min"]

PERCENTILES = ("p50", "p90", "p95", "p99", "max")
ALPHA = 0.05
#: pooled gaps beyond this many are thinned by whole requests before their interval is read
MOST_GAPS = 2_000_000
#: a figure without an interval must be so far from its bound to be judged at all
CLEAR_DISTANCE = 0.1
NS_PER_MS = 1e6


@dataclass(frozen=True)
class Metric:
    """What a limit may be put on: its unit, which way is good, and whether each request has its own value."""

    unit: str  # ms, share, tokens/s, requests/s
    direction: Direction
    per_request: bool = False


_TIME = Metric("ms", "max", per_request=True)
METRICS: dict[str, Metric] = {
    **dict.fromkeys(
        (
            "ttft_ms",
            "ttfv_ms",
            "ttfot_ms",
            "tpot_ms",
            "itl_ms",
            "max_gap_ms",
            "queue_wait_ms",
            "prefill_ms",
            "decode_ms",
            "release_ms",
            "e2e_ms",
        ),
        _TIME,
    ),
    "error_rate": Metric("share", "max"),
    "cache_hit_rate": Metric("share", "min"),
    "kv_usage_peak": Metric("share", "max"),
    "checks_pass_rate": Metric("share", "min"),
    "output_tokens_per_second": Metric("tokens/s", "min"),
    "requests_per_second": Metric("requests/s", "min"),
}
#: unit as written -> (its own unit, factor)
UNITS: dict[str, tuple[str, float]] = {
    "ms": ("ms", 1.0),
    "s": ("ms", 1000.0),
    "share": ("share", 1.0),
    "%": ("share", 0.01),
    "tokens/s": ("tokens/s", 1.0),
    "requests/s": ("requests/s", 1.0),
}


def normalised(limit: Mapping[str, Any]) -> dict[str, Any]:
    """The limit with all its fields; `{"metric", "percentile", "max"}` has an upper bound."""
    metric = METRICS.get(limit["metric"], _TIME)
    direction = limit.get("direction") or ("min" if "min" in limit else "max" if "max" in limit else None)
    direction = direction or metric.direction
    bound = limit.get("bound", limit.get("max", limit.get("min")))
    if bound is None:
        raise ValueError(f"the limit on {limit['metric']} has no bound")
    unit, factor = UNITS[limit.get("unit") or metric.unit]
    found = {
        "metric": limit["metric"],
        "percentile": limit.get("percentile"),
        "bound": float(bound) * factor,
        "unit": unit,
        "direction": direction,
    }
    return found | ({"max": found["bound"]} if direction == "max" else {})


def judge_limits(
    limits: Sequence[Mapping[str, Any]], records: Sequence[Any], summary: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """Each limit with `value`, `n`, `interval` ([low, high], null where it is not known), `holds` (by the
    value alone), `verdict` and `reason` (a code with `needed`, the samples that would do, where they lack).

    `records` are the requests of the measured window, `summary` the figures over them. Without records
    (a submitted summary) only a value far from its bound is judged.
    """
    good = [record for record in records if record.outcome == "success"]
    return [_judge(normalised(limit), good, summary) for limit in limits]


def _judge(limit: dict[str, Any], good: Sequence[Any], summary: Mapping[str, Any]) -> dict[str, Any]:
    value, n = _value(limit, summary)
    low, high = _interval(limit, good, summary)
    holds = None if value is None else within(value, limit)
    found = limit | {"value": value, "n": n, "interval": None, "holds": holds, "needed": None}
    if low is not None or high is not None:
        found["interval"] = [low, high]
    verdict, reason = _decide(limit, value, low, high)
    uncertain = reason in ("limit_few_samples", "limit_no_interval")
    if uncertain and METRICS.get(limit["metric"], _TIME).per_request:
        found["needed"] = samples_needed(share_of(limit["percentile"]))
        if reason == "limit_no_interval" and n < found["needed"]:
            verdict, reason = "inconclusive", "limit_few_samples"
    return found | {"verdict": verdict, "reason": reason}


def _decide(
    limit: Mapping[str, Any], value: float | None, low: float | None, high: float | None
) -> tuple[Verdict, str]:
    if value is None:
        return "inconclusive", "limit_not_observed"
    by_value: tuple[Verdict, str] = (
        ("pass", "limit_holds") if within(value, limit) else ("fail", "limit_broken")
    )
    if limit["percentile"] == "max":
        return by_value
    if low is None and high is None:
        metric = METRICS.get(limit["metric"], _TIME)
        far = abs(value - limit["bound"]) > CLEAR_DISTANCE * abs(limit["bound"])
        return by_value if far or not metric.per_request else ("inconclusive", "limit_no_interval")
    best, worst = (low, high) if limit["direction"] == "max" else (high, low)
    if best is not None and not within(best, limit):
        return "fail", "limit_broken"
    if worst is not None and within(worst, limit):
        return "pass", "limit_holds"
    return "inconclusive", "limit_few_samples" if worst is None else "limit_overlaps"


def within(value: float, limit: Mapping[str, Any]) -> bool:
    """Whether one value keeps the bound."""
    bound = float(limit["bound"])
    return value <= bound if limit["direction"] == "max" else value >= bound


def value_of(record: Any, metric: str) -> float | None:
    """A request's own figure, from its fields or its intervals; gaps have none here."""
    if hasattr(record, metric):
        value = getattr(record, metric)
        return None if value is None else float(value)
    found = record.intervals_ms.get(metric.removesuffix("_ms"))
    return None if found is None else float(found)


def per_request(limits: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The limits that each single request can meet or not: what goodput asks for."""
    return [
        found for limit in limits if METRICS.get((found := normalised(limit))["metric"], _TIME).per_request
    ]


def percentile_interval(ordered: Sequence[float], share: float, independent: int | None = None) -> Any:
    """(low, high): 95 % interval of a percentile (`share` 0–1) of ascending values, by order statistics.

    Free of any assumption on their distribution; an end that so few values cannot give is None.
    `independent` is the number of independent units where values come in clusters (gaps of one request).
    """
    n = len(ordered) if independent is None else independent
    low, high = _rank_shares(share, n)
    if not len(ordered):
        return None, None
    values = np.asarray(ordered, dtype=float)
    ends = [None if end is None else float(np.quantile(values, end)) for end in (low, high)]
    return ends[0], ends[1]


def samples_needed(share: float) -> int:
    """How many values the interval of a percentile needs to have both its ends."""
    if share >= 1.0:
        return 1
    tail = max(share, 1.0 - share)
    return math.ceil(math.log(ALPHA / 2) / math.log(tail))


def share_of(percentile: str | None) -> float:
    """`p95` as 0.95, `max` as 1."""
    if percentile is None or percentile == "max":
        return 1.0
    return float(percentile.removeprefix("p")) / 100


def _rank_shares(share: float, n: int) -> tuple[float | None, float | None]:
    """Which quantiles (0–1) of n values enclose the percentile with 95 % confidence."""
    if n < 2 or not 0 < share < 1:
        return None, None
    counts = np.arange(n + 1)
    logs = np.concatenate(([0.0], np.cumsum(np.log(np.arange(1, n + 1)))))
    chance = logs[n] - logs - logs[::-1] + counts * math.log(share) + (n - counts) * math.log(1 - share)
    below = np.cumsum(np.exp(chance))  # P(at most k values lie below the percentile)
    low = int(np.searchsorted(below, ALPHA / 2, side="right"))  # ranks from 1; 0: there is none
    high = int(np.searchsorted(below, 1 - ALPHA / 2, side="left")) + 1
    return (
        None if low < 1 else (low - 1) / (n - 1),
        None if high > n else (high - 1) / (n - 1),
    )


def _value(limit: Mapping[str, Any], summary: Mapping[str, Any]) -> tuple[float | None, int]:
    """The run's figure and how many samples it rests on."""
    metric = limit["metric"]
    if metric == "kv_usage_peak":
        memory = summary.get("memory") or {}
        return memory.get("kv_usage_peak"), int(memory.get("samples") or 0)
    if metric == "checks_pass_rate":
        checks = summary.get("checks") or {}
        return checks.get("pass_rate"), int(checks.get("n") or 0)
    found = summary.get(metric)
    if isinstance(found, Mapping):
        return found.get(limit["percentile"]), int(found.get("n") or 0)
    counted = "attempted" if metric == "error_rate" else "succeeded"
    return found, int(summary.get(counted) or 0)


def _interval(
    limit: Mapping[str, Any], good: Sequence[Any], summary: Mapping[str, Any]
) -> tuple[float | None, float | None]:
    metric, share = limit["metric"], share_of(limit["percentile"])
    if metric in ("error_rate", "checks_pass_rate"):
        value, n = _value(limit, summary)
        found = None if value is None else share_interval(round(value * n), n)
        return found or (None, None)
    if not METRICS.get(metric, _TIME).per_request or limit["percentile"] == "max":
        return None, None
    if metric == "itl_ms":
        return _gap_interval(good, share)
    values = sorted(value for record in good if (value := value_of(record, metric)) is not None)
    ends: tuple[float | None, float | None] = percentile_interval(values, share)
    return ends


def _gap_interval(good: Sequence[Any], share: float) -> tuple[float | None, float | None]:
    """Gaps of one request are alike, so requests count as the independent ones and not their gaps."""
    total = sum(max(0, len(record.reads or ()) - 1) for record in good)
    kept = good[:: max(1, -(-total // MOST_GAPS))]
    gaps = [found for record in kept if len(found := gaps_ns(record.reads or []))]
    if not gaps:
        return None, None
    ordered = np.sort(np.concatenate(gaps)) / NS_PER_MS
    ends: tuple[float | None, float | None] = percentile_interval(
        ordered.tolist(), share, independent=len(gaps)
    )
    return ends
