"""The playground: ask the project's models, two beside each other, and keep a request as a scenario's."""

from typing import Any

from django import forms
from django.contrib import messages
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_http_methods

from pocs.common.actors import Actor
from pocs.common.ui.mixins import actor_of, page, service_errors
from pocs.people import policies
from pocs.projects.choices import ScenarioKind
from pocs.projects.models import Project
from pocs.projects.selectors import project_get, scenario_versions
from pocs.serving import services
from pocs.serving.access import CAPABILITY, models_of

#: kinds that one request can begin, without fields of their own
KINDS = (
    ScenarioKind.SHORT_REQUEST,
    ScenarioKind.LONG_CONTEXT,
    ScenarioKind.STREAMING,
    ScenarioKind.LONG_ANSWER,
    ScenarioKind.HIGH_CONCURRENCY,
)
#: class of the drawing, name; in the order in which an answer passes through them
PHASES = (
    ("waited", "phase-dispatch", gettext_lazy("waiting for the engine")),
    ("model_load", "phase-throttled", gettext_lazy("loading the model")),
    ("queue", "phase-queue", gettext_lazy("queue wait")),
    ("prefill", "phase-prefill", gettext_lazy("prefill")),
    ("decode", "phase-decode", gettext_lazy("decode")),
    ("rest", "phase-network", gettext_lazy("transport and the rest")),
)
ERRORS = {
    "not_signed_in": gettext_lazy(
        "You are no longer signed in. Sign in again in another tab, then send it once more."
    ),
    "csrf_failed": gettext_lazy("This page is too old to ask. Load it again."),
    "insufficient_permissions": gettext_lazy("Your roles on this project do not include asking its models."),
    "model_not_found": gettext_lazy("This model is no longer a target of the project. Load the page again."),
    "context_length_exceeded": gettext_lazy(
        "Request and answer together are longer than the model or its cache takes. Shorten the "
        "request or ask for fewer tokens."
    ),
    "queue_full": gettext_lazy("Too many requests wait for the engine already. Try again in a moment."),
    "rate_limit_exceeded": gettext_lazy(
        "You have too many requests open, or began too many within this minute."
    ),
    "engine_busy": gettext_lazy("The engine takes no more requests now. Try again in a moment."),
    "engine_taken_by_run": gettext_lazy("A measured run has taken the engine; the answer ended early."),
    "no_engine_worker": gettext_lazy("No engine worker is running, so nobody answers."),
    "engine_worker_lost": gettext_lazy("The engine worker has gone away; the answer ended early."),
    "engine_failed": gettext_lazy("The engine failed at this request."),
    "model_unavailable": gettext_lazy("The model cannot be loaded."),
    "broker_lost": gettext_lazy("The connection to the engine was lost; the answer ended early."),
    "request_too_large": gettext_lazy("The request is too large."),
}


class SaveForm(forms.Form):
    """A request as one of a scenario's: a new scenario of this name and kind, or one that is there."""

    scenario = forms.ChoiceField(label=gettext_lazy("add to"), required=False)
    name = forms.CharField(label=gettext_lazy("name of the new scenario"), max_length=160, required=False)
    kind = forms.ChoiceField(
        label=gettext_lazy("kind"), required=False, choices=[(kind.value, kind.label) for kind in KINDS]
    )
    prompt = forms.CharField(
        label=gettext_lazy("request"), widget=forms.Textarea(attrs={"rows": 4}), strip=False
    )
    input_tokens = forms.IntegerField(
        label=gettext_lazy("input length (tokens)"), min_value=1, required=False
    )
    output_tokens = forms.IntegerField(
        label=gettext_lazy("output length (tokens)"), min_value=1, required=False
    )
    temperature = forms.FloatField(label=gettext_lazy("temperature"), initial=0.0, required=False)
    seed = forms.IntegerField(label=gettext_lazy("seed"), initial=0, required=False)

    def __init__(self, *args: Any, project: Project, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        chosen: Any = self.fields["scenario"]
        chosen.choices = [("", _("a new scenario")), *_with_prompts(project)]

    def clean(self) -> dict[str, Any]:
        found = super().clean() or {}
        if not found.get("scenario"):
            for name in ("name", "input_tokens", "output_tokens"):
                if name in found and found[name] in (None, ""):
                    self.add_error(name, _("A new scenario needs this."))
        return found


def _with_prompts(project: Project) -> list[tuple[str, str]]:
    """Scenarios whose newest version has real requests of its own: short name and name."""
    newest: dict[str, Any] = {}
    for version in scenario_versions(project).select_related("scenario").order_by("number"):
        newest[version.scenario.slug] = version
    return sorted(
        (slug, version.scenario.name) for slug, version in newest.items() if version.spec.get("prompts")
    )


@require_http_methods(["GET", "POST"])
@page
def playground(request: HttpRequest, pk: int) -> HttpResponseBase:
    """Ask; a POST keeps a request as a scenario's."""
    actor = actor_of(request)
    project = project_get(actor, pk)
    policies.require(actor, CAPABILITY, project)
    form = SaveForm(request.POST or None, project=project)
    status = 200
    if request.method == "POST":
        status = 400
        if form.is_valid():
            with service_errors(form) as call:
                version = services.request_save(actor=actor, project=project, **_given(form))
            if not call.failed:
                text = _("The request is saved in %(version)s, a draft: complete it and have it approved.")
                messages.success(request, text % {"version": version})
                return redirect("projects:scenario_edit", pk=project.pk, slug=version.scenario.slug)
            status = call.status
    return render(request, "serving/playground.html", _context(actor, project, form), status=status)


def _given(form: SaveForm) -> dict[str, Any]:
    """What was typed; numbers that an addition to a scenario leaves out count as 1 or 0 and are not used."""
    given = dict(form.cleaned_data)
    for name, absent in (("input_tokens", 1), ("output_tokens", 1), ("temperature", 0.0), ("seed", 0)):
        if given[name] is None:
            given[name] = absent
    return given


def _context(actor: Actor, project: Project, form: SaveForm) -> dict[str, Any]:
    return {
        "project": project,
        "models": models_of(project),
        "sides": ("a", "b"),
        "form": form,
        "may_save": policies.allowed(actor, "scenario.edit", project),
        "phases": PHASES,
        "words": _words(project),
        "trail": [
            (_("Projects"), reverse("projects:list")),
            (project.name, reverse("projects:detail", args=[project.pk])),
            (_("Playground"), ""),
        ],
    }


def _words(project: Project) -> dict[str, Any]:
    """What the page's script says and where it asks."""
    return {
        "url": reverse("serving:playground", args=[project.pk]) + "answer/",
        "phases": {f"{name}_ms": {"css": css, "label": str(label)} for name, css, label in PHASES},
        "errors": {code: str(text) for code, text in ERRORS.items()},
        "texts": {
            "sent": _("Sent."),
            "waiting": _("Waiting: %(depth)s in front"),
            "held": _("A measured run has the engine; waiting for its end"),
            "held_by": _("Run %(run)s has the engine; waiting for its end"),
            "loading": _("Loading the model"),
            "taken": _("The engine worker has the request"),
            "queued": _("In the engine: queue and prefill"),
            "decode": _("Answering"),
            "done": _("Done"),
            "length": _("Done: the limit of output tokens was reached"),
            "stopped": _("Stopped"),
            "failed": _("The request failed: %(detail)s"),
            "nothing": _("(an empty answer)"),
        },
    }
