"""Pages of request sets and traces: upload, preview of what was read, confirm or discard."""

from typing import Any

from django import forms
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST

from pocs.common.ui.mixins import actor_of, page, service_errors, service_messages
from pocs.projects import selectors, services
from pocs.projects.models import Project, WorkloadFile
from pocs.projects.ui.load_fields import UPLOAD_FIELDS, LoadFields
from pocs.projects.workload_port import workload_reader


class UploadForm(LoadFields):
    """The upload alone, without the fields of a scenario."""

    pointer_fields = {"/file": "workload_file", "/format": "workload_format"}

    def __init__(self, *args: Any, project: Project, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.prepare_load(project)
        for name in [name for name in self.fields if name not in UPLOAD_FIELDS]:
            del self.fields[name]
        self.fields["workload_file"].required = True
        self.fields["workload_file"].label = _("file")
        for field in self.fields.values():
            field.widget.attrs.pop("data-shown-for", None)


def preview_of(workload: WorkloadFile) -> dict[str, Any]:
    """What the template of the preview needs: the file, and its report in words."""
    return {"file": workload, "words": workload_reader().words(workload.report)}


def upload(request: HttpRequest, form: forms.Form, project: Project) -> WorkloadFile:
    """Keep the file of a valid form as it was read; raises what the service refuses."""
    file = form.cleaned_data["workload_file"]
    return services.workload_upload(
        actor=actor_of(request),
        project=project,
        name=file.name,
        raw=file.read(),
        format_name=form.cleaned_data["workload_format"],
        columns=form.cleaned_data["workload_columns"],
        skip_faulty=form.cleaned_data["workload_skip_faulty"],
    )


@require_http_methods(["GET", "POST"])
@page
def workloads(request: HttpRequest, pk: int) -> HttpResponseBase:
    """The files of the project, and the upload of one more."""
    actor = actor_of(request)
    project = selectors.project_get(
        actor, pk, "scenario.edit" if request.method == "POST" else "project.view"
    )
    form = UploadForm(request.POST or None, request.FILES or None, project=project)
    status = 200
    if request.method == "POST":
        status = 400
        if form.is_valid():
            with service_errors(form) as call:
                kept = upload(request, form, project)
            if not call.failed:
                return redirect("projects:workload", pk, kept.pk)
            status = call.status
    context = {
        "project": project,
        "form": form,
        "files": selectors.workloads_of(project),
        "may": selectors.may(actor, project),
    }
    return render(request, "projects/workloads.html", context, status=status)


@require_http_methods(["GET"])
@page
def workload(request: HttpRequest, pk: int, file: int) -> HttpResponseBase:
    """What was read of one file."""
    actor = actor_of(request)
    project = selectors.project_get(actor, pk)
    found = selectors.workload_get(project, file)
    context = {
        "project": project,
        "preview": preview_of(found),
        "used_by": selectors.versions_using(found),
        "may": selectors.may(actor, project),
    }
    return render(request, "projects/workload.html", context)


@require_POST
@page
def workload_state(request: HttpRequest, pk: int, file: int) -> HttpResponseBase:
    """Confirm a file after a look at its preview, or discard it."""
    actor = actor_of(request)
    project = selectors.project_get(actor, pk)
    found = selectors.workload_get(project, file)
    if request.POST.get("to") == "discard":
        with service_messages(request, _("The file was discarded.")) as call:
            services.workload_discard(actor=actor, workload=found)
        return redirect("projects:workload", pk, file) if call.failed else redirect("projects:workloads", pk)
    if request.POST.get("to") == "confirm":
        with service_messages(request, _("Scenarios may use the file now.")):
            services.workload_confirm(actor=actor, workload=found)
    return redirect("projects:workload", pk, file)
