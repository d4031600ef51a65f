"""Pages of what a project declares: whom it affects, its readiness, what makes it real."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from django import forms
from django.contrib import messages
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST

from pocs.common.errors import StaleVersion
from pocs.common.ui.mixins import actor_of, page, service_errors, service_messages
from pocs.projects import plan, selectors, services
from pocs.projects.models import Project
from pocs.projects.readiness_support import support_of, support_url
from pocs.projects.ui.forms import AffectedEditForm, AffectedForm, DeclarationForm, ReadinessForm


@require_http_methods(["GET", "POST"])
@page
def affected(request: HttpRequest, pk: int) -> HttpResponseBase:
    """Applications, teams and data that the service touches."""
    actor = actor_of(request)
    project = selectors.project_get(actor, pk)
    form = AffectedForm(request.POST or None)
    status = 200
    if request.method == "POST":
        status = 400
        if form.is_valid():
            with service_errors(form) as call:
                services.affected_add(actor=actor, project=project, **form.cleaned_data)
            if not call.failed:
                return redirect("projects:affected", pk=pk)
            status = call.status
    may = selectors.may(actor, project)
    context = {"project": project, "items": plan.affected_of(project), "form": form, "may": may}
    return render(request, "projects/affected.html", context, status=status)


@require_http_methods(["GET", "POST"])
@page
def affected_item(request: HttpRequest, pk: int, item: int) -> HttpResponseBase:
    """Change one entry; a conflict shows what is stored now and keeps what was typed."""
    actor = actor_of(request)
    project = selectors.project_get(actor, pk, "project.edit")
    row = plan.affected_get(project, item)
    initial = {name: getattr(row, name) for name in AffectedEditForm.base_fields}
    form = AffectedEditForm(request.POST or None, initial=initial)
    status, stored = 200, None
    if request.method == "POST":
        status = 400
        if form.is_valid():
            with service_errors(form) as call:
                services.affected_update(actor=actor, project=project, item=row, **form.cleaned_data)
            if not call.failed:
                messages.success(request, _("Saved."))
                return redirect("projects:affected", pk=pk)
            status = call.status
            if isinstance(call.error, StaleVersion):
                stored = row
                form.data = {**form.data.dict(), "version": str(row.version)}  # type: ignore[attr-defined]
    context = {"project": project, "item": row, "form": form, "stored": stored}
    return render(request, "projects/affected_item.html", context, status=status)


@require_POST
@page
def affected_remove(request: HttpRequest, pk: int, item: int) -> HttpResponseBase:
    """Take one entry off the list."""
    actor = actor_of(request)
    project = selectors.project_get(actor, pk)
    with service_messages(request, _("Removed.")):
        services.affected_remove(actor=actor, project=project, item=plan.affected_get(project, item))
    return redirect("projects:affected", pk=pk)


@dataclass(frozen=True)
class Kinds:
    """A page of one form per kind of row: how to bind a form to a row, and how to save one."""

    template: str
    route: str
    bind: Callable[[Any, Any], forms.Form]
    save: Callable[[Any, dict[str, Any]], object]
    context: dict[str, Any] = field(default_factory=dict)


@require_http_methods(["GET", "POST"])
@page
def readiness(request: HttpRequest, pk: int) -> HttpResponseBase:
    """The five readiness points, each with its own form; one is saved at a time."""
    actor = actor_of(request)
    project = selectors.project_get(actor, pk)

    def bind(row: Any, data: Any) -> forms.Form:
        initial = {"ready": row.ready, "basis": row.basis, "team": row.team_id, "version": row.version}
        return ReadinessForm(data, actor=actor, prefix=row.kind, initial=initial)

    def save(row: Any, values: dict[str, Any]) -> None:
        services.readiness_set(actor=actor, project=project, kind=row.kind, **values)

    rows = plan.readiness_of(project)
    context = {
        "support": support_of(project),
        "support_urls": {row.kind: support_url(project, row.kind) for row in rows},
    }
    kinds = Kinds("projects/readiness.html", "projects:readiness", bind, save, context)
    return _kinds_page(request, project, rows, kinds)


@require_http_methods(["GET", "POST"])
@page
def declarations(request: HttpRequest, pk: int) -> HttpResponseBase:
    """Real requests, roles and operating metrics, each with its own form."""
    actor = actor_of(request)
    project = selectors.project_get(actor, pk)

    def bind(row: Any, data: Any) -> forms.Form:
        initial = {"statement": row.statement, "source": row.source, "version": row.version}
        return DeclarationForm(data, prefix=row.kind, initial=initial)

    def save(row: Any, values: dict[str, Any]) -> None:
        services.declaration_set(actor=actor, project=project, kind=row.kind, **values)

    kinds = Kinds("projects/declarations.html", "projects:declarations", bind, save)
    return _kinds_page(request, project, plan.declarations_of(project), kinds)


def _kinds_page(request: HttpRequest, project: Project, rows: list[Any], kinds: Kinds) -> HttpResponseBase:
    """Save the posted form (`kind`), or show the page again with what was typed and why not."""
    asked = request.POST.get("kind", "")
    bound = []
    status = 200
    for row in rows:
        form = kinds.bind(row, request.POST if asked == row.kind else None)
        stored = None
        if asked == row.kind:
            status = 400
            if form.is_valid():
                with service_errors(form) as call:
                    kinds.save(row, form.cleaned_data)
                if not call.failed:
                    messages.success(request, _("Saved."))
                    return redirect(kinds.route, pk=project.pk)
                status = call.status
                if isinstance(call.error, StaleVersion):
                    # saving again is then a choice made in view of what is stored
                    stored = row
                    form.data = {**form.data.dict(), f"{row.kind}-version": str(row.version)}  # type: ignore[attr-defined]
        bound.append({"row": row, "form": form, "stored": stored})
    context = {
        "project": project,
        "rows": bound,
        "may": selectors.may(actor_of(request), project),
        **kinds.context,
    }
    return render(request, kinds.template, context, status=status)
