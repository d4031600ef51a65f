"""The page of delegations: who signs for whom, on which days."""

from django.contrib import messages
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST

from pocs.common.ui.mixins import actor_of, page, service_errors, service_messages
from pocs.people import delegations as services
from pocs.people import selectors
from pocs.people.ui.forms import DelegationForm

OPEN = ("coming", "current")


@require_http_methods(["GET", "POST"])
@page
def delegations(request: HttpRequest) -> HttpResponseBase:
    """Delegations that the reader may see; a POST gives one."""
    actor = actor_of(request)
    form = DelegationForm(request.POST or None, actor=actor)
    status = 200
    if request.method == "POST":
        status = 400
        if form.is_valid():
            with service_errors(form) as call:
                services.delegation_give(actor=actor, **form.cleaned_data)
            if not call.failed:
                messages.success(request, _("Saved."))
                return redirect("people:delegations")
            status = call.status
    may_all = selectors.is_admin(actor)
    rows = [
        {
            "row": row,
            "may_revoke": row.place in OPEN and (may_all or row.principal_id == actor.user_id),
        }
        for row in selectors.delegations_of(actor)
    ]
    context = {"rows": rows, "form": form}
    return render(request, "people/delegations.html", context, status=status)


@require_POST
@page
def delegation_revoke(request: HttpRequest, pk: int) -> HttpResponseBase:
    """End one delegation now."""
    actor = actor_of(request)
    with service_messages(request, _("The delegation has ended.")):
        services.delegation_revoke(actor=actor, delegation=selectors.delegation_get(actor, pk))
    return redirect("people:delegations")
