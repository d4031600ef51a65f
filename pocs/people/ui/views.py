"""Pages of people and teams: everybody may look, administrators change."""

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from pocs.common.errors import NotPermitted
from pocs.common.ui.mixins import actor_of, page, service_errors, service_messages
from pocs.people import selectors, services
from pocs.people.ui.forms import PersonForm, PlaceForm, TeamForm


@require_GET
@page
def people(request: HttpRequest) -> HttpResponseBase:
    """Everybody of the organisation, and its teams."""
    actor = actor_of(request)
    context = {
        "people": selectors.people_of(actor),
        "teams": selectors.teams_of(actor),
        "is_admin": selectors.is_admin(actor),
    }
    return render(request, "people/people.html", context)


@require_http_methods(["GET", "POST"])
@page
def person_add(request: HttpRequest) -> HttpResponseBase:
    """Add a person; the first password is shown once, on the page that follows."""
    actor = actor_of(request)
    if not selectors.is_admin(actor):
        raise NotPermitted(_("Only administrators of the organisation may do this."))
    form = PersonForm(request.POST or None, actor=actor, initial={"role": "member"})
    status = 200
    if request.method == "POST":
        if form.is_valid():
            with service_errors(form) as call:
                user, password = services.user_add(actor=actor, **form.cleaned_data)
            if not call.failed:
                return render(request, "people/person_added.html", {"person": user, "password": password})
            status = call.status
        else:
            status = 400
    return render(request, "people/form.html", {"form": form, "title": _("Add a person")}, status=status)


@require_http_methods(["GET", "POST"])
@page
def person(request: HttpRequest, pk: int) -> HttpResponseBase:
    """One person; an administrator sets role and team here."""
    actor = actor_of(request)
    user = selectors.person_get(actor, pk)
    form = PlaceForm(
        request.POST or None, actor=actor, initial={"role": user.organisation_role, "team": user.team_id}
    )
    status = 200
    if request.method == "POST":
        if form.is_valid():
            with service_errors(form) as call:
                services.user_place(actor=actor, user=user, **form.cleaned_data)
            if not call.failed:
                return redirect("people:people")
            status = call.status
        else:
            status = 400
    context = {"person": user, "form": form, "is_admin": selectors.is_admin(actor)}
    return render(request, "people/person.html", context, status=status)


@require_POST
@page
def person_active(request: HttpRequest, pk: int) -> HttpResponseBase:
    """Deactivate a person, or let them in again."""
    actor = actor_of(request)
    user = selectors.person_get(actor, pk)
    with service_messages(request, _("Saved.")):
        services.user_activate(actor=actor, user=user, active=request.POST.get("active") == "yes")
    return redirect("people:person", pk=pk)


@require_http_methods(["GET", "POST"])
@page
def team_add(request: HttpRequest) -> HttpResponseBase:
    """Add a team."""
    actor = actor_of(request)
    if not selectors.is_admin(actor):
        raise NotPermitted(_("Only administrators of the organisation may do this."))
    form = TeamForm(request.POST or None)
    status = 200
    if request.method == "POST":
        if form.is_valid():
            with service_errors(form) as call:
                services.team_create(actor=actor, **form.cleaned_data)
            if not call.failed:
                return redirect("people:people")
            status = call.status
        else:
            status = 400
    return render(request, "people/form.html", {"form": form, "title": _("Add a team")}, status=status)
