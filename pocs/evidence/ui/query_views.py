"""Pages that query what evidence rests on: requests by tenant or application, recorded configurations."""

from dataclasses import asdict
from urllib.parse import urlencode

from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_http_methods

from pocs.common.errors import NotFound
from pocs.common.ui.mixins import actor_of, page, service_errors
from pocs.evidence import runtime, selectors, services
from pocs.evidence.choices import EvidenceType
from pocs.evidence.configurations import configurations_of
from pocs.evidence.ui.review_forms import QueryForm, ReadinessEvidenceForm
from pocs.people import policies
from pocs.projects.choices import ReadinessKind
from pocs.projects.selectors import project_get

PAGE_SIZE = 50


@page
@require_GET
def runtime_query(request: HttpRequest, pk: int) -> HttpResponse:
    """The requests behind runtime evidence, by tenant, application and outcome."""
    revision = selectors.revision_get(actor_of(request), pk)
    if revision.evidence.type != EvidenceType.RUNTIME:
        raise NotFound(_("Only runtime evidence rests on requests."))
    runs = list(revision.runs.all())
    tenants, applications = runtime.names_in(runs)
    form = QueryForm(request.GET or None, tenants=tenants, applications=applications)
    wanted = runtime.Filter(**form.cleaned_data) if form.is_bound and form.is_valid() else runtime.Filter()
    number = request.GET.get("page", "")
    offset = (int(number) - 1) * PAGE_SIZE if number.isdecimal() and 0 < int(number) < 10**9 else 0
    found = runtime.requests_matching(runs, wanted, offset=offset, limit=PAGE_SIZE)
    # the records were cut by the query already; the paginator only counts and names pages
    pages = Paginator(range(found.count), PAGE_SIZE).get_page(offset // PAGE_SIZE + 1)
    context = {
        "project": revision.evidence.project,
        "evidence": revision.evidence,
        "revision": revision,
        "form": form,
        "populations": runtime.populations(runs, wanted),
        "records": found.records,
        "count": found.count,
        "page": pages,
        "query": urlencode({name: value for name, value in asdict(wanted).items() if value}),
    }
    return render(request, "evidence/query.html", context, status=400 if form.errors else 200)


@page
@require_GET
def configurations(request: HttpRequest, pk: int) -> HttpResponse:
    """Every configuration that the project's runs recorded, against the one before it."""
    actor = actor_of(request)
    project = project_get(actor, pk)
    context = {
        "project": project,
        "configurations": configurations_of(project),
        "may_edit": policies.allowed(actor, "evidence.edit", project),
    }
    return render(request, "evidence/configurations.html", context)


@page
@require_http_methods(["GET", "POST"])
def readiness(request: HttpRequest, pk: int, kind: str) -> HttpResponse:
    """Which evidence shows one readiness point of the project."""
    actor = actor_of(request)
    project = project_get(actor, pk, "project.edit")
    if kind not in ReadinessKind.values:
        raise NotFound(_("There is no such readiness point."))
    choices = project.evidence.order_by("type", "id")
    chosen = project.readiness_support.filter(kind=kind).values_list("evidence_id", flat=True)
    form = ReadinessEvidenceForm(
        request.POST if request.method == "POST" else None,
        choices=choices,
        initial={"evidence": list(chosen)},
    )
    status = 200
    if request.method == "POST":
        status = 400
        if form.is_valid():
            with service_errors(form) as call:
                services.readiness_support_set(
                    actor=actor, project=project, kind=kind, evidence=form.cleaned_data["evidence"]
                )
            if not call.failed:
                return redirect("projects:readiness", pk)
            status = call.status
    context = {
        "project": project,
        "form": form,
        "point": ReadinessKind(kind).label,
        "any_evidence": choices.exists(),
    }
    return render(request, "evidence/readiness.html", context, status=status)
