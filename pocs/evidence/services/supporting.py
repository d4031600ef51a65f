"""Naming the evidence that shows a readiness point of the project (E9)."""

from collections.abc import Iterable

from django.db import transaction
from django.utils.translation import gettext as _

from pocs.common import audit
from pocs.common.actors import Actor
from pocs.common.errors import FieldError, InvalidInput
from pocs.evidence.models import Evidence, ReadinessSupport
from pocs.evidence.services.support import require_not_closed
from pocs.people import policies
from pocs.projects.choices import ReadinessKind
from pocs.projects.models import Project


@transaction.atomic
def readiness_support_set(
    *, actor: Actor, project: Project, kind: str, evidence: Iterable[Evidence]
) -> list[ReadinessSupport]:
    """Name exactly these pieces of evidence for a readiness point; what is not among them is taken off."""
    policies.require(actor, "project.edit", project)
    require_not_closed(project)
    if kind not in ReadinessKind.values:
        detail = _("There is no such readiness point.")
        raise InvalidInput(detail, [FieldError("/kind", "unknown", detail)])
    wanted = {item.pk: item for item in evidence}
    detail = _("There is no such evidence in this project.")
    wrong = [
        FieldError(f"/evidence/{index}", "not_found", detail)
        for index, item in enumerate(wanted.values())
        if item.project_id != project.pk
    ]
    if wrong:
        raise InvalidInput(detail, wrong)
    Project.objects.select_for_update().get(pk=project.pk)
    stored = {row.evidence_id: row for row in ReadinessSupport.objects.filter(project=project, kind=kind)}
    for pk, row in stored.items():
        if pk not in wanted:
            _record(actor, "readiness.support_removed", row)
            row.delete()
    for pk in wanted.keys() - stored.keys():
        row = ReadinessSupport.objects.create(
            project=project, kind=kind, evidence_id=pk, linked_by_id=actor.answers_with
        )
        _record(actor, "readiness.supported", row)
    return list(ReadinessSupport.objects.filter(project=project, kind=kind).select_related("evidence"))


def _record(actor: Actor, verb: str, row: ReadinessSupport) -> None:
    after = {"kind": row.kind, "evidence": row.evidence.title}
    audit.record(actor=actor, verb=verb, obj=row, project_id=row.project_id, after=after)
