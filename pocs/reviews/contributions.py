"""Who contributed to what a package would hold: nobody among them may sign or confirm it."""

from typing import Any

from django.db.models import QuerySet

from pocs.common.models import AuditEntry
from pocs.evidence.models import EvidenceRevision
from pocs.evidence.selectors import contributors as evidence_contributors
from pocs.projects.models import Project, ScenarioVersion
from pocs.reviews.models import Package
from pocs.runs.models import Run

#: verbs under which the conclusion and the business result are saved, whoever saved last
FINDING_VERBS = ("conclusion.saved", "business_result.saved")


def contributors_by_kind(project: Project) -> dict[str, set[int]]:
    """User ids by what they contributed: evidence, runs, scenarios, findings, package.

    The person behind a CI token is in `created_by` and `requested_by` as its sponsor; the sponsors
    are added once more from the tokens themselves, so that a row without them hides nobody.
    """
    revisions = EvidenceRevision.objects.filter(evidence__project=project)
    evidence = evidence_contributors(project)
    evidence |= _ids(revisions, "created_by_id", "submitted_by_id", "token__sponsor_id")
    edits = AuditEntry.objects.filter(project_id=project.pk, verb__in=FINDING_VERBS)
    findings = {entry.get("user_id") for entry in edits.values_list("actor", flat=True)} - {None}
    return {
        "evidence": evidence,
        "runs": _ids(Run.objects.filter(project=project), "requested_by_id", "token__sponsor_id"),
        "scenarios": _ids(ScenarioVersion.objects.filter(scenario__project=project), "created_by_id"),
        "findings": findings,
        "package": _ids(Package.objects.filter(project=project), "frozen_by_id"),
    }


def contributors(project: Project) -> set[int]:
    """Ids of everyone who contributed anything that a package of the project holds or held."""
    return set().union(*contributors_by_kind(project).values())


def contributed(project: Project, user_id: int | None) -> list[str]:
    """Kinds of contribution of one person, e.g. `["evidence", "runs"]`; empty when there is none."""
    return [kind for kind, users in contributors_by_kind(project).items() if user_id in users]


def _ids(rows: QuerySet[Any], *fields: str) -> set[int]:
    found: set[int] = set()
    for values in rows.order_by().values_list(*fields).distinct():
        found.update(value for value in values if value is not None)
    return found
