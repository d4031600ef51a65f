"""Pages of targets: what a project measures."""

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from pocs.common.actors import Actor
from pocs.common.errors import NotFound
from pocs.common.ui.mixins import actor_of, page, service_errors, service_messages
from pocs.people import policies
from pocs.projects.models import Project
from pocs.projects.selectors import project_get
from pocs.runs import selectors, services
from pocs.runs.candidates import changed_switches
from pocs.runs.choices import ReportKind, TargetKind
from pocs.runs.endpoint_wording import check_headline, check_lines
from pocs.runs.habit_wording import habit_lines
from pocs.runs.models import Target
from pocs.runs.target_reports import newest, under_way
from pocs.runs.ui.forms import TargetForm
from pocs.runs.ui.switches import switch_groups
from pocs.runs.ui.trails import Trail, project_trail

#: a page that shows progress asks again after so long
REFRESH_S = 2


def target_trail(project: Project, here: str = "") -> Trail:
    """Projects / the project / targets, and `here` below them."""
    trail = [
        *project_trail(project),
        (_("Targets"), reverse("runs:targets", args=[project.pk]) if here else ""),
    ]
    return [*trail, (here, "")] if here else trail


def target_of(actor: Actor, project: Project, pk: int) -> Target:
    """The project's target; NotFound for one of another project."""
    target = selectors.target_get(actor, pk)
    if target.project_id != project.pk:
        raise NotFound(_("This project has no such target."))
    return target


@page
@require_GET
def target_list(request: HttpRequest, pk: int) -> HttpResponse:
    """The project's targets."""
    actor = actor_of(request)
    project = project_get(actor, pk)
    context = {
        "project": project,
        "targets": selectors.targets_of(actor, project).select_related("baseline"),
        "trail": target_trail(project),
        "may_edit": policies.allowed(actor, "target.edit", project),
        "may_execute": policies.allowed(actor, "run.execute", project),
    }
    return render(request, "runs/targets.html", context)


@page
@require_http_methods(["GET", "POST"])
def target_new(request: HttpRequest, pk: int) -> HttpResponse:
    """Add a target."""
    actor = actor_of(request)
    project = project_get(actor, pk)
    policies.require(actor, "target.edit", project)
    form = TargetForm(request.POST or None)
    status = 200
    if request.method == "POST":
        status = 400
        if form.is_valid():
            with service_errors(form) as call:
                services.target_create(
                    actor=actor,
                    project=project,
                    kind=form.cleaned_data["kind"],
                    credential=form.cleaned_data["credential"],
                    **form.fields_of_target(),
                )
            if not call.failed:
                messages.success(request, _("The target was added."))
                return redirect("runs:targets", pk=project.pk)
            status = call.status
    context = {
        "project": project,
        "form": form,
        "switch_groups": switch_groups(form),
        "trail": target_trail(project, _("New target")),
    }
    return render(request, "runs/target_form.html", context, status=status)


@page
@require_http_methods(["GET", "POST"])
def target_edit(request: HttpRequest, pk: int, target_pk: int) -> HttpResponse:
    """Change a target."""
    actor = actor_of(request)
    project = project_get(actor, pk)
    policies.require(actor, "target.edit", project)
    target = target_of(actor, project, target_pk)
    form = TargetForm(request.POST or None, target=target, initial=TargetForm.initial_of(target))
    status = 200
    if request.method == "POST":
        status = 400
        if form.is_valid():
            data = form.cleaned_data
            credential = "" if data.get("remove_credential") else data["credential"] or None
            with service_errors(form) as call:
                services.target_update(
                    actor=actor,
                    target=target,
                    version=data["version"] or 0,
                    credential=credential,
                    **form.fields_of_target(),
                )
            if not call.failed:
                messages.success(request, _("The target was saved."))
                return redirect("runs:targets", pk=project.pk)
            status = call.status
    context = {
        "project": project,
        "form": form,
        "switch_groups": switch_groups(form),
        "changed": changed_switches(target),
        "target": target,
        "trail": target_trail(project, target.name),
    }
    return render(request, "runs/target_form.html", context, status=status)


@page
@require_POST
def target_check(request: HttpRequest, pk: int, target_pk: int) -> HttpResponse:
    """Say whether the target can be measured now; of an endpoint, show the whole report."""
    actor = actor_of(request)
    project = project_get(actor, pk)
    target = target_of(actor, project, target_pk)
    with service_messages(request) as call:
        found = services.target_check(actor=actor, target=target)
    if not call.failed:
        level = messages.SUCCESS if found["ok"] else messages.ERROR
        messages.add_message(request, level, f"{target.name}: {found['text']}")
    if target.kind == TargetKind.HTTP:
        return redirect("runs:target_reports", pk=project.pk, target_pk=target.pk)
    return redirect("runs:targets", pk=project.pk)


@page
@require_GET
def target_reports(request: HttpRequest, pk: int, target_pk: int) -> HttpResponse:
    """What is known of an endpoint: its last check, and its stream habits."""
    actor = actor_of(request)
    project = project_get(actor, pk)
    target = target_of(actor, project, target_pk)
    check = newest(target, ReportKind.CHECK)
    conformance = newest(target, ReportKind.CONFORMANCE)
    running = under_way(target)
    context = {
        "project": project,
        "target": target,
        "trail": target_trail(project, target.name),
        "may_edit": policies.allowed(actor, "target.edit", project),
        "check": check,
        "lines": check_lines(check.report) if check else [],
        "headline": check_headline(check.report) if check else "",
        "conformance": conformance,
        "habits": habit_lines(conformance.report.get("habits") or []) if conformance else [],
        "under_way": running,
    }
    response = render(request, "runs/target_reports.html", context)
    if running:
        response["Refresh"] = str(REFRESH_S)
    return response


@page
@require_POST
def target_conformance(request: HttpRequest, pk: int, target_pk: int) -> HttpResponse:
    """Start a look at the stream habits of an endpoint."""
    actor = actor_of(request)
    project = project_get(actor, pk)
    target = target_of(actor, project, target_pk)
    with service_messages(request):
        services.conformance_start(actor=actor, target=target)
    return redirect("runs:target_reports", pk=project.pk, target_pk=target.pk)
