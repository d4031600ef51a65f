"""Whether a complete run counts: the measurement's own validity and its metric set (G4)."""

from collections.abc import Mapping
from typing import Any

from pocs.runs.choices import Validity
from pocs.runs.metric_sets import missing_metrics

Reason = dict[str, Any]


def judge(metric_set: str, summary: Mapping[str, Any]) -> tuple[Validity, list[Reason]]:
    """Validity with its reasons, each `{"code", "figures"}`; `pocs.runs.wording` puts them into words."""
    reasons = _measurement_reasons(summary)
    missing = missing_metrics(metric_set, dict(summary))
    if missing:
        figures = {"metric_set": str(metric_set), "missing": missing}
        reasons.append({"code": "metric_set_incomplete", "figures": figures})
    return (Validity.INVALID, reasons) if reasons else (Validity.VALID, [])


def _measurement_reasons(summary: Mapping[str, Any]) -> list[Reason]:
    """Why the measuring client itself calls the run invalid, by code; its own sentence where none fits."""
    stated = summary.get("validity") or {}
    limits, check = stated.get("limits") or {}, summary.get("self_check") or {}
    reasons: list[Reason] = []
    for code, name, limit_name in (
        ("dispatched_late", "dispatch_delay_ms", "dispatch_delay_p99_ms"),
        ("loop_lagged", "loop_lag_ms", "loop_lag_p99_ms"),
    ):
        p99, limit = (check.get(name) or {}).get("p99"), limits.get(limit_name)
        if not stated.get("valid") and p99 is not None and limit is not None and p99 > limit:
            reasons.append({"code": code, "figures": {"p99_ms": p99, "limit_ms": limit}})
    attempted, succeeded = summary.get("attempted"), summary.get("succeeded")
    if attempted == 0:
        reasons.append({"code": "nothing_measured", "figures": {}})
    elif succeeded == 0:
        reasons.append({"code": "none_succeeded", "figures": {"attempted": attempted}})
    elif not (summary.get("ttft_ms") or {}).get("n"):
        reasons.append({"code": "first_token_not_observed", "figures": {}})
    if summary.get("interrupted"):
        reasons.append({"code": "interrupted", "figures": {}})
    if not reasons and not stated.get("valid"):
        told = stated.get("reasons") or [""]
        reasons = [{"code": "measurement", "figures": {"text": text}} for text in told]
    return reasons
