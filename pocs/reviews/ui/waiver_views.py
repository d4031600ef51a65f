"""The page of waivers: asking for one, granting, refusing and revoking."""

from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from pocs.common.actors import Actor
from pocs.common.errors import NotFound
from pocs.common.ui.mixins import actor_of, page, service_errors
from pocs.people import policies
from pocs.projects.models import Project
from pocs.projects.selectors import project_get
from pocs.reviews import selectors, services
from pocs.reviews.choices import WaiverState
from pocs.reviews.ui.forms import NoteForm, WaiverForm


@page
def waivers(request: HttpRequest, pk: int) -> HttpResponse:
    """The project's waivers; POST asks for a new one."""
    actor = actor_of(request)
    project = project_get(actor, pk)
    if request.method != "POST":
        return _render(request, actor, project, WaiverForm())
    form = WaiverForm(request.POST)
    if not form.is_valid():
        return _render(request, actor, project, form, status=400)
    with service_errors(form) as call:
        services.waiver_request(actor=actor, project=project, **form.cleaned_data)
    if call.failed:
        return _render(request, actor, project, form, status=call.status)
    messages.success(request, _("The waiver is asked for; someone else grants or refuses it."))
    return redirect("reviews:waivers", pk=pk)


@page
@require_POST
def waiver_act(request: HttpRequest, pk: int, action: str) -> HttpResponse:
    """Grant, refuse or revoke one waiver."""
    actor = actor_of(request)
    waiver = selectors.waiver_get(actor, pk)
    form = NoteForm(request.POST, prefix=f"waiver-{pk}")
    form.is_valid()
    note = form.cleaned_data.get("note", "")
    with service_errors(form) as call:
        if action == "grant":
            services.waiver_grant(actor=actor, waiver=waiver)
        elif action == "refuse":
            services.waiver_refuse(actor=actor, waiver=waiver, note=note)
        elif action == "revoke":
            services.waiver_revoke(actor=actor, waiver=waiver, note=note)
        else:
            raise NotFound(_("There is no such action."))
    if call.failed:
        return _render(
            request, actor, waiver.project, WaiverForm(), acting=(waiver.pk, form), status=call.status
        )
    return redirect("reviews:waivers", pk=waiver.project_id)


def _render(
    request: HttpRequest,
    actor: Actor,
    project: Project,
    form: WaiverForm,
    *,
    acting: tuple[int, NoteForm] | None = None,
    status: int = 200,
) -> HttpResponse:
    may_grant = policies.allowed(actor, "waiver.grant", project)
    rows: list[dict[str, Any]] = []
    for waiver in selectors.waivers_of(actor, project):
        own = waiver.requested_by_id == actor.user_id
        open_to_me = may_grant and (
            (waiver.state == WaiverState.REQUESTED and not own) or waiver.state == WaiverState.GRANTED
        )
        bound = acting[1] if acting and acting[0] == waiver.pk else NoteForm(prefix=f"waiver-{waiver.pk}")
        rows.append({"waiver": waiver, "form": bound if open_to_me else None})
    context = {
        "project": project,
        "rows": rows,
        "form": form,
        "may_request": policies.allowed(actor, "waiver.request", project),
    }
    return render(request, "reviews/waivers.html", context, status=status)
