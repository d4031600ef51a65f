"""Pages on which the conclusion and the business result are written."""

from collections.abc import Callable
from typing import Any

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _

from pocs.common.errors import StaleVersion
from pocs.common.ui.mixins import actor_of, page, service_errors
from pocs.people import policies
from pocs.projects.selectors import project_get
from pocs.reviews import selectors, services
from pocs.reviews.ui.forms import BusinessResultForm, ConclusionForm


@page
def conclusion(request: HttpRequest, pk: int) -> HttpResponse:
    """The conclusion about performance and operability (G7)."""
    return _finding(
        request,
        pk,
        read=selectors.conclusion_of,
        save=services.conclusion_save,
        form_class=ConclusionForm,
        template="reviews/conclusion.html",
    )


@page
def business_result(request: HttpRequest, pk: int) -> HttpResponse:
    """The business result before and after (G8)."""
    return _finding(
        request,
        pk,
        read=selectors.business_result_of,
        save=services.business_result_save,
        form_class=BusinessResultForm,
        template="reviews/business_result.html",
    )


def _finding(
    request: HttpRequest,
    pk: int,
    *,
    read: Callable[..., Any],
    save: Callable[..., Any],
    form_class: type[forms.ModelForm],
    template: str,
) -> HttpResponse:
    actor = actor_of(request)
    project = project_get(actor, pk)
    row = read(actor, project)
    version = row.version if row else 0
    context: dict[str, Any] = {
        "project": project,
        "row": row,
        "may_edit": policies.allowed(actor, "conclusion.edit", project),
    }
    if request.method != "POST":
        context["form"] = form_class(instance=row, initial={"version": version})
        return render(request, template, context)
    form = form_class(request.POST)
    context["form"] = form
    if not form.is_valid():
        return render(request, template, context, status=400)
    values = dict(form.cleaned_data)
    seen = values.pop("version")
    with service_errors(form) as call:
        save(actor=actor, project=project, version=seen, **values)
    if not call.failed:
        messages.success(request, _("Saved."))
        return redirect("projects:detail", pk=project.pk)
    if isinstance(call.error, StaleVersion):
        context["conflicts"] = _conflicts(form, row, values)
        retyped = request.POST.copy()
        retyped["version"] = str(version)
        form.data = retyped
    return render(request, template, context, status=call.status)


def _conflicts(form: forms.ModelForm, row: Any, values: dict[str, str]) -> list[dict[str, str]]:
    """What is stored now beside what was typed, field by field; saving again overwrites knowingly."""
    return [
        {
            "label": str(form.fields[name].label),
            "stored": getattr(row, name) if row else "",
            "typed": value,
            "empty": _("(empty)"),
        }
        for name, value in values.items()
        if (getattr(row, name) if row else "") != value
    ]
