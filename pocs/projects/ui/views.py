"""Pages of the project itself: list, the project page, its description, members and history."""

from typing import Any

from django.contrib import messages
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.template.loader import render_to_string
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from pocs.common.actors import Actor
from pocs.common.errors import DomainError, StaleVersion
from pocs.common.events import last_number
from pocs.common.ui.mixins import actor_of, page, service_errors, service_messages
from pocs.people import policies
from pocs.people.selectors import person_get
from pocs.projects import selectors, services
from pocs.projects.models import Project
from pocs.projects.states import CLOSED_STATES
from pocs.projects.ui.entries import readable
from pocs.projects.ui.forms import CancelForm, CloneForm, MemberForm, NewProjectForm, ProjectForm
from pocs.projects.ui.sections import sections

PAGE_SIZE = 20
HISTORY_PAGE_SIZE = 50


@require_GET
@page
def project_list(request: HttpRequest) -> HttpResponseBase:
    """Projects the reader may see, each with its state and how much is missing for the next one."""
    actor = actor_of(request)
    found = Paginator(selectors.projects_visible_to(actor), PAGE_SIZE).get_page(request.GET.get("page"))
    rows = [(project, selectors.next_step_of(project)) for project in found]
    context = {
        "rows": rows,
        "page": found,
        "administered": selectors.projects_administered_by(actor),
        "may_audit": selectors.may_audit(actor),
        "may_create": policies.may_create(actor),
    }
    return render(request, "projects/list.html", context)


@require_http_methods(["GET", "POST"])
@page
def create(request: HttpRequest) -> HttpResponseBase:
    """A new project, in draft."""
    actor = actor_of(request)
    form = NewProjectForm(request.POST or None, initial={"template": request.GET.get("template", "")})
    status = 200
    if request.method == "POST":
        status = 400
        if form.is_valid():
            with service_errors(form) as call:
                project = services.project_start(
                    actor=actor, template=form.cleaned_data["template"], **form.values()
                )
            if not call.failed:
                return redirect("projects:detail", pk=project.pk)
            status = call.status
    return render(request, "projects/create.html", {"form": form}, status=status)


@require_http_methods(["GET", "POST"])
@page
def clone(request: HttpRequest, pk: int) -> HttpResponseBase:
    """A new project with what another one declares; the page says what comes along and what does not."""
    actor = actor_of(request)
    source = selectors.project_get(actor, pk)
    form = CloneForm(request.POST or None)
    status = 200
    if request.method == "POST":
        status = 400
        if form.is_valid():
            with service_errors(form) as call:
                project = services.project_clone(actor=actor, source=source, **form.cleaned_data)
            if not call.failed:
                return redirect("projects:detail", pk=project.pk)
            status = call.status
    return render(request, "projects/clone.html", {"form": form, "project": source}, status=status)


@require_GET
@page
def detail(request: HttpRequest, pk: int) -> HttpResponseBase:
    """The project page: where it stands, what is missing, and what every app has to say."""
    actor = actor_of(request)
    return project_page(request, actor, selectors.project_get(actor, pk))


def project_page(
    request: HttpRequest, actor: Actor, project: Project, *, refusal: DomainError | None = None
) -> HttpResponse:
    """The project page; `refusal` stands at its top when a step was just refused."""
    may = selectors.may(actor, project)
    shared = {"project": project, "may": may, "is_open": project.state not in CLOSED_STATES}
    blocks = [
        {
            "key": section.key,
            "title": section.title,
            "html": render_to_string(
                section.template, shared | section.context(project, actor), request=request
            ),
        }
        for section in sections()
    ]
    context = shared | {
        "blocks": blocks,
        "progress": selectors.progress_of(project),
        "steps": selectors.steps_of(project),
        "unlinked": set(may) <= {"project_view", "project_export", "objection_raise"},
        "last_event": last_number(f"project:{project.pk}"),
        "refusal": refusal,
        "refusal_missing": getattr(refusal, "missing", []),
    }
    return render(request, "projects/detail.html", context, status=refusal.status if refusal else 200)


@require_http_methods(["GET", "POST"])
@page
def edit(request: HttpRequest, pk: int) -> HttpResponseBase:
    """The description of a project; a conflict shows both versions and keeps what was typed."""
    actor = actor_of(request)
    project = selectors.project_get(actor, pk, "project.edit")
    form = ProjectForm(request.POST or None, instance=project, initial={"version": project.version})
    conflict: list[dict[str, Any]] = []
    status = 200
    if request.method == "POST":
        status = 400
        if form.is_valid():
            # the form's validation wrote into its instance
            stored = selectors.project_get(actor, pk, "project.edit")
            seen = form.cleaned_data["version"] or 0
            with service_errors(form) as call:
                services.project_update(actor=actor, project=stored, version=seen, **form.values())
            if not call.failed:
                messages.success(request, _("Saved."))
                return redirect("projects:detail", pk=pk)
            if isinstance(call.error, StaleVersion):
                conflict = _differences(form, stored)
                form.data = {**form.data.dict(), "version": str(stored.version)}  # type: ignore[attr-defined]
            status = call.status
    context = {"form": form, "project": project, "conflict": conflict}
    return render(request, "projects/edit.html", context, status=status)


def _differences(form: ProjectForm, stored: Project) -> list[dict[str, Any]]:
    """Fields whose typed value differs from the stored one: what a second save would overwrite."""
    typed = form.values()
    return [
        {"label": form.fields[name].label, "stored": getattr(stored, name), "typed": value}
        for name, value in typed.items()
        if getattr(stored, name) != value
    ]


@require_POST
@page
def advance(request: HttpRequest, pk: int) -> HttpResponseBase:
    """The next step of a project; a refusal shows the project page with what is missing."""
    actor = actor_of(request)
    project = selectors.project_get(actor, pk)
    try:
        moved = services.project_advance(actor=actor, project=project, to=request.POST.get("to", ""))
    except DomainError as error:
        if error.status in (403, 404):
            raise
        return project_page(request, actor, project, refusal=error)
    messages.success(request, _("The project is now “%(state)s”.") % {"state": moved.get_state_display()})
    return redirect("projects:detail", pk=pk)


@require_http_methods(["GET", "POST"])
@page
def cancel(request: HttpRequest, pk: int) -> HttpResponseBase:
    """Give a project up, with a reason."""
    actor = actor_of(request)
    project = selectors.project_get(actor, pk, "project.advance")
    form = CancelForm(request.POST or None)
    status = 200
    if request.method == "POST":
        status = 400
        if form.is_valid():
            with service_errors(form) as call:
                services.project_cancel(actor=actor, project=project, reason=form.cleaned_data["reason"])
            if not call.failed:
                return redirect("projects:detail", pk=pk)
            status = call.status
    return render(request, "projects/cancel.html", {"form": form, "project": project}, status=status)


@require_http_methods(["GET", "POST"])
@page
def members(request: HttpRequest, pk: int) -> HttpResponseBase:
    """Who has which role; leads and administrators of the organisation change it."""
    actor = actor_of(request)
    project = selectors.project_for_members(actor, pk)
    form = MemberForm(request.POST or None, actor=actor)
    status = 200
    if request.method == "POST":
        status = 400
        if form.is_valid():
            with service_errors(form) as call:
                services.member_add(actor=actor, project=project, **form.cleaned_data)
            if not call.failed:
                return redirect("projects:members", pk=pk)
            status = call.status
    may = selectors.may(actor, project)
    context = {
        "project": project,
        "members": selectors.members_of(project),
        "form": form if may.get("project_members") else None,
        "may": may,
    }
    return render(request, "projects/members.html", context, status=status)


@require_POST
@page
def member_remove(request: HttpRequest, pk: int) -> HttpResponseBase:
    """Take one role of one person back."""
    actor = actor_of(request)
    project = selectors.project_for_members(actor, pk)
    number = request.POST.get("user", "")
    person = person_get(actor, int(number) if number.isdecimal() else 0)
    with service_messages(request, _("Saved.")):
        services.member_remove(actor=actor, project=project, user=person, role=request.POST.get("role", ""))
    return redirect("projects:members", pk=pk)


@require_GET
@page
def history(request: HttpRequest, pk: int) -> HttpResponseBase:
    """Everything that happened in the project, newest first."""
    actor = actor_of(request)
    project = selectors.project_get(actor, pk)
    found = Paginator(selectors.history(actor, project), HISTORY_PAGE_SIZE).get_page(request.GET.get("page"))
    context = {"project": project, "page": found, "entries": readable(list(found))}
    return render(request, "projects/history.html", context)
