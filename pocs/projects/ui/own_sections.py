"""The sections of the project page that this app itself fills: the plan and the scenarios."""

from typing import Any

from django.utils.translation import gettext_lazy as _

from pocs.common.actors import Actor
from pocs.projects import plan, selectors
from pocs.projects.blueprints import BLUEPRINTS
from pocs.projects.models import Project
from pocs.projects.readiness_support import support_of
from pocs.projects.ui.sections import Section, register_section


def _plan(project: Project, actor: Actor) -> dict[str, Any]:
    return {
        "affected": plan.affected_items(project),
        "readiness": plan.readiness_of(project),
        "support": support_of(project),
        "blueprint": BLUEPRINTS.get(project.template),
        "declarations": plan.declarations_of(project),
    }


def _scenarios(project: Project, actor: Actor) -> dict[str, Any]:
    return {"scenarios": selectors.scenarios_of(project)}


def register() -> None:
    """Put both onto the project page."""
    register_section(Section("plan", _("Plan"), 10, "projects/section_plan.html", _plan))
    register_section(Section("scenarios", _("Scenarios"), 20, "projects/section_scenarios.html", _scenarios))
