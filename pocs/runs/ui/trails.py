"""The way to each page of a run, for the breadcrumb: (label, url) pairs, the last without a url."""

from django.urls import reverse
from django.utils.translation import gettext as _

from pocs.projects.models import Project
from pocs.runs.models import Run

Trail = list[tuple[str, str]]


def project_trail(project: Project) -> Trail:
    """Projects / the project."""
    return [
        (_("Projects"), reverse("projects:list")),
        (project.name, reverse("projects:detail", args=[project.pk])),
    ]


def run_trail(run: Run, *, linked: bool = False) -> Trail:
    """Projects / the project / its matrix or its runs / the run (`linked`: as a link)."""
    middle = (_("Runs"), reverse("runs:list", args=[run.project_id]))
    if run.matrix is not None:
        label = _("Matrix %(number)s") % {"number": run.matrix}
        middle = (label, reverse("runs:matrix_detail", args=[run.project_id, run.matrix.number]))
    here = reverse("runs:detail", args=[run.pk]) if linked else ""
    return [*project_trail(run.project), middle, (_("Run %(number)s") % {"number": run}, here)]
