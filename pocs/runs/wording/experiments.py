"""Comparisons of experiments and baselines in words: figures, verdicts, reasons, the tail, the answers."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from pocs.runs.wording.limits import metric_label
from pocs.runs.wording.sentences import sentence, shown_value

MIB = 2**20

METRICS = {
    "goodput": gettext_lazy("requests that met every limit (goodput)"),
    "memory_peak_bytes": gettext_lazy("memory at its peak"),
    "cost_per_1k_output_tokens": gettext_lazy("cost of 1,000 output tokens"),
}
VERDICTS = {
    "better": gettext_lazy("better"),
    "worse": gettext_lazy("worse"),
    "inconclusive": gettext_lazy("inconclusive"),
    "pass": gettext_lazy("pass"),
    "fail": gettext_lazy("fail"),
}
REASONS = {
    "compare_clear": gettext_lazy("beyond noise and interval"),
    "compare_not_observed": gettext_lazy("not observed on both sides"),
    "compare_one_run_each": gettext_lazy("one run each: how much runs differ by themselves is not known"),
    "compare_within_noise": gettext_lazy("within what repeats of one side differ by"),
    "compare_interval_holds_zero": gettext_lazy("the interval holds zero"),
    "compare_thin": gettext_lazy("too few requests for a p99"),
    "compare_offered_load": gettext_lazy(
        "the offered load was unequal (closed loop), which explains it as well"
    ),
    "compare_confounded": gettext_lazy("more differed than the declared change"),
}
TAILS = {
    "tail_paid": gettext_lazy(
        "%(metric)s: the middle got better at the expense of the tail (p50 %(p50_ratio)s, p95 %(p95_ratio)s)."
    ),
    "tail_worse": gettext_lazy("%(metric)s: the tail got worse (p50 %(p50_ratio)s, p95 %(p95_ratio)s)."),
    "tail_better": gettext_lazy("%(metric)s: the tail got better (p50 %(p50_ratio)s, p95 %(p95_ratio)s)."),
    "tail_inconclusive": gettext_lazy(
        "%(metric)s: nothing certain about the tail (p50 %(p50_ratio)s, p95 %(p95_ratio)s)."
    ),
}
OUTPUTS = {
    "unchanged": gettext_lazy(
        "The answers did not change: %(identical)s of %(pairs)s equal requests were answered alike (repeats "
        "of the baseline: %(own)s)."
    ),
    "changed": gettext_lazy(
        "The answers changed: %(identical)s of %(pairs)s equal requests were answered alike (repeats of the "
        "baseline: %(own)s)."
    ),
    "inconclusive": gettext_lazy(
        "Whether the answers changed is open: %(identical)s of %(pairs)s equal requests were answered alike "
        "(repeats of the baseline: %(own)s)."
    ),
}


@dataclass(frozen=True)
class ComparedLine:
    """One figure of both sides as a row."""

    label: str
    percentile: str
    baseline: str
    candidate: str
    difference: str
    ratio: float | None
    interval: str
    noise: str
    n: str
    verdict: str
    verdict_label: str
    reason: str
    drawn: Mapping[str, float] | None  # relative difference with its interval, for the drawing


def compared_lines(comparison: Mapping[str, Any]) -> list[ComparedLine]:
    """Every figure that at least one side states."""
    return [_line(row) for row in comparison.get("metrics") or ()]


def tail_texts(comparison: Mapping[str, Any]) -> list[str]:
    """What happened to the tail beside the middle (Q7)."""
    found = []
    for item in comparison.get("tail") or ():
        ratios = {name: _signed_percent(value) for name, value in item["figures"].items()}
        named = {"metric": metric_label(item["metric"])} | ratios
        found.append(sentence(TAILS, {"code": item["code"], "figures": named}).text)
    return found


def outputs_text(comparison: Mapping[str, Any]) -> str:
    """Whether the answers changed (M20); empty where no request is in both."""
    found = comparison.get("outputs")
    if not found:
        return ""
    own = found["baseline_share"]
    shown = {
        "identical": found["identical"],
        "pairs": found["pairs"],
        "own": _("not known") if own is None else shown_value(own, "share"),
    }
    return str(OUTPUTS[found["verdict"]]) % shown


def load_text(comparison: Mapping[str, Any]) -> str:
    """That both sides were not asked as much (case 12); empty where they were."""
    load = comparison.get("load") or {}
    if not load.get("closed_loop") or not load.get("unequal"):
        return ""
    figures = {
        "a": shown_value(load["baseline_per_second"], "requests/s"),
        "b": shown_value(load["candidate_per_second"], "requests/s"),
    }
    return (
        _(
            "The offered load was unequal: %(a)s against %(b)s. In a closed loop the target itself decides "
            "how much it is sent; compare a pair in open loop, at a fixed rate."
        )
        % figures
    )


def _line(row: Mapping[str, Any]) -> ComparedLine:
    unit, verdict = row["unit"], row["verdict"]
    low, high = row.get("interval") or (None, None)
    base = row["baseline"]
    drawn = None
    if base and row["difference"] is not None:
        drawn = {"at": row["difference"] / base}
        if low is not None:
            drawn |= {"low": low / base, "high": high / base}
    interval = "—"
    if low is not None:
        interval = _("%(low)s to %(high)s") % {"low": _signed(low, unit), "high": _signed(high, unit)}
    metric = row["metric"]
    return ComparedLine(
        label=str(METRICS.get(metric) or metric_label(metric)),
        percentile=row["percentile"],
        baseline=_shown(base, unit),
        candidate=_shown(row["candidate"], unit),
        difference=_signed(row["difference"], unit),
        ratio=row["ratio"],
        interval=interval,
        noise=_shown(row["noise"], unit),
        n=" / ".join(str(n) for n in row["n"]) if any(row["n"]) else "—",
        verdict=verdict,
        verdict_label=str(VERDICTS.get(verdict, verdict)),
        reason=str(REASONS.get(row["reason"], row["reason"])),
        drawn=drawn,
    )


def _shown(value: float | None, unit: str) -> str:
    if value is None:
        return "—"
    if unit == "bytes":
        return f"{value / MIB:,.0f} MiB"
    if unit == "money":
        return f"{value:.4g}"
    return shown_value(value, unit)


def _signed(value: float | None, unit: str) -> str:
    if value is None:
        return "—"
    return ("+" if value > 0 else "−" if value < 0 else "±") + _shown(abs(value), unit)


def _signed_percent(value: float | None) -> str:
    return "—" if value is None else f"{value * 100:+.1f} %"
