"""Pages of experiments: the list with its form, and one experiment with its runs and its comparison."""

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from pocs.common.errors import NotFound
from pocs.common.ui.mixins import actor_of, page, service_errors, service_messages
from pocs.people import policies
from pocs.projects.models import Project
from pocs.projects.selectors import project_get
from pocs.runs import experiment_selectors, services
from pocs.runs.choices import ACTIVE_STATES, ExperimentState
from pocs.runs.models import Experiment
from pocs.runs.ui.experiment_forms import ExperimentForm
from pocs.runs.ui.trails import project_trail
from pocs.runs.wording.experiments import compared_lines, load_text, outputs_text, tail_texts

#: half the width of the drawing of a relative difference, and what it stands for at most
DRAWN_HALF, DRAWN_MOST = 500.0, 0.5
#: what lies beyond is drawn at the edge, and can still be seen
DRAWN_LAST = 992.0


@page
@require_GET
def experiments(request: HttpRequest, pk: int) -> HttpResponse:
    """The project's experiments."""
    actor = actor_of(request)
    project = project_get(actor, pk)
    context = {
        "project": project,
        "trail": [*project_trail(project), (_("Experiments"), "")],
        "experiments": experiment_selectors.experiments_of(actor, project),
        "baselines": experiment_selectors.baselines_of(actor, project),
        "may_execute": policies.allowed(actor, "run.execute", project),
    }
    return render(request, "runs/experiments.html", context)


@page
@require_http_methods(["GET", "POST"])
def experiment_new(request: HttpRequest, pk: int) -> HttpResponse:
    """Start an experiment: two sides that differ in one setting."""
    actor = actor_of(request)
    project = project_get(actor, pk)
    policies.require(actor, "run.execute", project)
    form = ExperimentForm(request.POST or None, actor=actor, project=project, initial=request.GET.dict())
    status = 200
    if request.method == "POST":
        status = 400
        if form.is_valid():
            with service_errors(form) as call:
                found = services.experiment_start(actor=actor, project=project, **form.cleaned_data)
            if not call.failed:
                return redirect("runs:experiment", pk=project.pk, number=found.number)
            status = call.status
    context = {
        "project": project,
        "form": form,
        "trail": [*project_trail(project), (_("Experiments"), _list_url(project)), (_("New experiment"), "")],
    }
    return render(request, "runs/experiment_new.html", context, status=status)


@page
@require_GET
def experiment(request: HttpRequest, pk: int, number: int) -> HttpResponse:
    """One experiment: its runs in turns, and once they have ended, each figure with its verdict."""
    actor = actor_of(request)
    project = project_get(actor, pk)
    found = _experiment_of(actor, project, number)
    turns = experiment_selectors.turns_of(found)
    result = found.result or {}
    context = {
        "project": project,
        "experiment": found,
        "turns": turns,
        "ended": sum(turn.run.state not in ACTIVE_STATES for turn in turns),
        "active": found.state == ExperimentState.RUNNING,
        "result": result,
        "lines": [(line, drawn_difference(line.drawn)) for line in compared_lines(result)],
        "tails": tail_texts(result),
        "outputs": outputs_text(result),
        "load": load_text(result),
        "trail": [*project_trail(project), (_("Experiments"), _list_url(project)), (str(found), "")],
        "may_cancel": found.state == ExperimentState.RUNNING
        and policies.allowed(actor, "run.cancel", project),
    }
    return render(request, "runs/experiment.html", context)


@page
@require_POST
def experiment_cancel(request: HttpRequest, pk: int, number: int) -> HttpResponse:
    """Cancel what is left of an experiment."""
    actor = actor_of(request)
    project = project_get(actor, pk)
    found = _experiment_of(actor, project, number)
    with service_messages(request, _("What was left of the experiment is being cancelled.")):
        services.experiment_cancel(actor=actor, experiment=found)
    return redirect("runs:experiment", pk=project.pk, number=found.number)


def drawn_difference(found: Any) -> dict[str, float] | None:
    """A relative difference as a mark and a line between −50 % and +50 %, in units of the drawing."""
    if not found:
        return None

    def x(value: float) -> float:
        return round(min(DRAWN_HALF * (1 + max(-1.0, min(1.0, value / DRAWN_MOST))), DRAWN_LAST), 1)

    low, high = x(found.get("low", found["at"])), x(found.get("high", found["at"]))
    return {"x": x(found["at"]), "from": min(low, high), "width": max(abs(high - low), 2.0)}


def _experiment_of(actor: Any, project: Project, number: int) -> Experiment:
    found = experiment_selectors.experiments_of(actor, project).filter(number=number).first()
    if found is None:
        raise NotFound(_("This project has no experiment X%(number)s.") % {"number": number})
    return found


def _list_url(project: Project) -> str:
    return reverse("runs:experiments", args=[project.pk])
