"""Pages of what follows a decision: the three tasks, and who watches afterwards."""

from typing import Any

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from pocs.common.actors import Actor
from pocs.common.ui.mixins import actor_of, page, service_errors, service_messages
from pocs.people import policies
from pocs.projects import services as project_services
from pocs.projects.choices import ProjectState
from pocs.projects.gates import missing_before
from pocs.projects.models import Project
from pocs.projects.selectors import project_get
from pocs.projects.states import next_state
from pocs.reviews import selectors, services
from pocs.reviews.choices import ObservationState, TaskState
from pocs.reviews.ui.forms import ObserverForm, ReadingForm, ScheduleForm, TaskForm

ADVANCES = (ProjectState.FOLLOW_THROUGH, ProjectState.OBSERVING, ProjectState.CLOSED)
Bound = tuple[str, forms.Form]


@page
def follow_through(request: HttpRequest, pk: int) -> HttpResponse:
    """Budget, procurement and launch: who does it by when."""
    actor = actor_of(request)
    return _render_tasks(request, actor, project_get(actor, pk))


@page
@require_POST
def task_set(request: HttpRequest, pk: int, kind: str) -> HttpResponse:
    """Name owner and date of one task."""
    actor = actor_of(request)
    project = project_get(actor, pk)
    selectors.task_get(actor, project, kind)
    form = TaskForm(request.POST, prefix=kind, project=project)
    status = 400
    if form.is_valid():
        with service_errors(form) as call:
            services.task_set(actor=actor, project=project, kind=kind, **form.cleaned_data)
        if not call.failed:
            return redirect("reviews:follow_through", pk=pk)
        status = call.status
    return _render_tasks(request, actor, project, bound=(kind, form), status=status)


@page
@require_POST
def task_done(request: HttpRequest, pk: int, kind: str) -> HttpResponse:
    """Report one task as done."""
    actor = actor_of(request)
    project = project_get(actor, pk)
    with service_messages(request, _("The task is done.")):
        services.task_done(actor=actor, task=selectors.task_get(actor, project, kind))
    return redirect("reviews:follow_through", pk=pk)


@page
def observation(request: HttpRequest, pk: int) -> HttpResponse:
    """Capacity, cost and stability: who watches, and what was read."""
    actor = actor_of(request)
    return _render_observations(request, actor, project_get(actor, pk))


@page
@require_POST
def observer_set(request: HttpRequest, pk: int, kind: str) -> HttpResponse:
    """Name the observer of one of the three."""
    actor = actor_of(request)
    project = project_get(actor, pk)
    selectors.observation_get(actor, project, kind)
    form = ObserverForm(request.POST, prefix=kind, project=project)
    status = 400
    if form.is_valid():
        with service_errors(form) as call:
            services.observation_set(actor=actor, project=project, kind=kind, **form.cleaned_data)
        if not call.failed:
            return redirect("reviews:observation", pk=pk)
        status = call.status
    return _render_observations(request, actor, project, bound=(kind, form), status=status)


@page
@require_POST
def reading(request: HttpRequest, pk: int, kind: str) -> HttpResponse:
    """Enter one reading."""
    actor = actor_of(request)
    project = project_get(actor, pk)
    row = selectors.observation_get(actor, project, kind)
    form = ReadingForm(request.POST, prefix=f"read-{kind}")
    status = 400
    if form.is_valid():
        with service_errors(form) as call:
            services.observation_read(actor=actor, observation=row, **form.cleaned_data)
        if not call.failed:
            return redirect("reviews:observation", pk=pk)
        status = call.status
    return _render_observations(request, actor, project, reading=(kind, form), status=status)


@page
@require_POST
def schedule(request: HttpRequest, pk: int) -> HttpResponse:
    """Say which run is repeated while the project is observed."""
    actor = actor_of(request)
    project = project_get(actor, pk, "observation.edit")
    form = ScheduleForm(request.POST, prefix="schedule", project=project)
    status = 400
    if form.is_valid():
        given = dict(form.cleaned_data)
        with service_errors(form) as call:
            services.schedule_set(
                actor=actor, project=project, scenario_version=given.pop("scenario"), **given
            )
        if not call.failed:
            messages.success(request, _("Saved."))
            return redirect("reviews:observation", pk=pk)
        status = call.status
    return _render_observations(request, actor, project, scheduling=form, status=status)


def _schedule_context(actor: Actor, project: Project, bound: forms.Form | None) -> dict[str, Any]:
    """The repeated run and the form to set it, for whoever may."""
    row = selectors.schedule_of(actor, project)
    may = policies.allowed(actor, "observation.edit", project) and policies.allowed(
        actor, "run.execute", project
    )
    form: forms.Form | None = None
    if may and project.state not in (ProjectState.CLOSED, ProjectState.CANCELLED):
        initial = {"version": row.version, "active": row.active, "currency": row.currency}
        if row.pk is not None:
            initial |= {name: getattr(row, name) for name in ("every_days", "next_on", "cost_per_hour")}
            initial |= {"scenario": row.scenario_version_id, "target": row.target_id}
        form = bound or ScheduleForm(prefix="schedule", project=project, initial=initial)
    return {"schedule": row if row.pk else None, "schedule_form": form}


@page
@require_POST
def observation_close(request: HttpRequest, pk: int, kind: str) -> HttpResponse:
    """End one observation."""
    actor = actor_of(request)
    project = project_get(actor, pk)
    with service_messages(request, _("The observation is closed.")):
        services.observation_close(actor=actor, observation=selectors.observation_get(actor, project, kind))
    return redirect("reviews:observation", pk=pk)


@page
@require_POST
def advance(request: HttpRequest, pk: int, to: str) -> HttpResponse:
    """Take the project into follow-through, observation or its end."""
    actor = actor_of(request)
    project = project_get(actor, pk)
    with service_messages(request):
        project_services.project_advance(actor=actor, project=project, to=to)
        messages.success(request, _("The project is now “%(state)s”.") % {"state": ProjectState(to).label})
    target = "reviews:observation" if to != ProjectState.FOLLOW_THROUGH else "reviews:follow_through"
    return redirect(target, pk=pk)


def _advance_context(actor: Actor, project: Project) -> dict[str, Any]:
    """The next step of the project where it is one of these pages', with what is missing for it."""
    following = next_state(project)
    if following not in ADVANCES or not policies.allowed(actor, "project.advance", project):
        return {"next_state": None, "missing": []}
    return {"next_state": following, "missing": missing_before(project, following)}


def _render_tasks(
    request: HttpRequest, actor: Actor, project: Project, *, bound: Bound | None = None, status: int = 200
) -> HttpResponse:
    may_edit = policies.allowed(actor, "followthrough.edit", project)
    rows = []
    for view in selectors.task_views(project):
        task = view.task
        initial = {
            "version": task.version if task else 0,
            "owner": task.owner_id if task else None,
            "due_on": task.due_on if task else None,
            "note": task.note if task else "",
        }
        done = task is not None and task.state == TaskState.DONE
        form: forms.Form | None = None
        if may_edit and not done:
            form = TaskForm(prefix=view.kind.value, project=project, initial=initial)
            if bound and bound[0] == view.kind:
                form = bound[1]
        mine = task is not None and (may_edit or task.owner_id == actor.user_id)
        rows.append({"view": view, "form": form, "may_finish": mine and not done})
    context = {
        "project": project,
        "rows": rows,
        "decision": selectors.current_decision(project),
        "open_conditions": selectors.open_conditions(project),
        **_advance_context(actor, project),
    }
    return render(request, "reviews/follow_through.html", context, status=status)


def _render_observations(
    request: HttpRequest,
    actor: Actor,
    project: Project,
    *,
    bound: Bound | None = None,
    reading: Bound | None = None,
    scheduling: forms.Form | None = None,
    status: int = 200,
) -> HttpResponse:
    may_edit = policies.allowed(actor, "observation.edit", project)
    may_read_in = policies.allowed(actor, "observation.read_in", project)
    launched = project.state in (ProjectState.FOLLOW_THROUGH, ProjectState.OBSERVING)
    rows = []
    for view in selectors.observation_views(project):
        row = view.observation
        closed = row is not None and row.state == ObservationState.CLOSED
        form: forms.Form | None = None
        if may_edit and not closed:
            initial = {
                "version": row.version if row else 0,
                "observer": row.observer_id if row else None,
                "next_reading_on": row.next_reading_on if row else None,
            }
            form = ObserverForm(prefix=view.kind.value, project=project, initial=initial)
            if bound and bound[0] == view.kind:
                form = bound[1]
        reading_form: forms.Form | None = None
        mine = row is not None and (may_read_in or row.observer_id == actor.user_id)
        if row is not None and mine and launched and not closed:
            last = row.readings.first()
            unit = {"unit": last.unit} if last else {}
            reading_form = ReadingForm(prefix=f"read-{view.kind}", initial=unit)
            if reading and reading[0] == view.kind:
                reading_form = reading[1]
        may_close = may_edit and row is not None and not closed and project.state == ProjectState.OBSERVING
        rows.append({"view": view, "form": form, "reading_form": reading_form, "may_close": may_close})
    context = {
        "project": project,
        "rows": rows,
        **_schedule_context(actor, project, scheduling),
        **_advance_context(actor, project),
    }
    return render(request, "reviews/observation.html", context, status=status)
