"""Pages of the matrix: what it covers, what it lacks, and one execution of it moving."""

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_POST

from pocs.common.actors import Actor
from pocs.common.errors import NotFound
from pocs.common.ui.mixins import actor_of, page, service_errors, service_messages
from pocs.people import policies
from pocs.projects.models import Project
from pocs.projects.selectors import project_get
from pocs.runs import selectors, services
from pocs.runs.choices import ACTIVE_STATES, RunState
from pocs.runs.models import MatrixExecution, Run
from pocs.runs.ui.forms import MatrixStartForm
from pocs.runs.ui.grid import checklist_of, grid_of, matrix_missing
from pocs.runs.ui.trails import project_trail
from pocs.runs.ui.words import script_words

EXECUTIONS_SHOWN = 10


@page
@require_GET
def matrix(request: HttpRequest, pk: int) -> HttpResponse:
    """The coverage of the project's matrix and its executions so far."""
    actor = actor_of(request)
    project = project_get(actor, pk)
    return matrix_page(request, actor, project, MatrixStartForm(actor=actor, project=project))


@page
@require_POST
def matrix_start(request: HttpRequest, pk: int) -> HttpResponse:
    """Run every approved scenario against one target."""
    actor = actor_of(request)
    project = project_get(actor, pk)
    policies.require(actor, "run.execute", project)
    form = MatrixStartForm(request.POST, actor=actor, project=project)
    status = 400
    if form.is_valid():
        with service_errors(form) as call:
            execution = services.matrix_start(
                actor=actor, project=project, target=form.cleaned_data["target"]
            )
        if not call.failed:
            return redirect("runs:matrix_detail", pk=project.pk, number=execution.number)
        status = call.status
    return matrix_page(request, actor, project, form, status)


def matrix_page(
    request: HttpRequest, actor: Actor, project: Project, form: MatrixStartForm, status: int = 200
) -> HttpResponse:
    """The matrix page around `form`."""
    grid, coverage = grid_of(project), selectors.coverage(project)
    context = {
        "project": project,
        "trail": [*project_trail(project), (_("Matrix"), "")],
        "form": form,
        "grid": grid,
        "coverage": coverage,
        "checklist": checklist_of(grid, coverage),
        "may_edit_scenarios": policies.allowed(actor, "scenario.edit", project),
        "missing": matrix_missing(project),
        "versions": selectors.latest_approved_versions(project),
        "targets": list(selectors.targets_of(actor, project)),
        "executions": executions(selectors.matrices_of(actor, project)[:EXECUTIONS_SHOWN]),
        "may_execute": policies.allowed(actor, "run.execute", project),
        "may_edit_targets": policies.allowed(actor, "target.edit", project),
    }
    return render(request, "runs/matrix.html", context, status=status)


def executions(found: Any) -> list[dict[str, Any]]:
    """Each execution with how many of its runs have ended and how many count."""
    matrices = list(found)
    runs = Run.objects.filter(matrix__in=matrices).order_by().values("matrix_id", "state", "validity")
    rows: dict[int, dict[str, Any]] = {
        item.pk: {"matrix": item, "runs": 0, "ended": 0, "valid": 0} for item in matrices
    }
    for run in runs:
        row = rows[run["matrix_id"]]
        row["runs"] += 1
        row["ended"] += run["state"] not in ACTIVE_STATES
        row["valid"] += run["state"] == RunState.COMPLETE and run["validity"] == "valid"
    return list(rows.values())


@page
@require_GET
def matrix_detail(request: HttpRequest, pk: int, number: int) -> HttpResponse:
    """One execution: its runs, each with its progress and, once ended, its main figures."""
    actor = actor_of(request)
    project = project_get(actor, pk)
    execution = execution_of(actor, project, number)
    runs = list(
        selectors.runs_of(actor, project)
        .filter(matrix=execution)
        .defer("configuration", "manifest", "diagnosis")
        .order_by("number")
    )
    active = any(run.state in ACTIVE_STATES for run in runs)
    context = {
        "project": project,
        "execution": execution,
        "runs": runs,
        "ended": sum(run.state not in ACTIVE_STATES for run in runs),
        "valid": sum(run.counts_as_evidence for run in runs),
        "active": active,
        "live": {"active": active, "stream": f"matrix:{execution.pk}", "words": script_words()},
        "trail": [
            *project_trail(project),
            (_("Matrix"), reverse("runs:matrix", args=[project.pk])),
            (str(execution), ""),
        ],
        "may_cancel": active and policies.allowed(actor, "run.cancel", project),
    }
    return render(request, "runs/matrix_detail.html", context)


@page
@require_POST
def matrix_cancel(request: HttpRequest, pk: int, number: int) -> HttpResponse:
    """Cancel what is left of one execution."""
    actor = actor_of(request)
    project = project_get(actor, pk)
    execution = execution_of(actor, project, number)
    with service_messages(request, _("What was left of the matrix is being cancelled.")):
        services.matrix_cancel(actor=actor, matrix=execution)
    return redirect("runs:matrix_detail", pk=project.pk, number=execution.number)


def execution_of(actor: Actor, project: Project, number: int) -> MatrixExecution:
    """The project's execution with this number."""
    execution = selectors.matrices_of(actor, project).filter(number=number).first()
    if execution is None:
        raise NotFound(_("This project has no matrix execution M%(number)s.") % {"number": number})
    return execution
