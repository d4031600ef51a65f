"""The checks of a run's answers as its page shows them (M20, Q14)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from pocs.common.errors import Text
from pocs.runs.wording.sentences import shown_number

CHECKS: dict[str, Text] = {
    "contains": gettext_lazy("contains"),
    "pattern": gettext_lazy("pattern"),
    "json_schema": gettext_lazy("JSON schema"),
    "similarity": gettext_lazy("similarity to the reference"),
}
REASONS: dict[str, Text] = {
    "text_absent": gettext_lazy("the text does not occur"),
    "pattern_absent": gettext_lazy("the pattern does not match"),
    "no_json": gettext_lazy("the answer is no JSON"),
    "schema_broken": gettext_lazy("the JSON breaks the schema"),
    "too_different": gettext_lazy("too different from the reference"),
}


@dataclass(frozen=True)
class OutputsShown:
    """The block `outputs` of a summary in words."""

    sentence: str
    checks: list[dict[str, Any]]
    failures: list[dict[str, Any]]
    failures_left_out: int
    wrong: list[dict[str, Any]]


def outputs_shown(summary: Mapping[str, Any] | None) -> OutputsShown | None:
    """None for a run whose scenario asks nothing of its answers."""
    found = (summary or {}).get("outputs")
    if not found:
        return None
    quality = found.get("quality") or {}
    checks = [_check(row) for row in found["checks"]]
    failures = [
        row
        | {
            "check": checks[row["check"]]["label"],
            "reason": str(REASONS.get(row["reason"], row["reason"])),
        }
        for row in found["failures"]
    ]
    sentences = [_passed(found)] if found["n"] else []
    if quality:
        sentences.append(_right(quality))
    return OutputsShown(
        " ".join(sentences), checks, failures, found["failures_left_out"], quality.get("wrong") or []
    )


def _check(row: Mapping[str, Any]) -> dict[str, Any]:
    label = str(CHECKS.get(row["kind"], row["kind"]))
    if row.get("min") is not None:
        label = f"{label} ≥ {row['min']:g}"
    return dict(row) | {
        "label": label, "share": percent(row["pass_share"]), "interval": interval(row["interval"]),
    }  # fmt: skip


def _passed(found: Mapping[str, Any]) -> str:
    text = _("%(passed)s of %(n)s answers pass every check (%(share)s, 95 %% interval %(interval)s).")
    return text % {
        "passed": found["passed"],
        "n": found["n"],
        "share": percent(found["pass_rate"]),
        "interval": interval(found["interval"]),
    }


def _right(quality: Mapping[str, Any]) -> str:
    text = _(
        "Of the quality set, %(right)s of %(n)s answers are right (%(share)s, 95 %% interval %(interval)s)."
    )
    return text % {
        "right": quality["right"],
        "n": quality["n"],
        "share": percent(quality["right_share"]),
        "interval": interval(quality["interval"]),
    }


def percent(share: float | None) -> str:
    return "—" if share is None else f"{shown_number(share * 100)} %"


def interval(ends: Sequence[float] | None) -> str:
    return "—" if not ends else f"{percent(ends[0])} – {percent(ends[1])}"
