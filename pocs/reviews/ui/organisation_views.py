"""Pages beyond one project: the review policy, handing duties over, the whole file for an auditor."""

from django.contrib import messages
from django.http import FileResponse, HttpRequest
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_http_methods

from pocs.common.errors import StaleVersion
from pocs.common.ui.mixins import actor_of, page, service_errors
from pocs.people.selectors import active_people_of, is_admin
from pocs.projects.selectors import projects_visible_to
from pocs.reviews import services
from pocs.reviews.bundle import bundle_of
from pocs.reviews.duties import open_duties
from pocs.reviews.policy import policy_of
from pocs.reviews.ui.forms import HandOverForm, PolicyForm


@require_http_methods(["GET", "POST"])
@page
def policy(request: HttpRequest) -> HttpResponseBase:
    """What the organisation asks of a review; administrators change it for packages to come."""
    actor = actor_of(request)
    row = policy_of(actor.organisation_id)
    form = PolicyForm(request.POST or None, instance=row, initial={"version": row.version})
    status = 200
    if request.method == "POST":
        status = 400
        if form.is_valid():
            values = dict(form.cleaned_data)
            version = values.pop("version")
            with service_errors(form) as call:
                services.policy_save(actor=actor, version=version, **values)
            if not call.failed:
                messages.success(request, _("Saved; packages frozen before keep the policy they hold."))
                return redirect("reviews:policy")
            status = call.status
            if isinstance(call.error, StaleVersion):
                stored = policy_of(actor.organisation_id)
                form.data = {**form.data.dict(), "version": str(stored.version)}  # type: ignore[attr-defined]
    context = {"form": form, "row": policy_of(actor.organisation_id), "may_edit": is_admin(actor)}
    return render(request, "reviews/policy.html", context, status=status)


@require_http_methods(["GET", "POST"])
@page
def hand_over(request: HttpRequest) -> HttpResponseBase:
    """Open duties of the reader's projects, to be given to another person: all that are chosen or none."""
    actor = actor_of(request)
    duties = open_duties(projects=list(projects_visible_to(actor)))
    form = HandOverForm(request.POST or None, duties=duties, people=active_people_of(actor))
    status = 200
    if request.method == "POST":
        status = 400
        if form.is_valid():
            given = form.cleaned_data
            with service_errors(form) as call:
                done = services.duties_hand_over(
                    actor=actor, keys=given["items"], to=given["to"], reason=given["reason"]
                )
            if not call.failed:
                text = _("%(count)d duties are now with %(who)s.") % {"count": len(done), "who": given["to"]}
                messages.success(request, text)
                return redirect("reviews:hand_over")
            status = call.status
    context = {"form": form, "duties": duties}
    return render(request, "reviews/hand_over.html", context, status=status)


@require_GET
@page
def bundle(request: HttpRequest, pk: int) -> HttpResponseBase:
    """The project's whole file as one archive with its verifier."""
    made = bundle_of(actor_of(request), pk)
    return FileResponse(made.file, as_attachment=True, filename=made.name, content_type="application/zip")
