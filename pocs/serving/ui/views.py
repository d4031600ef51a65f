"""The engine page of a project, and the part of it that is asked for again while it is open."""

from typing import Any

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET

from pocs.common.actors import Actor
from pocs.common.ui.mixins import actor_of, page
from pocs.people import policies
from pocs.projects.models import Project
from pocs.projects.selectors import project_get
from pocs.serving import selectors
from pocs.serving.access import CAPABILITY, models_of
from pocs.serving.limits import limits


@require_GET
@page
def engine(request: HttpRequest, pk: int) -> HttpResponseBase:
    """Which model is loaded, who has the engine, what waits, and how to ask it."""
    actor = actor_of(request)
    project = project_get(actor, pk)
    context = _state(actor, project) | {
        "models": models_of(project),
        "base_url": request.build_absolute_uri("/v1"),
        "may_ask": policies.allowed(actor, CAPABILITY, project),
        "may_issue": policies.allowed(actor, "project.tokens", project),
        "trail": [
            (_("Projects"), reverse("projects:list")),
            (project.name, reverse("projects:detail", args=[project.pk])),
            (_("Engine"), ""),
        ],
    }
    return render(request, "serving/engine.html", context)


@require_GET
@page
def engine_state(request: HttpRequest, pk: int) -> HttpResponseBase:
    """The moving part alone."""
    actor = actor_of(request)
    response = render(request, "serving/_state.html", _state(actor, project_get(actor, pk)))
    response["Cache-Control"] = "no-store"
    return response


def _state(actor: Actor, project: Project) -> dict[str, Any]:
    return {
        "project": project,
        "state": selectors.live_state(actor, project),
        "switches": selectors.switches_of(actor, project),
        "queue_limit": limits().queue,
    }
