"""Experiments and baselines: started, concluded when their runs have ended, cancelled, held against."""

import logging
from collections.abc import Sequence

from django.db import transaction
from django.db.models import Max
from django.utils.translation import gettext as _

from pocs.common import audit, events
from pocs.common.actors import Actor, system_actor
from pocs.common.errors import Conflict, FieldError, InvalidInput
from pocs.people import policies
from pocs.projects.choices import ScenarioKind
from pocs.projects.models import Project, ScenarioVersion
from pocs.runs.choices import ACTIVE_STATES, ExperimentState
from pocs.runs.experimenting import changes_between, comparable, conclusion, order_of
from pocs.runs.models import Baseline, Experiment, ExperimentRun, Run, Target
from pocs.runs.services.running import check_open, responsible_person, run_cancel, run_start

logger = logging.getLogger(__name__)

REPEATS_MOST = 10


def experiment_start(
    *,
    actor: Actor,
    project: Project,
    name: str,
    scenario_version: ScenarioVersion,
    baseline_target: Target,
    candidate_target: Target | None = None,
    candidate_version: ScenarioVersion | None = None,
    declared_change: str = "",
    repeats: int = 3,
    price_per_hour: float | None = None,
) -> Experiment:
    """Queue both sides in turns (A B B A …); refused unless they differ in exactly one setting.

    `declared_change`, where given, must be that setting. Raises InvalidInput by pointer, Conflict for a
    scenario that is not approved or a target that cannot run it.
    """
    policies.require(actor, "run.execute", project)
    check_open(project)
    candidate_target = candidate_target or baseline_target
    candidate_version = candidate_version or scenario_version
    _check(name, repeats, price_per_hour)
    change = _one_change(
        changes_between(baseline_target, candidate_target, scenario_version, candidate_version),
        declared_change,
    )
    with transaction.atomic():
        Project.objects.select_for_update().get(pk=project.pk)
        last = Experiment.objects.filter(project=project).aggregate(last=Max("number"))["last"] or 0
        experiment = Experiment.objects.create(
            project=project,
            number=last + 1,
            name=name.strip(),
            scenario_version=scenario_version,
            candidate_version=candidate_version,
            baseline_target=baseline_target,
            candidate_target=candidate_target,
            declared_change=change,
            repeats=repeats,
            price_per_hour=price_per_hour,
            started_by_id=responsible_person(actor),
        )
        audit.record(
            actor=actor,
            verb="experiment.started",
            obj=experiment,
            project_id=project.pk,
            after={"state": experiment.state, "change": change, "repeats": repeats},
        )
        for position, side in enumerate(order_of(repeats)):
            is_baseline = side == "baseline"
            run = run_start(
                actor=actor,
                project=project,
                scenario_version=scenario_version if is_baseline else candidate_version,
                target=baseline_target if is_baseline else candidate_target,
            )
            ExperimentRun.objects.create(experiment=experiment, run=run, side=side, position=position)
        _announce(experiment)
    return experiment


def _check(name: str, repeats: int, price_per_hour: float | None) -> None:
    wrong = []
    if not name.strip():
        wrong.append(FieldError("/name", "required", _("This is required.")))
    if not 2 <= repeats <= REPEATS_MOST:
        text = _("Each side runs 2 to %(most)s times: a single run does not say how much runs differ.")
        wrong.append(FieldError("/repeats", "range", text % {"most": REPEATS_MOST}))
    if price_per_hour is not None and not 0 < price_per_hour < 1e9:
        wrong.append(FieldError("/price_per_hour", "range", _("A price is above 0.")))
    if wrong:
        raise InvalidInput(_("Some of the experiment's input is wrong."), wrong)


def _one_change(found: Sequence[str], declared: str) -> str:
    """The one setting that differs; InvalidInput for none, for several, or for another than declared."""
    if not found:
        text = _("Both sides are the same: choose a candidate that differs in one setting.")
        raise InvalidInput(text, [FieldError("/candidate_target", "same", text)])
    if len(found) > 1:
        text = _(
            "The sides differ in %(n)s settings (%(names)s); an experiment changes one, or nobody can say "
            "which of them made the difference (T10)."
        ) % {"n": len(found), "names": ", ".join(found)}
        raise InvalidInput(text, [FieldError("/candidate_target", "several", text)])
    if declared and declared not in (found[0], found[0].rsplit(".", 1)[-1]):
        text = _("The change is declared as %(declared)s, but what differs is %(found)s.")
        detail = text % {"declared": declared[:80], "found": found[0]}
        raise InvalidInput(detail, [FieldError("/declared_change", "other", detail)])
    return found[0]


def experiment_cancel(*, actor: Actor, experiment: Experiment) -> Experiment:
    """Cancel the runs that have not ended; an experiment that has ended stays as it is."""
    policies.require(actor, "run.cancel", experiment.project)
    with transaction.atomic():
        stored = Experiment.objects.select_for_update().get(pk=experiment.pk)
        if stored.state != ExperimentState.RUNNING:
            raise Conflict(_("The experiment has already ended."))
        _move(stored, actor, ExperimentState.CANCELLED)
    for turn in experiment.runs.select_related("run__project").order_by("-position"):
        if turn.run.state in ACTIVE_STATES:
            try:
                run_cancel(actor=actor, run=turn.run)
            except Conflict:
                continue  # it ended meanwhile
    return stored


def experiment_link_rollback(*, actor: Actor, experiment: Experiment, run: Run) -> Experiment:
    """Name the run that rehearsed the way back: a model switch of the same project."""
    policies.require(actor, "run.execute", experiment.project)
    kind = run.scenario_version.scenario.kind
    if run.project_id != experiment.project_id or kind != ScenarioKind.MODEL_SWITCH:
        raise InvalidInput(_("The way back is shown by a run of a model switch (S6) of the same project."))
    with transaction.atomic():
        stored = Experiment.objects.select_for_update().get(pk=experiment.pk)
        stored.rollback_run = run
        stored.version += 1
        stored.save(update_fields=["rollback_run", "version", "updated_at"])
        audit.record(
            actor=actor,
            verb="experiment.rollback_linked",
            obj=stored,
            project_id=stored.project_id,
            after={"state": stored.state, "rollback": str(run)},
        )
    return stored


def experiments_conclude() -> list[int]:
    """Compare every running experiment whose runs have all ended; returns their ids. Safe to call again."""
    concluded = []
    running = Experiment.objects.filter(state=ExperimentState.RUNNING).order_by("pk")
    for experiment in running.exclude(runs__run__state__in=ACTIVE_STATES).select_related("project"):
        result = conclusion(experiment)
        with transaction.atomic():
            stored = Experiment.objects.select_for_update().get(pk=experiment.pk)
            if stored.state != ExperimentState.RUNNING:
                continue
            stored.result = result
            _move(stored, system_actor(experiment.project.organisation_id), ExperimentState.COMPLETE)
        concluded.append(experiment.pk)
    return concluded


def _move(experiment: Experiment, actor: Actor, to: ExperimentState) -> None:
    before = {"state": experiment.state}
    experiment.state = to
    experiment.version += 1
    experiment.save(update_fields=["state", "result", "version", "updated_at"])
    audit.record(
        actor=actor,
        verb=f"experiment.{to}",
        obj=experiment,
        project_id=experiment.project_id,
        before=before,
        after={"state": experiment.state},
    )
    _announce(experiment)


def _announce(experiment: Experiment) -> None:
    here = {"experiment": experiment.pk, "number": experiment.number, "state": experiment.state}
    events.emit(f"project:{experiment.project_id}", "experiment", here)


def baseline_create(
    *, actor: Actor, project: Project, name: str, runs: Sequence[Run], noise: float | None = None
) -> Baseline:
    """Keep runs of one scenario and configuration as what later runs are held against.

    `noise` is the share that counts as noise where a single run tells none. Every run is a sound measurement.
    """
    policies.require(actor, "run.execute", project)
    _check_baseline(project, name, runs, noise)
    with transaction.atomic():
        Project.objects.select_for_update().get(pk=project.pk)
        if Baseline.objects.filter(project=project, name=name.strip()).exists():
            raise Conflict(_("This project has a baseline “%(name)s” already.") % {"name": name.strip()})
        baseline = Baseline.objects.create(
            project=project, name=name.strip(), noise=noise, created_by_id=responsible_person(actor)
        )
        baseline.runs.set(runs)
        audit.record(
            actor=actor,
            verb="baseline.created",
            obj=baseline,
            project_id=project.pk,
            after={"runs": [str(run) for run in runs], "noise": noise},
        )
    return baseline


def _check_baseline(project: Project, name: str, runs: Sequence[Run], noise: float | None) -> None:
    wrong = []
    if not name.strip():
        wrong.append(FieldError("/name", "required", _("This is required.")))
    if not runs:
        wrong.append(FieldError("/runs", "required", _("A baseline needs at least one run.")))
    for index, run in enumerate(runs):
        if run.project_id != project.pk or not comparable(run):
            text = _("Run %(run)s is no sound measurement of this project.") % {"run": run}
            wrong.append(FieldError(f"/runs/{index}", "invalid", text))
    if len({run.scenario_version_id for run in runs}) > 1 or len({run.target_id for run in runs}) > 1:
        text = _("The runs of a baseline share one scenario version and one target.")
        wrong.append(FieldError("/runs", "mixed", text))
    if noise is not None and not 0 <= noise < 1:
        wrong.append(FieldError("/noise", "range", _("Noise is a share from 0 to 1.")))
    if wrong:
        raise InvalidInput(_("Some of the baseline's input is wrong."), wrong)
