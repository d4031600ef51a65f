"""What the one-page sheet says (O1), as plain data in the current language: no score, no mean alone."""

from dataclasses import asdict, dataclass, field
from typing import Any

from django.utils import timezone
from django.utils.translation import get_language
from django.utils.translation import gettext as _

from pocs.evidence.choices import EvidenceType
from pocs.projects.choices import ReadinessKind
from pocs.projects.models import Project
from pocs.reviews import selectors
from pocs.reviews.choices import DecisionState, PackageState, TaskState
from pocs.reviews.figures import RunFigures, figures_of, runs_of_package
from pocs.reviews.manifest import manifest_of
from pocs.reviews.models import Package
from pocs.reviews.sheet.text import Clipper
from pocs.runs.wording import verdict_of

RUNS_MAX = 8
CONDITIONS_MAX = 3
#: the verdict's stage -> the part of the request time it names
STAGE_OF = {"queue": "queue_wait", "prefill": "prefill", "decode": "decode"}
WARNINGS_MAX = 3


@dataclass(frozen=True)
class Row:
    """A labelled line."""

    label: str
    text: str


@dataclass(frozen=True)
class Figure:
    """One run's line of the table of figures; percentiles in ms as (p50, p95), absent is None."""

    run: str
    scenario: str
    n: int | None
    attempted: int | None
    queue_wait_ms: tuple[float | None, float | None]
    prefill_ms: tuple[float | None, float | None]
    ttft_ms: tuple[float | None, float | None]
    tpot_ms: tuple[float | None, float | None]
    e2e_ms: tuple[float | None, float | None]
    error_rate: float | None
    shares: dict[str, float | None]


@dataclass(frozen=True)
class Signature:
    """One slot: what it means and who signed it when, or that it is open."""

    slot: str
    meaning: str
    state: str
    state_label: str
    signer: str
    signed_at: str
    comment: str


@dataclass(frozen=True)
class Sheet:
    """The sheet in the order of O1; every text is already in the reader's language."""

    language: str
    project: str
    goal: str
    state: str
    generated_at: str
    package: str
    digest: str
    warnings: list[str]
    applies: str
    applies_not: str
    verification: list[Row]
    figures: list[Figure]
    figures_left_out: int
    verdict: str
    signatures: list[Signature]
    decision: str
    confirmed_by: str
    next_step: str
    conditions: list[Row]
    follow_through: list[Row]
    observers: list[Row]
    clipped: bool = field(default=False)

    def as_json(self) -> dict[str, Any]:
        """The sheet as JSON has it."""
        return asdict(self)


def sheet_of(project: Project, *, factor: float = 1.0) -> Sheet:
    """The sheet of the project's newest package; before the first one, of its material as it is now.

    `factor` scales the room that texts have, so that the PDF can be made to fit.
    """
    package = selectors.latest_package(project)
    manifest = package.manifest if package else manifest_of(project, 0)
    clip = Clipper(factor)
    figures = figures_of(runs_of_package(package)) if package else []
    facts = manifest["project"]
    unnamed = _("not stated")
    return Sheet(
        language=get_language() or "en",
        project=clip(facts["name"], 90),
        goal=clip(facts["goal"], 220),
        state=str(project.get_state_display()),
        generated_at=timezone.now().strftime("%Y-%m-%d %H:%M UTC"),
        package=_package_line(package),
        digest=package.digest if package else "",
        warnings=[clip(text, 200) for text in _warnings(project, package, facts)[:WARNINGS_MAX]],
        applies=clip(facts["where_applies"] or unnamed, 420),
        applies_not=clip(facts["where_not"] or unnamed, 420),
        verification=[Row(row.label, clip(row.text, 300)) for row in _verification(manifest)],
        figures=[_figure(item, clip) for item in figures[:RUNS_MAX]],
        figures_left_out=max(0, len(figures) - RUNS_MAX),
        verdict=clip(_verdict(figures), 300),
        signatures=_signatures(package, clip),
        **_decision(project, clip),
        follow_through=[_task(view) for view in selectors.task_views(project)],
        observers=[_observer(view) for view in selectors.observation_views(project)],
        clipped=clip.clipped,
    )


def _package_line(package: Package | None) -> str:
    if package is None:
        return _("no package frozen yet: this sheet shows the material as it is now")
    return _("package %(number)d, frozen %(at)s, %(state)s") % {
        "number": package.number,
        "at": package.frozen_at.strftime("%Y-%m-%d"),
        "state": package.get_state_display(),
    }


def _warnings(project: Project, package: Package | None, facts: dict[str, Any]) -> list[str]:
    found = []
    if package is not None and package.state == PackageState.STALE:
        found.append(
            _("This package is stale: %(who)s — %(reason)s")
            % {"who": (package.stale_by or {}).get("label", "—"), "reason": package.stale_text}
        )
    if facts["demo_environment_only"]:
        found.append(_("Measured in a demo environment only (X16)."))
    found += [
        _("Waiver for %(guard)s: %(scope)s") % {"guard": waiver["guard"], "scope": waiver["scope"]}
        for waiver in (package.manifest["waivers"] if package else [])
    ]
    return found


def _verification(manifest: dict[str, Any]) -> list[Row]:
    """The logs, metrics, configuration and owners that verify it (Q26)."""
    project = manifest["project"]
    readiness = {item["kind"]: item for item in project["readiness"]}
    runs = [f"R{run['number']} {run['scenario']}" for run in manifest["runs"]]
    owners = [f"{item['name']}: {item['owner']}" for item in project["affected"] if item["owner"]]
    return [
        Row(
            _("Logs"),
            _joined(_evidence(manifest, EvidenceType.RUNTIME) + _basis(readiness, ReadinessKind.LOGS)),
        ),
        Row(_("Metrics"), _joined(runs + _basis(readiness, ReadinessKind.MONITORING))),
        Row(_("Configuration"), _joined(_evidence(manifest, EvidenceType.CONFIGURATION))),
        Row(
            _("Owners"),
            _joined(
                _evidence(manifest, EvidenceType.RESPONSIBILITY)
                + _evidence(manifest, EvidenceType.RETROSPECTIVE)
                + owners
            ),
        ),
    ]


def _joined(parts: list[str]) -> str:
    return "; ".join(parts) if parts else _("not stated")


def _evidence(manifest: dict[str, Any], kind: EvidenceType) -> list[str]:
    return [
        f"{entry['title']} r{entry['revision']} ({entry['sha256'][:8]})"
        for entry in manifest["evidence"]
        if entry["type"] == kind.value
    ]


def _basis(readiness: dict[str, Any], kind: ReadinessKind) -> list[str]:
    item = readiness.get(kind.value)
    return [item["basis"]] if item and item["basis"] else []


def _figure(item: RunFigures, clip: Clipper) -> Figure:
    def pair(name: str) -> tuple[float | None, float | None]:
        phase = item.phase(name)
        return phase.p50, phase.p95

    return Figure(
        run=str(item.run),
        scenario=clip(str(item.run.scenario_version), 30),
        n=item.succeeded,
        attempted=item.attempted,
        queue_wait_ms=pair("queue_wait_ms"),
        prefill_ms=pair("prefill_ms"),
        ttft_ms=pair("ttft_ms"),
        tpot_ms=pair("tpot_ms"),
        e2e_ms=pair("e2e_ms"),
        error_rate=item.error_rate,
        shares=item.shares,
    )


def _verdict(figures: list[RunFigures]) -> str:
    """The runs' own verdicts, each once, with the runs and the shares it rests on."""
    said: dict[str, list[str]] = {}
    for item in figures:
        verdict = verdict_of(item.run)
        if verdict is None:
            continue
        share = item.shares.get(STAGE_OF.get(verdict.where, ""))
        basis = str(item.run) if share is None else f"{item.run} {share * 100:.0f} %"
        said.setdefault(verdict.headline, []).append(basis)
    if not said:
        return _("No run of this package says where the time goes.")
    return " ".join(f"{headline} ({', '.join(runs)})" for headline, runs in said.items())


def _signatures(package: Package | None, clip: Clipper) -> list[Signature]:
    if package is None:
        return []
    found = []
    for view in selectors.slot_views(package):
        current = view.current
        found.append(
            Signature(
                slot=str(view.label),
                meaning=str(view.meaning),
                state=current.state if current else "requested",
                state_label=str(current.get_state_display()) if current else _("Requested"),
                signer=view.names,
                signed_at=current.signed_at.strftime("%Y-%m-%d %H:%M UTC")
                if current and current.signed_at
                else "",
                comment=clip(current.comment, 140) if current else "",
            )
        )
    return found


def _decision(project: Project, clip: Clipper) -> dict[str, Any]:
    decision = selectors.current_decision(project)
    if decision is None:
        open_text = _("not decided yet")
        return {"decision": open_text, "confirmed_by": "", "next_step": "", "conditions": []}
    confirmed = decision.state == DecisionState.CONFIRMED
    outcome = str(decision.get_outcome_display())
    rationale = clip(decision.rationale, 260)
    said = f"{outcome} — {rationale}" if confirmed else _("proposed: %(outcome)s") % {"outcome": outcome}
    who = ""
    if confirmed and decision.confirmed_by and decision.confirmed_at:
        who = f"{decision.confirmed_by}, {decision.confirmed_at:%Y-%m-%d} UTC"
    conditions = [
        Row(
            clip(condition.text, 110),
            _("closed") if condition.closed_at else f"{condition.owner}, {condition.due_on:%Y-%m-%d}",
        )
        for condition in decision.conditions.select_related("owner")[:CONDITIONS_MAX]
    ]
    return {
        "decision": said,
        "confirmed_by": who,
        "next_step": str(decision.get_next_step_display()),
        "conditions": conditions,
    }


def _task(view: selectors.TaskView) -> Row:
    task = view.task
    if task is None or task.owner is None or task.due_on is None:
        return Row(str(view.label), _("no owner yet"))
    text = f"{task.owner}, {task.due_on:%Y-%m-%d}"
    if task.state == TaskState.DONE:
        text += " · " + str(task.get_state_display())
    elif view.overdue:
        text += " · " + _("overdue")
    return Row(str(view.label), text)


def _observer(view: selectors.ObservationView) -> Row:
    row = view.observation
    if row is None or row.observer is None:
        return Row(str(view.label), _("no observer yet"))
    last = next(iter(row.readings.all()), None)
    text = str(row.observer)
    if last is not None:
        text += f" · {last.value.normalize():f} {last.unit} ({last.at:%Y-%m-%d})"
    if view.overdue:
        text += " · " + _("overdue")
    return Row(str(view.label), text)
