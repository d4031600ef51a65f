"""The limits of a run with their verdicts, in words."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from inference.criteria import normalised
from pocs.runs.wording.sentences import shown_value

VERDICTS = {
    "pass": gettext_lazy("pass"),
    "fail": gettext_lazy("fail"),
    "inconclusive": gettext_lazy("inconclusive"),
}
METRICS = {
    "ttft_ms": gettext_lazy("time to first token (TTFT)"),
    "ttfv_ms": gettext_lazy("first visible output (TTFV)"),
    "ttfot_ms": gettext_lazy("first answer content (TTFOT)"),
    "tpot_ms": gettext_lazy("time per output token (TPOT)"),
    "itl_ms": gettext_lazy("gap between reads (ITL)"),
    "max_gap_ms": gettext_lazy("longest gap"),
    "queue_wait_ms": gettext_lazy("queue wait"),
    "prefill_ms": gettext_lazy("prefill"),
    "decode_ms": gettext_lazy("decode"),
    "release_ms": gettext_lazy("release of the cache blocks"),
    "e2e_ms": gettext_lazy("end to end"),
    "error_rate": gettext_lazy("error rate"),
    "cache_hit_rate": gettext_lazy("cache hit rate"),
    "kv_usage_peak": gettext_lazy("KV use at its peak"),
    "checks_pass_rate": gettext_lazy("share of checked answers that pass"),
    "output_tokens_per_second": gettext_lazy("output throughput"),
    "requests_per_second": gettext_lazy("requests per second"),
}
REASONS = {
    "limit_holds": gettext_lazy("held, with its whole interval"),
    "limit_broken": gettext_lazy("not held"),
    "limit_not_observed": gettext_lazy("not observed"),
    "limit_few_samples": gettext_lazy("too few samples: %(n)s, at least %(needed)s are needed"),
    "limit_overlaps": gettext_lazy("the interval lies on both sides of the bound"),
    "limit_no_interval": gettext_lazy("near the bound, and without the requests no interval is known"),
}


@dataclass(frozen=True)
class LimitLine:
    """One limit of one run as a row: what is asked, what was measured, and what follows."""

    label: str
    bound: str
    value: str
    interval: str
    n: int
    verdict: str
    verdict_label: str
    reason: str


def metric_label(metric: str) -> str:
    """The figure's name in the reader's language."""
    return str(METRICS.get(metric, metric))


def limit_lines(summary: Mapping[str, Any] | None) -> list[LimitLine]:
    """The limits that the summary judges; of runs before verdicts, by their value alone."""
    return [_line(limit) for limit in (summary or {}).get("limits") or ()]


def limit_counts(summary: Mapping[str, Any] | None) -> dict[str, int]:
    """How many limits pass, fail and stay inconclusive; empty where there are none."""
    verdicts = [_verdict(limit) for limit in (summary or {}).get("limits") or ()]
    return {name: verdicts.count(name) for name in VERDICTS} if verdicts else {}


def _verdict(limit: Mapping[str, Any]) -> str:
    if limit.get("verdict"):
        return str(limit["verdict"])
    return {True: "pass", False: "fail"}.get(limit.get("holds"), "inconclusive")  # type: ignore[arg-type]


def _line(stored: Mapping[str, Any]) -> LimitLine:
    limit = normalised(stored)
    unit, verdict = limit["unit"], _verdict(stored)
    low, high = stored.get("interval") or (None, None)
    reason = stored.get("reason")
    figures = {"n": stored.get("n"), "needed": stored.get("needed")}
    sign = "≤" if limit["direction"] == "max" else "≥"
    name = metric_label(limit["metric"])
    return LimitLine(
        label=f"{limit['percentile']} {name}" if limit["percentile"] else name,
        bound=f"{sign} {shown_value(limit['bound'], unit)}",
        value=shown_value(stored.get("value"), unit),
        interval=_interval(low, high, unit),
        n=int(stored.get("n") or 0),
        verdict=verdict,
        verdict_label=str(VERDICTS.get(verdict, verdict)),
        reason=str(REASONS.get(reason, reason)) % figures if reason else "",
    )


def _interval(low: float | None, high: float | None, unit: str) -> str:
    if low is None and high is None:
        return "—"
    return _("%(low)s to %(high)s") % {"low": shown_value(low, unit), "high": shown_value(high, unit)}
