"""Who contributed to what a package would hold: nobody among them may sign or confirm it."""

from typing import Any

from django.db.models import QuerySet

from pocs.common.models import AuditEntry
from pocs.evidence.models import EvidenceRevision
from pocs.evidence.selectors import contributors as evidence_contributors
from pocs.projects.models import Project, ScenarioVersion
from pocs.reviews.models import Package, Waiver
from pocs.runs.models import Run

#: what a package holds although no row names all who wrote it: kind -> verbs under which it is changed
AUDITED_KINDS = {
    "findings": ("conclusion.saved", "business_result.saved"),
    "plan": (
        "project.created",
        "project.changed",
        "affected.added",
        "affected.removed",
        "readiness.set",
        "declaration.set",
    ),
    "targets": ("target.created", "target.updated"),
}


def contributors_by_kind(project: Project) -> dict[str, set[int]]:
    """User ids by what they contributed, such as evidence, runs, scenarios, findings and the plan.

    The person behind a CI token is in `created_by` and `requested_by` as its sponsor; the sponsors
    are added once more from the tokens themselves, so that a row without them hides nobody. Whoever
    grants a waiver judges and does not contribute; whoever asks for one does.
    """
    revisions = EvidenceRevision.objects.filter(evidence__project=project)
    evidence = evidence_contributors(project)
    evidence |= _ids(revisions, "created_by_id", "submitted_by_id", "token__sponsor_id")
    return {
        "evidence": evidence,
        "runs": _ids(Run.objects.filter(project=project), "requested_by_id", "token__sponsor_id"),
        "scenarios": _ids(
            ScenarioVersion.objects.filter(scenario__project=project), "created_by_id", "approved_by_id"
        ),
        **{kind: _audited(project, verbs) for kind, verbs in AUDITED_KINDS.items()},
        "package": _ids(Package.objects.filter(project=project), "frozen_by_id"),
        "waivers": _ids(Waiver.objects.filter(project=project), "requested_by_id"),
    }


def contributors(project: Project) -> set[int]:
    """Ids of everyone who contributed anything that a package of the project holds or held."""
    return set().union(*contributors_by_kind(project).values())


def contributed(project: Project, user_id: int | None) -> list[str]:
    """Kinds of contribution of one person, e.g. `["evidence", "runs"]`; empty when there is none."""
    return [kind for kind, users in contributors_by_kind(project).items() if user_id in users]


def _audited(project: Project, verbs: tuple[str, ...]) -> set[int]:
    entries = AuditEntry.objects.filter(project_id=project.pk, verb__in=verbs).order_by()
    return set(entries.values_list("actor__user_id", flat=True).distinct()) - {None}


def _ids(rows: QuerySet[Any], *fields: str) -> set[int]:
    found: set[int] = set()
    for values in rows.order_by().values_list(*fields).distinct():
        found.update(value for value in values if value is not None)
    return found
