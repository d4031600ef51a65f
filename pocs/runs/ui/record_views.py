"""Pages of a run's records: where they are and whether they are sound, their exports, and the report."""

from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.views.decorators.http import require_GET

from pocs.common.ui.mixins import actor_of, page
from pocs.runs import selectors
from pocs.runs.choices import ACTIVE_STATES
from pocs.runs.exports import EXPORTS, download, export_response
from pocs.runs.manifest import rows_check, segments_check
from pocs.runs.report import report_html
from pocs.runs.rescoring import rescored_of
from pocs.runs.ui.views import run_context


@page
@require_GET
def run_records(request: HttpRequest, pk: int) -> HttpResponse:
    """Segments of the run, exports, and the other tools' figures; `?verify=1` reads and checks everything."""
    actor = actor_of(request)
    run = selectors.run_get(actor, pk)
    ended = run.state not in ACTIVE_STATES
    verify = ended and request.GET.get("verify") == "1"
    context = run_context(actor, run, "records") | {
        "ended": ended,
        "segments": list(run.segments.order_by("number")),
        "kept": run.requests.count(),
        "verified": verify,
        "rows_sound": rows_check(run) if verify and run.manifest else None,
        "checks": segments_check(run) if verify else [],
        "forms": list(EXPORTS),
        "rescored": rescored_of(run) if ended else None,
    }
    return render(request, "runs/records.html", context)


@page
@require_GET
def run_export(request: HttpRequest, pk: int, form: str) -> HttpResponseBase:
    """The run's requests in one of the forms of `pocs.runs.exports`."""
    run = selectors.run_get(actor_of(request), pk)
    rows = selectors.rows_for_export(run, request.GET)
    return export_response(run, rows, form, bom=request.GET.get("bom") != "0")


@page
@require_GET
def run_report(request: HttpRequest, pk: int) -> HttpResponseBase:
    """The run as one HTML file."""
    run = selectors.run_get(actor_of(request), pk)
    name = f"run-{run.project_id}-R{run.number}-report.html"
    return download(name, "text/html; charset=utf-8", iter([report_html(run).encode()]))
