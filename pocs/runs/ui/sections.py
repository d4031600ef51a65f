"""What the runs add to the project page: the coverage of the matrix, and the latest runs."""

from typing import Any

from django.utils.translation import gettext_lazy as _

from pocs.common.actors import Actor
from pocs.people import policies
from pocs.projects.models import Project
from pocs.projects.ui.sections import Section, register_section
from pocs.runs import selectors
from pocs.runs.answers import newest_sample, totals_of
from pocs.runs.ui.grid import HEAVY, grid_of

RECENT_RUNS = 8


def register() -> None:
    """Add the sections; called once when the app starts."""
    register_section(Section("matrix", _("Matrix coverage"), 22, "runs/section_matrix.html", matrix_context))
    register_section(Section("answers", _("Answers"), 26, "runs/section_answers.html", answers_context))
    register_section(Section("runs", _("Runs"), 24, "runs/section_runs.html", runs_context))


def matrix_context(project: Project, actor: Actor) -> dict[str, Any]:
    """The grid and the way to run it."""
    return {
        "project": project,
        "grid": grid_of(project),
        "may_execute": policies.allowed(actor, "run.execute", project),
    }


def answers_context(project: Project, actor: Actor) -> dict[str, Any]:
    """The newest sample of answers and how far it is judged."""
    sample = newest_sample(project)
    return {
        "project": project,
        "sample": sample,
        "totals": totals_of(list(sample.answers.all()) if sample else []),
        "may_judge": policies.allowed(actor, "answers.judge", project),
    }


def runs_context(project: Project, actor: Actor) -> dict[str, Any]:
    """The newest runs and how many are active."""
    runs = selectors.runs_of(actor, project).defer(*HEAVY[1:])
    return {
        "project": project,
        "recent": list(runs[:RECENT_RUNS]),
        "active": selectors.active_runs(project).count(),
        "may_execute": policies.allowed(actor, "run.execute", project),
    }
