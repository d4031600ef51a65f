"""The figures of a package's runs: percentiles by phase with n, read from the runs' own summaries."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _

from pocs.reviews.models import Package
from pocs.runs.models import Run

#: parts of the request time whose shares are drawn
SHARES = ("queue_wait", "prefill", "decode")


@dataclass(frozen=True)
class PhaseFigure:
    """One phase of one run: n and percentiles in ms; None where nothing was observed."""

    field: str
    label: str
    n: int | None
    p50: float | None
    p90: float | None
    p95: float | None
    p99: float | None
    max: float | None


@dataclass(frozen=True)
class RunFigures:
    """What one run of a package measured."""

    run: Run
    phases: list[PhaseFigure]
    attempted: int | None
    succeeded: int | None
    error_rate: float | None  # 0–1
    output_tokens_per_second: float | None
    shares: dict[str, float | None]  # of the time of all successful requests, 0–1

    def phase(self, field: str) -> PhaseFigure:
        return next(figure for figure in self.phases if figure.field == field)


def phase_labels() -> dict[str, str]:
    """Names of the phases in the reader's language."""
    return {
        "queue_wait_ms": _("queue wait"),
        "prefill_ms": _("prefill"),
        "ttft_ms": _("first token (TTFT)"),
        "decode_ms": _("decode"),
        "tpot_ms": _("per output token (TPOT)"),
        "e2e_ms": _("end to end"),
    }


def figures_of(runs: Iterable[Run]) -> list[RunFigures]:
    """The figures of each run, in the order given."""
    labels = phase_labels()
    return [_figures(run, labels) for run in runs]


def runs_of_package(package: Package) -> list[Run]:
    """The runs named in the package's manifest, oldest first."""
    ids = [entry["id"] for entry in package.manifest.get("runs", [])]
    rows = Run.objects.filter(pk__in=ids, project_id=package.project_id)
    return list(rows.select_related("scenario_version__scenario", "target").order_by("number"))


def _figures(run: Run, labels: dict[str, str]) -> RunFigures:
    summary: dict[str, Any] = run.summary or {}
    shares = (run.diagnosis or {}).get("shares") or {}
    return RunFigures(
        run=run,
        phases=[_phase(field, label, summary.get(field) or {}) for field, label in labels.items()],
        attempted=summary.get("attempted"),
        succeeded=summary.get("succeeded"),
        error_rate=summary.get("error_rate"),
        output_tokens_per_second=summary.get("output_tokens_per_second"),
        shares={name: shares.get(name) for name in SHARES},
    )


def _phase(field: str, label: str, found: dict[str, Any]) -> PhaseFigure:
    values = {name: found.get(name) for name in ("n", "p50", "p90", "p95", "p99", "max")}
    return PhaseFigure(field=field, label=label, **values)
