"""What the matrix lacks, as scenarios that can be added with one button after they were seen."""

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods

from pocs.common.ui.mixins import actor_of, page, service_messages
from pocs.projects import selectors, services
from pocs.projects.matrix_builder import plan_of
from pocs.projects.scenario_kinds import KIND_FORMS


@require_http_methods(["GET", "POST"])
@page
def missing_scenarios(request: HttpRequest, pk: int) -> HttpResponseBase:
    """Preview of the proposals; what is ticked is created as drafts."""
    actor = actor_of(request)
    project = selectors.project_get(actor, pk, "scenario.edit")
    if request.method == "POST":
        chosen = request.POST.getlist("slug")
        done = _("The scenarios were added as drafts; the technical lead approves them.")
        with service_messages(request, done) as call:
            services.scenarios_add_missing(actor=actor, project=project, slugs=chosen)
        if not call.failed:
            return redirect("projects:scenarios", pk)
    plan = plan_of(project)
    groups = [
        (_("Needed for G3"), True, plan.needed),
        (_("Kinds that no scenario covers yet"), False, plan.kinds),
    ]
    shown = [
        (title, ticked, [(one, KIND_FORMS[one.draft.kind]) for one in found])
        for title, ticked, found in groups
        if found
    ]
    context = {"project": project, "groups": shown, "plan": plan}
    return render(request, "projects/matrix_missing.html", context)
