"""What can be read of runs, scoped by the reader's organisation and role."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import QuerySet
from django.utils.translation import gettext as _

from pocs.common.actors import Actor
from pocs.common.errors import NotFound
from pocs.common.reading import remembered
from pocs.people import policies
from pocs.projects.models import Project, ScenarioVersion
from pocs.projects.selectors import approved_versions
from pocs.runs.choices import ACTIVE_STATES, LEASED_STATES, RunState, Validity
from pocs.runs.models import MatrixExecution, RequestRecord, Run, Target, TelemetrySample


def runs_of(actor: Actor, project: Project) -> QuerySet[Run]:
    """The project's runs, newest first; NotFound for a foreign project."""
    policies.require(actor, "project.view", project)
    return (
        Run.objects.filter(project=project)
        .select_related("scenario_version__scenario", "target", "matrix", "requested_by", "token")
        .order_by("-number")
    )


def run_get(actor: Actor, pk: int, capability: str = "project.view") -> Run:
    """One run on which the actor has `capability`; NotFound for a foreign or an absent one."""
    run = (
        Run.objects.filter(pk=pk, project__organisation_id=actor.organisation_id)
        .select_related(
            "project",
            "scenario_version__scenario",
            "target",
            "matrix",
            "requested_by",
            "token",
            "superseded_by",
        )
        .first()
    )
    if run is None:
        raise NotFound(_("There is no such run."))
    policies.require(actor, capability, run.project, unseen=_("There is no such run."))
    return run


def requests_of(
    run: Run, *, tenant: str = "", application: str = "", outcome: str = "", warmup: bool = False
) -> QuerySet[RequestRecord]:
    """The run's measured (or warm-up) requests in input order, by tenant, application or outcome (E2)."""
    given = {"tenant": tenant, "application": application, "outcome": outcome}
    wanted = {name: value for name, value in given.items() if value}
    return run.requests.filter(warmup=warmup, **wanted).order_by("index")


def rows_for_export(run: Run, asked: Mapping[str, str]) -> QuerySet[RequestRecord]:
    """The run's requests in input order, by tenant, application, outcome; with `warmup` also those before."""
    names = ("tenant", "application", "outcome")
    rows = run.requests.filter(**{name: asked[name] for name in names if asked.get(name)})
    if asked.get("warmup", "").lower() not in ("1", "true", "on"):
        rows = rows.filter(warmup=False)
    return rows.order_by("-warmup", "index")


def slowest_requests(run: Run, limit: int = 10) -> list[RequestRecord]:
    """The measured requests that took longest, each with its intervals, longest first."""
    return list(run.requests.filter(warmup=False, e2e_ms__isnull=False).order_by("-e2e_ms", "index")[:limit])


def samples_of(run: Run) -> QuerySet[TelemetrySample]:
    """The run's resource samples over time."""
    return run.telemetry.order_by("at_ms")


def targets_of(actor: Actor, project: Project) -> QuerySet[Target]:
    """The project's targets; NotFound for a foreign project."""
    policies.require(actor, "project.view", project)
    return project.targets.order_by("name", "id")


def target_get(actor: Actor, pk: int) -> Target:
    """One target the actor may see; NotFound for a foreign or an absent one."""
    target = (
        Target.objects.filter(pk=pk, project__organisation_id=actor.organisation_id)
        .select_related("project")
        .first()
    )
    if target is None:
        raise NotFound(_("There is no such target."))
    policies.require(actor, "project.view", target.project, unseen=_("There is no such target."))
    return target


def target_find(project: Project, name: str = "") -> Target:
    """The project's target of this name, or its only or oldest one when no name is given."""
    targets = project.targets.order_by("id")
    target = (targets.filter(name=name) if name else targets).first()
    if target is None:
        raise NotFound(
            _("This project has no target named “%(name)s”.") % {"name": name}
            if name
            else _("This project has no target yet: add one before you run a scenario.")
        )
    return target


def matrices_of(actor: Actor, project: Project) -> QuerySet[MatrixExecution]:
    """The project's matrix executions, newest first."""
    policies.require(actor, "project.view", project)
    return project.matrix_executions.select_related("target", "started_by").order_by("-number")


def matrix_get(actor: Actor, pk: int, capability: str = "project.view") -> MatrixExecution:
    """One matrix execution on which the actor has `capability`; NotFound for a foreign or an absent one."""
    matrix = (
        MatrixExecution.objects.filter(pk=pk, project__organisation_id=actor.organisation_id)
        .select_related("project", "target", "started_by")
        .first()
    )
    if matrix is None:
        raise NotFound(_("There is no such matrix execution."))
    policies.require(actor, capability, matrix.project, unseen=_("There is no such matrix execution."))
    return matrix


@remembered
def latest_approved_versions(project: Project) -> list[ScenarioVersion]:
    """The newest approved version of each of the project's scenarios, by slug."""
    newest: dict[int, ScenarioVersion] = {}
    for version in approved_versions(project):
        newest[version.scenario_id] = version
    return list(newest.values())


def valid_runs(project: Project) -> QuerySet[Run]:
    """The runs that count as evidence: complete and valid, newest first."""
    return (
        Run.objects.filter(project=project, state=RunState.COMPLETE, validity=Validity.VALID)
        .select_related("scenario_version__scenario", "target")
        .order_by("-number")
    )


@remembered
def counting_runs(project: Project) -> list[Run]:
    """The same, read without what no guard looks at: several of them look at each run."""
    return list(valid_runs(project).defer("configuration", "diagnosis", "manifest", "rescored"))


def active_runs(project: Project) -> QuerySet[Run]:
    """Runs that wait or are being executed, oldest first."""
    return (
        Run.objects.filter(project=project, state__in=ACTIVE_STATES)
        .select_related("scenario_version__scenario", "target")
        .order_by("number")
    )


def expired_leases(now: datetime) -> QuerySet[Run]:
    """Runs whose worker has stopped renewing its lease."""
    return Run.objects.filter(state__in=LEASED_STATES, lease_expires_at__lt=now).order_by("pk")


@dataclass(frozen=True)
class Cell:
    """One cell of the coverage grid: a length pair at one concurrency, with the runs that count."""

    input_tokens: int
    output_tokens: int
    concurrency: int
    scenarios: tuple[str, ...]  # slug@n
    runs: tuple[Run, ...]


@dataclass(frozen=True)
class Coverage:
    """What the project's counting runs cover of the matrix (G3), and what is planned but not run."""

    cells: tuple[Cell, ...]  # every planned or covered combination, smallest first
    input_tokens: tuple[int, ...]  # covered by counting runs only, as are the following
    output_tokens: tuple[int, ...]
    concurrency: tuple[int, ...]
    distinct_prompts: int  # the most that one counting run used
    interruptions: tuple[Run, ...]


def coverage(project: Project) -> Coverage:
    """The grid of G3: lengths and concurrency levels with the runs that count for each."""
    counting = counting_runs(project)
    specs: dict[int, dict[str, Any]] = {run.pk: run.scenario_version.spec for run in counting}
    grid: dict[tuple[int, int, int], tuple[set[str], list[Run]]] = {}
    for version in latest_approved_versions(project):
        grid.setdefault(_position(version.spec), (set(), []))[0].add(str(version))
    for run in counting:
        scenarios, runs = grid.setdefault(_position(specs[run.pk]), (set(), []))
        scenarios.add(str(run.scenario_version))
        runs.append(run)
    return Coverage(
        cells=tuple(
            Cell(*position, scenarios=tuple(sorted(scenarios)), runs=tuple(runs))
            for position, (scenarios, runs) in sorted(grid.items())
        ),
        input_tokens=_levels(specs, "input_tokens"),
        output_tokens=_levels(specs, "output_tokens"),
        concurrency=_levels(specs, "concurrency"),
        distinct_prompts=max((_prompts(spec) for spec in specs.values()), default=0),
        interruptions=tuple(run for run in counting if _was_interrupted(run)),
    )


def _position(spec: dict[str, Any]) -> tuple[int, int, int]:
    return spec.get("input_tokens", 0), spec.get("output_tokens", 0), spec.get("concurrency", 0)


def _levels(specs: dict[int, dict[str, Any]], name: str) -> tuple[int, ...]:
    return tuple(sorted({spec[name] for spec in specs.values() if spec.get(name)}))


def _prompts(spec: dict[str, Any]) -> int:
    """How many different prompts a run of this scenario sends."""
    own = len(set(spec.get("prompts") or ()))
    return min(own or spec.get("distinct_prompts") or 0, spec.get("requests") or 0)


def _was_interrupted(run: Run) -> bool:
    """Whether the run planned interruptions and at least one of its requests was really left."""
    requests = (run.summary or {}).get("requests") or {}
    return bool(run.scenario_version.spec.get("interruptions")) and bool(requests.get("cancelled"))
