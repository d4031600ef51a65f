"""Starting, cancelling and superseding runs."""

from django.db import transaction
from django.db.models import Max
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from pocs.common import audit, events
from pocs.common.actors import Actor
from pocs.common.errors import Conflict, InvalidInput, NotFound, NotPermitted
from pocs.common.phrases import said
from pocs.people import policies
from pocs.projects.changes import notify_change
from pocs.projects.choices import ProjectState, ScenarioState
from pocs.projects.models import Project, ScenarioVersion
from pocs.runs.choices import ACTIVE_STATES, MetricSet, RunOrigin, RunState, Validity
from pocs.runs.lifecycle import TransitionRefused, announce, run_move
from pocs.runs.models import MatrixExecution, Run, Target
from pocs.runs.queue import enqueue
from pocs.runs.selectors import latest_approved_versions
from pocs.runs.services.scenario_kinds import check_runnable, runnable
from pocs.runs.target_reports import check_state


def run_start(
    *,
    actor: Actor,
    project: Project,
    scenario_version: ScenarioVersion,
    target: Target,
    tenant: str = "",
    application: str = "",
    matrix: MatrixExecution | None = None,
    metric_set: str = MetricSet.POC_SIX,
) -> Run:
    """Queue one run of an approved scenario version; the engine worker takes it from there."""
    policies.require(actor, "run.execute", project)
    check_open(project)
    if scenario_version.scenario.project_id != project.pk:
        raise NotFound(_("This project has no such scenario."))
    if target.project_id != project.pk:
        raise NotFound(_("This project has no such target."))
    if scenario_version.state != ScenarioState.APPROVED:
        raise Conflict(
            _("Scenario %(scenario)s is not approved: only approved versions are run.")
            % {"scenario": scenario_version}
        )
    check_runnable(scenario_version, target)
    if metric_set not in MetricSet.values:
        raise InvalidInput(_("There is no metric set “%(name)s”.") % {"name": metric_set})
    with transaction.atomic():
        number = next_run_number(project)
        run = Run.objects.create(
            project=project,
            number=number,
            scenario_version=scenario_version,
            target=target,
            matrix=matrix,
            metric_set=metric_set,
            requested_by_id=responsible_person(actor),
            token_id=actor.token_id,
            tenant=tenant,
            application=application,
            target_check=check_state(target),
            progress={
                "phase": RunState.QUEUED,
                "done": 0,
                "total": scenario_version.spec.get("requests"),
                "failed": 0,
            },
        )
        audit.record(
            actor=actor,
            verb="run.queued",
            obj=run,
            project_id=project.pk,
            after={"state": run.state, "scenario": str(scenario_version), "target": target.name},
        )
        announce(run)
        enqueue(run)
    return run


def matrix_start(*, actor: Actor, project: Project, target: Target) -> MatrixExecution:
    """Queue one run of each scenario's newest approved version that the target can be measured with."""
    policies.require(actor, "run.execute", project)
    check_open(project)
    versions = latest_approved_versions(project)
    if not versions:
        raise Conflict(
            _("There is no approved scenario yet: approve at least one version, then start the matrix.")
        )
    versions = [version for version in versions if runnable(version, target)]
    if not versions:
        raise Conflict(_("Every approved scenario needs the embedded engine; this target is an endpoint."))
    with transaction.atomic():
        Project.objects.select_for_update().get(pk=project.pk)
        last = MatrixExecution.objects.filter(project=project).aggregate(last=Max("number"))["last"] or 0
        matrix = MatrixExecution.objects.create(
            project=project, number=last + 1, target=target, started_by_id=responsible_person(actor)
        )
        audit.record(
            actor=actor,
            verb="matrix.started",
            obj=matrix,
            project_id=project.pk,
            after={"target": target.name, "scenarios": [str(version) for version in versions]},
        )
        for version in versions:
            run_start(actor=actor, project=project, scenario_version=version, target=target, matrix=matrix)
        events.emit(f"project:{project.pk}", "matrix", {"matrix": matrix.pk, "number": matrix.number})
    return matrix


def run_cancel(*, actor: Actor, run: Run) -> Run:
    """Cancel a run that no worker holds at once; ask the worker of an active one to stop."""
    policies.require(actor, "run.cancel", run.project)
    unheld = RunState.FINALISING if run.origin == RunOrigin.INGESTED else RunState.QUEUED
    if run.state == unheld:
        try:
            return run_move(run_id=run.pk, actor=actor, to=RunState.CANCELLED, expect=[unheld])
        except TransitionRefused:
            pass  # a worker has taken it meanwhile: ask the worker
    with transaction.atomic():
        stored = Run.objects.select_for_update().get(pk=run.pk)
        if stored.state not in ACTIVE_STATES:
            raise Conflict(
                _("Run %(run)s has already ended (%(state)s).")
                % {"run": stored, "state": stored.get_state_display()}
            )
        if stored.cancel_requested_at is None:
            stored.cancel_requested_at = timezone.now()
            stored.save(update_fields=["cancel_requested_at", "updated_at"])
            audit.record(
                actor=actor,
                verb="run.cancel_requested",
                obj=stored,
                project_id=stored.project_id,
                after={"state": stored.state, "validity": stored.validity},
            )
    return stored


def matrix_cancel(*, actor: Actor, matrix: MatrixExecution) -> int:
    """Cancel every run of the matrix that has not ended; returns how many."""
    policies.require(actor, "run.cancel", matrix.project)
    active = list(matrix.runs.filter(state__in=ACTIVE_STATES).order_by("-number"))
    cancelled = 0
    for run in active:
        try:
            run_cancel(actor=actor, run=run)
            cancelled += 1
        except Conflict:
            continue  # it ended while the others were being cancelled
    return cancelled


def run_supersede(*, actor: Actor, run: Run, by: Run) -> Run:
    """Say that `by` replaces `run`: the old run stays visible and counts no more."""
    policies.require(actor, "run.execute", run.project)
    if by.pk == run.pk or by.project_id != run.project_id:
        raise InvalidInput(_("A run is superseded by another run of the same project."))
    if by.scenario_version.scenario_id != run.scenario_version.scenario_id:
        raise InvalidInput(_("A run is superseded by a run of the same scenario."))
    if not by.counts_as_evidence:
        raise Conflict(_("Run %(run)s is not complete and valid, so it supersedes nothing.") % {"run": by})
    with transaction.atomic():
        stored = Run.objects.select_for_update().get(pk=run.pk)
        if not stored.counts_as_evidence:
            raise Conflict(
                _("Run %(run)s does not count as evidence, so there is nothing to supersede.") % {"run": run}
            )
        before = {"state": stored.state, "validity": stored.validity}
        stored.validity = Validity.SUPERSEDED
        stored.superseded_by = by
        stored.version += 1
        stored.save(update_fields=["validity", "superseded_by", "version", "updated_at"])
        after = {"state": stored.state, "validity": stored.validity, "superseded_by": str(by)}
        audit.record(
            actor=actor,
            verb="run.superseded",
            obj=stored,
            project_id=stored.project_id,
            before=before,
            after=after,
        )
        what = said(gettext_lazy("run %(old)s was superseded by %(new)s"), old=str(stored), new=str(by))
        notify_change(project=stored.project, actor=actor, obj=stored, what=what)
        announce(stored)
    return stored


def check_open(project: Project) -> None:
    """Raise Conflict for a project that takes no more runs."""
    if project.state in (ProjectState.CLOSED, ProjectState.CANCELLED):
        raise Conflict(
            _("This project is %(state)s: it takes no more runs.")
            % {"state": project.get_state_display().lower()}
        )


def responsible_person(actor: Actor) -> int:
    """The person who acts or answers for the token; the system starts no runs."""
    if actor.user_id is None:
        raise NotPermitted(_("Runs are started by people, or by tokens that a person answers for."))
    return actor.user_id


def next_run_number(project: Project) -> int:
    """The project's next run number; the project row is locked until the transaction ends."""
    Project.objects.select_for_update().get(pk=project.pk)
    return (Run.objects.filter(project=project).aggregate(last=Max("number"))["last"] or 0) + 1
