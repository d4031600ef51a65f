"""What live inference adds to the project page: the models that answer, and the way to the engine."""

from typing import Any

from django.utils.translation import gettext_lazy as _

from pocs.common.actors import Actor
from pocs.people import policies
from pocs.projects.models import Project
from pocs.projects.ui.sections import Section, register_section
from pocs.serving.access import CAPABILITY, models_of


def register() -> None:
    """Add the section; called once when the app starts."""
    register_section(Section("engine", _("Live inference"), 26, "serving/section.html", context))


def context(project: Project, actor: Actor) -> dict[str, Any]:
    """The project's models, by the names under which they are asked."""
    may_ask = policies.allowed(actor, CAPABILITY, project)
    return {"project": project, "models": models_of(project), "may_ask": may_ask}
