"""The gate for CI: a comparison as pass, fail or inconclusive for each figure, and one exit code."""

from collections.abc import Mapping, Sequence
from typing import Any

#: exit codes of `python -m inference compare --gate`
PASSED, REGRESSED, UNDECIDED = 0, 5, 6
#: figures that a gate watches unless told otherwise
WATCHED = (
    "ttft_ms",
    "tpot_ms",
    "e2e_ms",
    "output_tokens_per_second",
    "error_rate",
    "checks_pass_rate",
    "memory_peak_bytes",
)


def gate(comparison: Mapping[str, Any], metrics: Sequence[str] = WATCHED) -> dict[str, Any]:
    """`{"verdict", "metrics"}`: pass where a regression beyond the noise band is ruled out, fail where it is.

    Whether the whole interval lies on the good side of the band decides; a p99 of few values is left out.
    The verdict is `fail` with any failed figure, `inconclusive` without one but with an open one.
    """
    rows = [
        {name: row[name] for name in ("metric", "percentile", "baseline", "candidate", "interval", "noise")}
        | {"verdict": _gated(row), "reason": row["reason"]}
        for row in comparison["metrics"]
        if row["metric"] in metrics and row["reason"] not in ("compare_thin",) and row["percentile"] != "p99"
    ]
    verdicts = {row["verdict"] for row in rows}
    worst = next(
        (name for name in ("fail", "inconclusive") if name in verdicts), "pass" if rows else "inconclusive"
    )
    return {"verdict": worst, "metrics": rows}


def exit_code(gated: Mapping[str, Any], *, strict: bool = False) -> int:
    """5 for a regression; 6 for an open question, only where `strict` asks for certainty; else 0."""
    if gated["verdict"] == "fail":
        return REGRESSED
    return UNDECIDED if strict and gated["verdict"] == "inconclusive" else PASSED


def _gated(row: Mapping[str, Any]) -> str:
    if row["verdict"] == "worse":
        return "fail"
    if row["verdict"] == "better":
        return "pass"
    if row["reason"] in ("compare_not_observed", "compare_confounded", "compare_offered_load"):
        return "inconclusive"
    noise = row["noise"]
    if noise is None:
        return "inconclusive"
    if row["interval"] is None:
        return "pass" if abs(row["difference"]) <= noise else "inconclusive"
    low, high = row["interval"]
    harm = high if row["better"] == "down" else -low
    return "pass" if harm <= max(noise, 0.0) else "inconclusive"
