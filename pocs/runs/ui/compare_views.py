"""The page that sets two runs of a project side by side."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET

from inference.comparison.load import offered_load
from pocs.common.errors import NotFound
from pocs.common.ui.mixins import actor_of, page
from pocs.projects.selectors import project_get
from pocs.runs import selectors
from pocs.runs.candidates import switches_between
from pocs.runs.choices import RunState
from pocs.runs.experimenting import stated
from pocs.runs.ui import comparison
from pocs.runs.ui.grid import HEAVY
from pocs.runs.ui.trails import project_trail
from pocs.runs.wording.experiments import load_text


@page
@require_GET
def compare(request: HttpRequest, pk: int) -> HttpResponse:
    """Runs `a` and `b` (their numbers) side by side; without both, the choice of them."""
    actor = actor_of(request)
    project = project_get(actor, pk)
    runs = selectors.runs_of(actor, project).filter(state=RunState.COMPLETE)
    chosen = {}
    for name in ("a", "b"):
        number = request.GET.get(name, "").removeprefix("R")
        if not number:
            continue
        run = runs.filter(number=int(number)).first() if number.isascii() and number.isdigit() else None
        if run is None:
            raise NotFound(_("This project has no complete run R%(number)s.") % {"number": number[:20]})
        chosen[name] = run
    context = {
        "project": project,
        "trail": [*project_trail(project), (_("Compare runs"), "")],
        "runs": runs.defer(*HEAVY),
        "a": chosen.get("a"),
        "b": chosen.get("b"),
    }
    if len(chosen) == 2:
        context |= {
            "load": load_text({"load": offered_load([stated(chosen["a"])], [stated(chosen["b"])]).as_json()}),
            "figures": comparison.compared_figures(chosen["a"], chosen["b"]),
            "switches": switches_between(chosen["a"], chosen["b"]),
            "differences": comparison.configuration_differences(chosen["a"], chosen["b"]),
        }
    return render(request, "runs/compare.html", context)
