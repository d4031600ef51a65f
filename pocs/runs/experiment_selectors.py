"""What can be read of experiments and baselines, scoped by the reader's organisation and role."""

from django.db.models import QuerySet
from django.utils.translation import gettext as _

from pocs.common.actors import Actor
from pocs.common.errors import NotFound
from pocs.people import policies
from pocs.projects.models import Project
from pocs.runs.models import Baseline, Experiment, ExperimentRun


def experiments_of(actor: Actor, project: Project) -> QuerySet[Experiment]:
    """The project's experiments, newest first; NotFound for a foreign project."""
    policies.require(actor, "project.view", project)
    return project.experiments.select_related(
        "scenario_version__scenario",
        "candidate_version__scenario",
        "baseline_target",
        "candidate_target",
        "started_by",
    ).order_by("-number")


def experiment_get(actor: Actor, pk: int, capability: str = "project.view") -> Experiment:
    """One experiment on which the actor has `capability`; NotFound for a foreign or an absent one."""
    found = (
        Experiment.objects.filter(pk=pk, project__organisation_id=actor.organisation_id)
        .select_related(
            "project",
            "scenario_version__scenario",
            "candidate_version__scenario",
            "baseline_target",
            "candidate_target",
            "rollback_run",
            "started_by",
        )
        .first()
    )
    if found is None:
        raise NotFound(_("There is no such experiment."))
    policies.require(actor, capability, found.project, unseen=_("There is no such experiment."))
    return found


def turns_of(experiment: Experiment) -> list[ExperimentRun]:
    """Its runs in the order in which they run."""
    return list(experiment.runs.select_related("run__scenario_version__scenario").order_by("position"))


def baselines_of(actor: Actor, project: Project) -> QuerySet[Baseline]:
    """The project's baselines by name; NotFound for a foreign project."""
    policies.require(actor, "project.view", project)
    return project.baselines.prefetch_related("runs").order_by("name", "id")


def baseline_get(actor: Actor, pk: int, capability: str = "project.view") -> Baseline:
    """One baseline on which the actor has `capability`; NotFound for a foreign or an absent one."""
    found = (
        Baseline.objects.filter(pk=pk, project__organisation_id=actor.organisation_id)
        .select_related("project")
        .first()
    )
    if found is None:
        raise NotFound(_("There is no such baseline."))
    policies.require(actor, capability, found.project, unseen=_("There is no such baseline."))
    return found
