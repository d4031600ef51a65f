"""Which metrics a run must fill to count (G4), and which of them it has not filled."""

from collections.abc import Callable
from typing import Any

from django.utils.translation import gettext_lazy as _

from pocs.common.errors import Text
from pocs.runs.choices import MetricSet

Summary = dict[str, Any]

#: the three sets of the checklist, each a list of metric codes
METRIC_SETS: dict[str, tuple[str, ...]] = {
    MetricSet.MINIMUM_EIGHT: ("M1", "M2", "M3", "M4", "M5", "M6", "M7", "M8"),
    MetricSet.POC_SIX: ("M1", "M2", "M3", "M4", "M6", "M7"),
    MetricSet.MONITORING_FIVE: ("M1", "M2", "M6", "M7", "M9"),
}
METRIC_NAMES: dict[str, Text] = {
    "M1": _("time to first token (M1)"),
    "M2": _("time per output token (M2)"),
    "M3": _("throughput (M3)"),
    "M4": _("error rate (M4)"),
    "M5": _("GPU utilisation (M5)"),
    "M6": _("memory watermark (M6)"),
    "M7": _("queue wait (M7)"),
    "M8": _("prefix-cache hit rate (M8)"),
    "M9": _("output length (M9)"),
    "M32": _("percentiles beside each mean (M32)"),
}
DISTRIBUTIONS = ("ttft_ms", "tpot_ms", "itl_ms", "e2e_ms", "queue_wait_ms", "prefill_ms", "decode_ms")


def missing_metrics(metric_set: str, summary: Summary | None) -> list[str]:
    """Codes of the set's metrics that the summary does not hold, and M32 for a mean that stands alone.

    First token (M1) and generation (M2) are asked for apart, each as a distribution.
    """
    if not summary:
        return list(METRIC_SETS[metric_set])
    missing = [code for code in METRIC_SETS[metric_set] if not _FILLED[code](summary)]
    if any(_mean_alone(summary.get(name)) for name in DISTRIBUTIONS):
        missing.append("M32")
    return missing


def _distribution(name: str) -> Callable[[Summary], bool]:
    def filled(summary: Summary) -> bool:
        found = summary.get(name) or {}
        return bool(found.get("n")) and found.get("p50") is not None and found.get("p95") is not None

    return filled


def _number(name: str) -> Callable[[Summary], bool]:
    return lambda summary: summary.get(name) is not None


def _error_rate(summary: Summary) -> bool:
    return summary.get("error_rate") is not None


def _queue_wait(summary: Summary) -> bool:
    """Told of each request, or by the server for all: then a mean beside bounds of percentiles (M32)."""
    if _distribution("queue_wait_ms")(summary):
        return True
    told = ((summary.get("server") or {}).get("times") or {}).get("queue_wait_ms") or {}
    return bool(told.get("n")) and told.get("mean") is not None and _bounded(told)


def _bounded(told: dict[str, Any]) -> bool:
    """Whether the buckets of a histogram bound its p95 on one side at least."""
    return any(told.get(name) is not None for name in ("p95_above", "p95_at_most"))


def _memory(summary: Summary) -> bool:
    """A watermark, not only a size that stands still."""
    memory = summary.get("memory") or {}
    return any("peak" in name and value is not None for name, value in memory.items())


def _gpu(summary: Summary) -> bool:
    return (summary.get("engine") or {}).get("gpu_utilisation_mean") is not None


def _mean_alone(found: dict[str, Any] | None) -> bool:
    return found is not None and found.get("mean") is not None and found.get("p50") is None


_FILLED: dict[str, Callable[[Summary], bool]] = {
    "M1": _distribution("ttft_ms"),
    "M2": _distribution("tpot_ms"),
    "M3": _number("output_tokens_per_second"),
    "M4": _error_rate,
    "M5": _gpu,
    "M6": _memory,
    "M7": _queue_wait,
    "M8": _number("cache_hit_rate"),
    "M9": _number("output_tokens"),
}
