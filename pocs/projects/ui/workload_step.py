"""The step of the scenario form in which a file is read and shown before its use; nothing typed is lost."""

from typing import Any, TypeVar

from django.http import HttpRequest

from pocs.common.ui.mixins import actor_of, service_errors
from pocs.projects import services
from pocs.projects.models import Project
from pocs.projects.ui.scenario_form import SpecForm
from pocs.projects.ui.workload_views import preview_of, upload

F = TypeVar("F", bound=SpecForm)


def workload_step(
    request: HttpRequest, form: F, project: Project, make: type[F], options: dict[str, Any]
) -> tuple[F, dict[str, Any] | None, int]:
    """The form to go on with, the preview to show instead of saving (if any), and the page's status.

    An upload is read and becomes the chosen file of the same form. A chosen file that nobody has looked at
    is shown; when the form comes back with `seen` naming it, it is confirmed.
    """
    form.is_valid()
    if form.cleaned_data.get("source") != "file":
        return form, None, 400
    if form.cleaned_data.get("workload_file"):
        return _uploaded(request, form, project, make, options)
    digest = form.cleaned_data.get("workload") or ""
    file = project.workloads.defer("content").filter(digest=digest).first()
    if file is not None and file.confirmed_at is None:
        if request.POST.get("seen") != digest:
            return form, preview_of(file), 200
        if form.is_valid():
            services.workload_confirm(actor=actor_of(request), workload=file)
        else:
            return form, preview_of(file), 400
    return form, None, 400


def _uploaded(
    request: HttpRequest, form: F, project: Project, make: type[F], options: dict[str, Any]
) -> tuple[F, dict[str, Any] | None, int]:
    if {"workload_format", "workload_columns"} & set(form.errors):
        return form, None, 400
    with service_errors(form) as call:
        kept = upload(request, form, project)
    if call.failed:
        return form, None, call.status
    data = request.POST.copy()
    data["workload"] = kept.digest
    return make(data, **options), preview_of(kept), 200
