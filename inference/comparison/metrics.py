"""Which figures a comparison looks at, in which unit, and which way is better."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from inference.comparison.data import TIMES

Direction = Literal["down", "up"]
PERCENTILES = {"p50": 0.5, "p95": 0.95, "p99": 0.99}


@dataclass(frozen=True)
class Compared:
    """One figure: `percentile` for times, empty for figures of the whole run."""

    metric: str
    percentile: str
    unit: str  # ms, share, tokens/s, requests/s, bytes, money
    better: Direction


def compared_metrics() -> list[Compared]:
    """Every figure in the order in which it is shown; there is no score over them."""
    times = [Compared(metric, name, "ms", "down") for metric in TIMES for name in PERCENTILES]
    return [
        *times,
        Compared("output_tokens_per_second", "", "tokens/s", "up"),
        Compared("requests_per_second", "", "requests/s", "up"),
        Compared("error_rate", "", "share", "down"),
        Compared("goodput", "", "share", "up"),
        Compared("checks_pass_rate", "", "share", "up"),
        Compared("cache_hit_rate", "", "share", "up"),
        Compared("memory_peak_bytes", "", "bytes", "down"),
        Compared("kv_usage_peak", "", "share", "down"),
        Compared("cost_per_1k_output_tokens", "", "money", "down"),
    ]


def figure_of_run(metric: str, summary: Mapping[str, Any], price_per_hour: float | None) -> float | None:
    """A figure of the whole run from its summary; None where it was not observed."""
    memory = summary.get("memory") or {}
    if metric == "memory_peak_bytes":
        names = ("gpu_memory_used_peak_bytes", "rss_peak_bytes", "peak_bytes")
        return next((float(memory[name]) for name in names if memory.get(name) is not None), None)
    if metric == "kv_usage_peak":
        found = memory.get("kv_usage_peak")
    elif metric == "checks_pass_rate":
        found = (summary.get("checks") or {}).get("pass_rate")
    elif metric == "cost_per_1k_output_tokens":
        rate = summary.get("output_tokens_per_second")
        found = price_per_hour / 3600 * 1000 / rate if price_per_hour and rate else None
    else:
        found = summary.get(metric)
    return None if found is None else float(found)


def counted(metric: str, summary: Mapping[str, Any]) -> int | None:
    """Of how many a share of the whole run is; None for figures that are no shares of requests."""
    if metric in ("error_rate", "goodput"):
        return int(summary.get("attempted") or 0) or None
    if metric == "checks_pass_rate":
        return int((summary.get("checks") or {}).get("n") or 0) or None
    return None
