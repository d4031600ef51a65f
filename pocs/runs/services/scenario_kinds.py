"""Kinds of scenarios between the site and the engine: what may be run where, and the spec that is run."""

from typing import Any

from django.utils.translation import gettext as _

from pocs.common.errors import Conflict
from pocs.projects.models import ScenarioVersion
from pocs.projects.scenario_kinds import KIND_FORMS
from pocs.projects.services import workload_text
from pocs.runs.choices import TargetKind
from pocs.runs.models import Run, Target
from pocs.runs.services.targets import model_path


def runnable(version: ScenarioVersion, target: Target) -> bool:
    """Whether the target has what the scenario's kind needs."""
    form = KIND_FORMS.get(version.scenario.kind)
    return form is None or not form.needs_engine or target.kind == TargetKind.ENGINE


def check_runnable(version: ScenarioVersion, target: Target) -> None:
    """Raise Conflict for a kind that needs the embedded engine on another target.

    A second model must be one that may be loaded here: InvalidInput says what is wrong with it.
    """
    if not runnable(version, target):
        text = _("A scenario of the kind “%(kind)s” needs the embedded engine; %(target)s is an endpoint.")
        raise Conflict(text % {"kind": version.scenario.get_kind_display(), "target": target.name})
    if second := _second_model(version.spec):
        model_path(second)


def spec_of(run: Run) -> dict[str, Any]:
    """The scenario's spec as it is measured: a second model by its path, the content of its workload file."""
    spec: dict[str, Any] = run.scenario_version.spec
    if file := spec.get("workload"):
        spec = spec | {"workload_text": workload_text(run.project.workloads.get(digest=file))}
    if second := _second_model(spec):
        return spec | {"options": spec["options"] | {"second_model": str(model_path(second))}}
    return spec


def _second_model(spec: dict[str, Any]) -> str:
    return str((spec.get("options") or {}).get("second_model") or "")
