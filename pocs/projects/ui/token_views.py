"""The page of a project's CI tokens."""

from datetime import timedelta

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST

from pocs.common.ui.mixins import actor_of, page, service_errors, service_messages
from pocs.projects import selectors, services
from pocs.projects.ui.forms import TokenForm

PROPOSED_LIFE_DAYS = 90


@require_http_methods(["GET", "POST"])
@page
def tokens(request: HttpRequest, pk: int) -> HttpResponseBase:
    """Tokens of the project; a new one is shown once, in the answer to its form."""
    actor = actor_of(request)
    project = selectors.project_get(actor, pk, "project.tokens")
    now = timezone.now()
    initial = {"scopes": ["read"], "expires_at": now + timedelta(days=PROPOSED_LIFE_DAYS)}
    sponsors = selectors.possible_sponsors(project)
    form = TokenForm(request.POST or None, sponsors=sponsors, initial=initial)
    status = 200
    plaintext = ""
    if request.method == "POST":
        status = 400
        if form.is_valid():
            with service_errors(form) as call:
                _issued, plaintext = services.token_issue(actor=actor, project=project, **form.cleaned_data)
            status = call.status
            if not call.failed:
                form = TokenForm(sponsors=sponsors, initial=initial)
    context = {
        "project": project,
        "tokens": selectors.tokens_of(actor, project),
        "form": form,
        "plaintext": plaintext,
        "now": now,
    }
    response = render(request, "projects/tokens.html", context, status=status)
    if plaintext:
        response["Cache-Control"] = "no-store"
    return response


@require_POST
@page
def token_revoke(request: HttpRequest, pk: int, token: int) -> HttpResponseBase:
    """End a token now."""
    actor = actor_of(request)
    project = selectors.project_get(actor, pk, "project.tokens")
    with service_messages(request, _("The token was revoked.")):
        services.token_revoke(actor=actor, project=project, token=selectors.token_get(actor, project, token))
    return redirect("projects:tokens", pk=pk)
