"""What is read of a project's plan: what it touches, its readiness, and what it declares as real."""

from django.db.models import QuerySet
from django.utils.translation import gettext as _

from pocs.common.errors import NotFound
from pocs.common.reading import remembered
from pocs.projects.choices import DeclarationKind, ReadinessKind
from pocs.projects.models import AffectedItem, Declaration, Project, ReadinessItem


def affected_of(project: Project) -> QuerySet[AffectedItem]:
    return project.affected.all()


@remembered
def affected_items(project: Project) -> list[AffectedItem]:
    """The same, read once for the gate and the section of a page."""
    return list(affected_of(project))


def affected_get(project: Project, pk: int) -> AffectedItem:
    item = project.affected.filter(pk=pk).first()
    if item is None:
        raise NotFound(_("There is no such entry in this project."))
    return item


@remembered
def readiness_of(project: Project) -> list[ReadinessItem]:
    """All five points in order; those not stated yet as unsaved rows with version 0."""
    rows = {row.kind: row for row in project.readiness.select_related("team")}
    return [
        rows.get(kind) or ReadinessItem(project=project, kind=kind.value, version=0) for kind in ReadinessKind
    ]


def readiness_get(project: Project, kind: str) -> ReadinessItem:
    """One of the five points, stated or not."""
    row = next((row for row in readiness_of(project) if row.kind == kind), None)
    if row is None:
        raise NotFound(_("There is no such readiness point."))
    return row


@remembered
def declarations_of(project: Project) -> list[Declaration]:
    """All three declarations in order; those not made yet as unsaved rows with version 0."""
    rows = {row.kind: row for row in project.declarations.all()}
    return [
        rows.get(kind) or Declaration(project=project, kind=kind.value, version=0) for kind in DeclarationKind
    ]


def declaration_get(project: Project, kind: str) -> Declaration:
    """One of the three declarations, made or not."""
    row = next((row for row in declarations_of(project) if row.kind == kind), None)
    if row is None:
        raise NotFound(_("There is no such declaration."))
    return row
