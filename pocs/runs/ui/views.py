"""Pages of runs: the list, one run live and finished, its requests one by one."""

from typing import Any

from django.core.paginator import Paginator
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from pocs.common.errors import NotFound
from pocs.common.ui.mixins import actor_of, page, service_errors, service_messages
from pocs.people import policies
from pocs.projects.selectors import approved_versions, project_get
from pocs.runs import selectors, services
from pocs.runs.choices import ACTIVE_STATES, Outcome, RunState, Validity
from pocs.runs.endpoint_wording import run_check_text
from pocs.runs.models import RequestRecord, Run
from pocs.runs.recorder import LIVE_WINDOW_S
from pocs.runs.rescoring import rescored_of
from pocs.runs.ui import drawing, figures, request_page, timeline
from pocs.runs.ui.engine_facts import engine_facts
from pocs.runs.ui.forms import RunStartForm
from pocs.runs.ui.outputs import outputs_shown
from pocs.runs.ui.server_card import server_card
from pocs.runs.ui.trails import project_trail, run_trail
from pocs.runs.wording import limit_lines, validity_texts, verdict_of
from pocs.runs.wording.kinds import kind_findings_of

RUNS_PER_PAGE = 50
REQUESTS_PER_PAGE = 100
SLOWEST = 10
#: columns that lists of requests never show and that make rows heavy
HEAVY = ("reads", "stamps", "text", "reasoning_text", "token_ids")


@page
@require_GET
def run_list(request: HttpRequest, pk: int) -> HttpResponse:
    """The project's runs, newest first, by state and scenario."""
    actor = actor_of(request)
    project = project_get(actor, pk)
    runs = selectors.runs_of(actor, project).defer("summary", "configuration", "manifest", "diagnosis")
    scenarios = sorted(set(runs.order_by().values_list("scenario_version__scenario__slug", flat=True)))
    chosen = {name: request.GET.get(name, "") for name in ("state", "validity", "scenario")}
    if chosen["state"] in RunState.values:
        runs = runs.filter(state=chosen["state"])
    if chosen["validity"] in Validity.values:
        runs = runs.filter(validity=chosen["validity"])
    if chosen["scenario"]:
        runs = runs.filter(scenario_version__scenario__slug=chosen["scenario"])
    context = {
        "project": project,
        "trail": [*project_trail(project), (_("Runs"), "")],
        "runs": Paginator(runs, RUNS_PER_PAGE).get_page(request.GET.get("page")),
        "chosen": chosen,
        "filtered": any(chosen.values()),
        "states": RunState.choices,
        "validities": Validity.choices,
        "scenarios": scenarios,
        "may_execute": policies.allowed(actor, "run.execute", project),
    }
    return render(request, "runs/list.html", context)


@page
@require_http_methods(["GET", "POST"])
def run_start(request: HttpRequest, pk: int) -> HttpResponse:
    """Start one scenario version against one target."""
    actor = actor_of(request)
    project = project_get(actor, pk)
    policies.require(actor, "run.execute", project)
    form = RunStartForm(request.POST or None, actor=actor, project=project, initial=request.GET.dict())
    status = 200
    if request.method == "POST":
        status = 400
        if form.is_valid():
            with service_errors(form) as call:
                run = services.run_start(actor=actor, project=project, **form.cleaned_data)
            if not call.failed:
                return redirect("runs:detail", pk=run.pk)
            status = call.status
    context = {
        "project": project,
        "form": form,
        "trail": [*project_trail(project), (_("Run a scenario"), "")],
        "has_targets": selectors.targets_of(actor, project).exists(),
        "has_scenarios": approved_versions(project).exists(),
    }
    return render(request, "runs/start.html", context, status=status)


@page
@require_GET
def run_detail(request: HttpRequest, pk: int) -> HttpResponse:
    """One run: moving while it is active, the same figures from stored data when it has ended."""
    actor = actor_of(request)
    run = selectors.run_get(actor, pk)
    active = run.state in ACTIVE_STATES
    context = run_context(actor, run, "overview") | {
        "active": active,
        "tiles": figures.tiles(run.summary),
        "check_text": run_check_text(run.target_check),
        "legend": timeline.legend(),
    }
    if active:
        context |= {"drawing": drawing.live_drawing(run), "window_s": round(LIVE_WINDOW_S)}
    else:
        context |= finished_context(run)
    return render(request, "runs/detail.html", context)


def finished_context(run: Run) -> dict[str, Any]:
    """What the page of an ended run shows beyond its head, from stored data."""
    slowest = selectors.slowest_requests(run, SLOWEST)
    span_ms = max((timeline.total_ms(record.intervals_ms) for record in slowest), default=0.0)
    summary = run.summary or {}
    verdict = verdict_of(run)
    return {
        "drawing": drawing.finished_drawing(run),
        "slowest": [
            (
                record,
                timeline.drawn(record.intervals_ms, span_ms),
                verdict.slowest.get(record.index, "") if verdict else "",
            )
            for record in slowest
        ],
        "slowest_span_ms": span_ms,
        "percentiles": figures.percentile_rows(summary),
        "server": server_card(summary),
        "outcomes": figures.outcome_rows(summary),
        "rescored": rescored_of(run),
        "engine_facts": engine_facts(summary) if summary else [],
        "limits": limit_lines(summary),
        "reasons": validity_texts(run),
        "verdict": verdict,
        "kind": kind_findings_of(run),
        "outputs": outputs_shown(summary),
        "shares": timeline.drawn_shares(verdict.shares) if verdict else [],
    }


def run_context(actor: Any, run: Run, tab: str) -> dict[str, Any]:
    """What every page of one run needs: head, tabs, and what the reader may do."""
    return {
        "run": run,
        "project": run.project,
        "trail": run_trail(run),
        "tab": tab,
        "may_cancel": run.state in ACTIVE_STATES and policies.allowed(actor, "run.cancel", run.project),
        "may_attach": run.counts_as_evidence and policies.allowed(actor, "evidence.edit", run.project),
        "duration": run.finished_at - run.started_at if run.started_at and run.finished_at else None,
    }


@page
@require_POST
def run_cancel(request: HttpRequest, pk: int) -> HttpResponse:
    """Cancel an active run."""
    actor = actor_of(request)
    run = selectors.run_get(actor, pk)
    with service_messages(request, _("The run is being cancelled; what it measured so far is kept.")):
        services.run_cancel(actor=actor, run=run)
    return redirect("runs:detail", pk=run.pk)


@page
@require_GET
def run_requests(request: HttpRequest, pk: int) -> HttpResponse:
    """The run's requests, by tenant, application and outcome (E2)."""
    actor = actor_of(request)
    run = selectors.run_get(actor, pk)
    chosen = {name: request.GET.get(name, "") for name in ("tenant", "application", "outcome")}
    if chosen["outcome"] not in Outcome.values:
        chosen["outcome"] = ""
    found = selectors.requests_of(
        run, tenant=chosen["tenant"], application=chosen["application"], outcome=chosen["outcome"]
    )
    records = Paginator(found.defer(*HEAVY), REQUESTS_PER_PAGE).get_page(request.GET.get("page"))
    span_ms = max((timeline.total_ms(record.intervals_ms) for record in records), default=0.0)
    context = run_context(actor, run, "requests") | {
        "records": records,
        "rows": [(record, timeline.drawn(record.intervals_ms, span_ms)) for record in records],
        "chosen": chosen,
        "filtered": any(chosen.values()),
        "tenants": distinct(run.requests.all(), "tenant"),
        "applications": distinct(run.requests.all(), "application"),
        "outcomes": Outcome.choices,
        "legend": timeline.legend(),
    }
    return render(request, "runs/requests.html", context)


def distinct(records: QuerySet[RequestRecord], field: str) -> list[str]:
    """The values of one column that occur, without the empty one."""
    return sorted(value for value in records.order_by().values_list(field, flat=True).distinct() if value)


@page
@require_GET
def run_request(request: HttpRequest, pk: int, index: int) -> HttpResponse:
    """One request: its stamps, its intervals and that they add up, its answer."""
    actor = actor_of(request)
    run = selectors.run_get(actor, pk)
    measured = selectors.requests_of(run)
    record = measured.filter(index=index).first()
    if record is None:
        raise NotFound(_("This run has no request number %(index)s.") % {"index": index})
    context = run_context(actor, run, "requests") | request_page.context(record)
    context["trail"] = [*run_trail(run, linked=True), (record.request_id, "")]
    context["neighbours"] = {
        "previous": measured.filter(index__lt=index)
        .order_by("-index")
        .values_list("index", flat=True)
        .first(),
        "next": measured.filter(index__gt=index).order_by("index").values_list("index", flat=True).first(),
    }
    return render(request, "runs/request.html", context)
