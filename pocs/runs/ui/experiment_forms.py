"""The form of an experiment: it shapes input, the service judges it."""

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from pocs.common.actors import Actor
from pocs.projects.models import Project, ScenarioVersion
from pocs.projects.selectors import approved_versions
from pocs.runs.models import Target
from pocs.runs.selectors import targets_of
from pocs.runs.ui.forms import TargetChoice, VersionChoice


class ExperimentForm(forms.Form):
    """Two sides that differ in one setting, and how often each runs."""

    name = forms.CharField(
        label=_("What is tried"), max_length=160, help_text=_("Such as “int8 weights instead of bfloat16”.")
    )
    scenario_version = VersionChoice(
        label=_("Scenario"), queryset=ScenarioVersion.objects.none(), empty_label=None
    )
    baseline_target = TargetChoice(
        label=_("Baseline (target)"), queryset=Target.objects.none(), empty_label=None
    )
    candidate_target = TargetChoice(
        label=_("Candidate (target)"),
        queryset=Target.objects.none(),
        required=False,
        empty_label=_("the same target"),
        help_text=_("A target that differs in one setting only."),
    )
    candidate_version = VersionChoice(
        label=_("Candidate (scenario)"),
        queryset=ScenarioVersion.objects.none(),
        required=False,
        empty_label=_("the same scenario"),
        help_text=_("Instead of another target: a version that differs in one field."),
    )
    repeats = forms.IntegerField(
        label=_("Repeats of each side"),
        initial=3,
        help_text=_("Run in turns (A B B A …), so that drift hits both sides alike."),
    )
    price_per_hour = forms.FloatField(
        label=_("Price of the device per hour"),
        required=False,
        help_text=_("Adds the cost of 1,000 output tokens."),
    )

    def __init__(self, *args: Any, actor: Actor, project: Project, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        versions, targets = approved_versions(project), targets_of(actor, project)
        for name in ("scenario_version", "candidate_version"):
            self.fields[name].queryset = versions  # type: ignore[attr-defined]
        for name in ("baseline_target", "candidate_target"):
            self.fields[name].queryset = targets  # type: ignore[attr-defined]
