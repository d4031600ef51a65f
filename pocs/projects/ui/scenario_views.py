"""Pages of scenarios and their versions."""

from typing import Any

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from pocs.common.ui.mixins import actor_of, page, service_errors, service_messages
from pocs.projects import selectors, services
from pocs.projects.scenario_kinds import KIND_FORMS, options_shown
from pocs.projects.ui.load_fields import SHAPES
from pocs.projects.ui.scenario_form import LANGUAGE_NAMES, ScenarioForm, SpecForm, spec_as_typed
from pocs.projects.ui.workload_step import workload_step


@require_GET
@page
def scenarios(request: HttpRequest, pk: int) -> HttpResponseBase:
    """Every scenario of the project with its versions."""
    actor = actor_of(request)
    project = selectors.project_get(actor, pk)
    context = {
        "project": project,
        "scenarios": selectors.scenarios_of(project),
        "may": selectors.may(actor, project),
    }
    return render(request, "projects/scenarios.html", context)


def _posted(request: HttpRequest) -> tuple[Any, Any]:
    """What was posted, an empty body too: a form of nothing is told what it lacks."""
    return (request.POST, request.FILES) if request.method == "POST" else (None, None)


@require_http_methods(["GET", "POST"])
@page
def scenario_create(request: HttpRequest, pk: int) -> HttpResponseBase:
    """A new scenario with its first version."""
    actor = actor_of(request)
    project = selectors.project_get(actor, pk, "scenario.edit")
    kind = request.POST.get("kind") or request.GET.get("kind", "")
    options: dict[str, Any] = {"kind": kind, "project": project, "initial": {"kind": kind}}
    form = ScenarioForm(*_posted(request), **options)
    status, preview = 200, None
    if request.method == "POST":
        form, preview, status = workload_step(request, form, project, ScenarioForm, options)
        if preview is None and form.is_valid():
            typed = {name: form.cleaned_data[name] for name in ("slug", "name", "kind")}
            with service_errors(form) as call:
                version = services.scenario_create(actor=actor, project=project, spec=form.spec(), **typed)
            if not call.failed:
                return redirect("projects:scenario_version", pk, version.scenario.slug, version.number)
            status = call.status
    context = {
        "form": form,
        "project": project,
        "preview": preview,
        "kinds": KIND_FORMS.values(),
        "chosen": KIND_FORMS.get(kind),
    }
    return render(request, "projects/scenario_form.html", context, status=status)


@require_http_methods(["GET", "POST"])
@page
def scenario_edit(request: HttpRequest, pk: int, slug: str) -> HttpResponseBase:
    """An edit of a scenario: what is saved is its next version."""
    actor = actor_of(request)
    project = selectors.project_get(actor, pk, "scenario.edit")
    scenario = selectors.scenario_get(actor, project, slug)
    last = selectors.newest_version(scenario)
    options: dict[str, Any] = {
        "kind": scenario.kind,
        "project": project,
        "kept_quality": last.spec.get("quality") or (),
        "initial": spec_as_typed(last.spec),
    }
    form = SpecForm(*_posted(request), **options)
    status, preview = 200, None
    if request.method == "POST":
        form, preview, status = workload_step(request, form, project, SpecForm, options)
        if preview is None and form.is_valid():
            with service_errors(form) as call:
                version = services.scenario_version_add(actor=actor, scenario=scenario, spec=form.spec())
            if not call.failed:
                return redirect("projects:scenario_version", pk, slug, version.number)
            status = call.status
    context = {
        "form": form,
        "project": project,
        "scenario": scenario,
        "last": last,
        "preview": preview,
        "chosen": KIND_FORMS.get(scenario.kind),
    }
    return render(request, "projects/scenario_form.html", context, status=status)


@require_GET
@page
def scenario(request: HttpRequest, pk: int, slug: str) -> HttpResponseBase:
    """The newest version of a scenario."""
    actor = actor_of(request)
    project = selectors.project_get(actor, pk)
    newest = selectors.newest_version(selectors.scenario_get(actor, project, slug))
    return redirect("projects:scenario_version", pk, slug, newest.number)


@require_GET
@page
def scenario_version(request: HttpRequest, pk: int, slug: str, number: int) -> HttpResponseBase:
    """One version, readable, with its digest and its neighbours."""
    actor = actor_of(request)
    project = selectors.project_get(actor, pk)
    version = selectors.scenario_version_get(actor, project, slug, number)
    context = {
        "project": project,
        "scenario": version.scenario,
        "version": version,
        "versions": version.scenario.versions.all(),
        "typed": spec_as_typed(version.spec),
        "load_shape": dict(SHAPES).get(version.spec.get("arrival", "").partition(":")[0]),
        "workload_file": selectors.workload_of(version),
        "about_kind": KIND_FORMS.get(version.scenario.kind),
        "options": options_shown(version.scenario.kind, version.spec),
        "prompt_language": LANGUAGE_NAMES.get(version.spec["language"], version.spec["language"]),
        "may": selectors.may(actor, project),
    }
    return render(request, "projects/scenario_version.html", context)


@require_POST
@page
def version_state(request: HttpRequest, pk: int, slug: str, number: int) -> HttpResponseBase:
    """Approve or retire one version."""
    actor = actor_of(request)
    project = selectors.project_get(actor, pk)
    version = selectors.scenario_version_get(actor, project, slug, number)
    change = {
        "approve": services.scenario_version_approve,
        "retire": services.scenario_version_retire,
    }.get(request.POST.get("to", ""))
    if change is not None:
        with service_messages(request, _("Saved.")):
            change(actor=actor, version=version)
    return redirect("projects:scenario_version", pk, slug, number)
