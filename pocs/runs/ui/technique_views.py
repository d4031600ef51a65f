"""The page of the techniques: what each is for, what it costs, what it gained, and a candidate to try it."""

from dataclasses import dataclass
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_POST

from pocs.common.ui.mixins import actor_of, page, service_messages
from pocs.people import policies
from pocs.projects.selectors import project_get
from pocs.runs import effects, selectors, services
from pocs.runs.candidates import changed_switches, pairs_with_baseline
from pocs.runs.choices import TargetKind
from pocs.runs.effects import Effect
from pocs.runs.models import Run, Target
from pocs.runs.services.candidates import LOCATION
from pocs.runs.techniques import COMPUTING, GOALS, TECHNIQUES, Change, Technique
from pocs.runs.ui.target_views import target_of
from pocs.runs.ui.trails import project_trail

#: values that HTTP forms carry as words
WORDS = {"on": True, "off": False}


@dataclass(frozen=True)
class Shown:
    """One technique with its measured effects and the changes that it offers."""

    technique: Technique
    goals: list[tuple[str, str, str]]  # code, name of the pressure, how it serves it
    effects: list[Effect]
    choices: list[tuple[str, str]]  # `setting=value`, text

    @property
    def weights(self) -> bool:
        """Whether a switch changes the memory of the weights."""
        return any(effect.weights_bytes[0] != effect.weights_bytes[1] for effect in self.effects)


@dataclass(frozen=True)
class Candidate:
    """A candidate with what it changed, and the runs that can be compared."""

    target: Target
    changed: list[str]
    runs: tuple[Run, Run] | None


@page
@require_GET
def techniques(request: HttpRequest, pk: int) -> HttpResponse:
    """What each technique is for, what it costs, what it gained on this engine, and how to try it here."""
    actor = actor_of(request)
    project = project_get(actor, pk)
    found = effects.measured()
    engines = [target for target in selectors.targets_of(actor, project) if target.kind == TargetKind.ENGINE]
    context = {
        "project": project,
        "trail": [*project_trail(project), (_("Techniques"), "")],
        "measured": found,
        "shown": [_shown(technique) for technique in TECHNIQUES],
        "computing": found.of(COMPUTING) if found else [],
        "engines": engines,
        "candidates": candidates_of(engines),
        "may_edit": policies.allowed(actor, "target.edit", project),
    }
    return render(request, "runs/techniques.html", context)


def candidates_of(targets: list[Target]) -> list[Candidate]:
    """The candidates among the project's targets."""
    by_pk = {target.pk: target for target in targets}
    found = []
    for target in targets:
        if target.baseline_id in by_pk:
            target.baseline = by_pk[target.baseline_id]
            found.append(Candidate(target, changed_switches(target), pairs_with_baseline(target)))
    return found


@page
@require_POST
def candidate_new(request: HttpRequest, pk: int) -> HttpResponse:
    """Copy an engine target with one switch changed."""
    actor = actor_of(request)
    project = project_get(actor, pk)
    policies.require(actor, "target.edit", project)
    number = request.POST.get("source", "")
    source = target_of(actor, project, int(number) if number.isascii() and number.isdigit() else 0)
    chosen = [_change(text) for text in request.POST.getlist("change") if text]
    if (model := request.POST.get("model", "").strip()) != "":
        chosen.append(Change(LOCATION, model))
    with service_messages(request) as call:
        made = services.candidate_create(
            actor=actor, source=source, change={change.setting: change.value for change in chosen}
        )
    if call.failed:
        return redirect(_anchored(project.pk, request.POST.get("technique", "")))
    messages.success(
        request,
        _("“%(name)s” was added. Run the same scenario against it and against “%(baseline)s”, then compare.")
        % {"name": made.name, "baseline": source.name},
    )
    return redirect("runs:techniques", pk=project.pk)


def _change(text: str) -> Change:
    """`setting=value` of a form: a whole number, on or off, or a word."""
    setting, _equals, value = text.partition("=")
    typed: Any = WORDS.get(value, value)
    return Change(setting, int(value) if value.isascii() and value.isdigit() else typed)


def _anchored(pk: int, code: str) -> str:
    codes = {technique.code for technique in TECHNIQUES}
    return reverse("runs:techniques", args=[pk]) + (f"#{code}" if code in codes else "")


def _shown(technique: Technique) -> Shown:
    found = effects.measured()
    return Shown(
        technique,
        [(code, str(GOALS[code]), str(text)) for code, text in technique.goals.items()],
        found.of(technique.settings) if found else [],
        [(change.text.replace(" ", "=", 1), change.text) for change in technique.changes],
    )
