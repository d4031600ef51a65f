"""The reviews' part of the project page: findings, packages with sign-offs, decision, follow-through."""

from typing import Any

from django.utils.translation import gettext_lazy as _

from pocs.common.actors import Actor
from pocs.people import policies
from pocs.projects.models import Project
from pocs.projects.ui.sections import Section
from pocs.reviews import selectors
from pocs.reviews.guards import check_business_result, check_conclusion


def findings_context(project: Project, actor: Actor) -> dict[str, Any]:
    """What the conclusion and the business result still lack."""
    return {
        "conclusion_missing": check_conclusion(project),
        "business_missing": check_business_result(project),
    }


def review_context(project: Project, actor: Actor) -> dict[str, Any]:
    """The newest package with its slots, the decision, tasks and observers."""
    package = selectors.latest_package(project)
    return {
        "package": package,
        "slots": selectors.slot_views(package, actor) if package else [],
        "may_freeze": policies.allowed(actor, "package.freeze", project),
        "decision": selectors.current_decision(project),
        "open_conditions": selectors.open_conditions(project),
        "tasks": selectors.task_views(project),
        "observations": selectors.observation_views(project),
        "waivers": selectors.waivers_of(actor, project).count(),
    }


SECTIONS = [
    Section(
        "findings", _("Conclusion and business result"), 60, "reviews/section_findings.html", findings_context
    ),
    Section(
        "review", _("Review, decision and what follows"), 70, "reviews/section_review.html", review_context
    ),
]
