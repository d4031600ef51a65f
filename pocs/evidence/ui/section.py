"""The evidence on the project page: what each type holds, what waits, and what to write next."""

from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext_lazy as _

from pocs.common.actors import Actor
from pocs.common.errors import Text
from pocs.evidence.choices import CHECK_FOCUS, CURRENT_STATES, REVIEW_METHOD, TYPE_CODES, EvidenceType
from pocs.evidence.models import Evidence, EvidenceRevision
from pocs.evidence.selectors import evidence_of
from pocs.people import policies
from pocs.projects.models import Project
from pocs.projects.ui.sections import Section, register_section


@dataclass(frozen=True)
class EvidenceLine:
    """One piece of evidence in a list: its newest revision and the one the project rests on."""

    evidence: Evidence
    latest: EvidenceRevision
    current: EvidenceRevision | None


@dataclass(frozen=True)
class TypeBlock:
    """One of the four types with all evidence of it."""

    type: EvidenceType
    code: str
    focus: Text
    method: Text
    lines: list[EvidenceLine]


def type_blocks(project: Project, actor: Actor) -> list[TypeBlock]:
    """The four types in the order of the checklist."""
    lines: dict[str, list[EvidenceLine]] = {kind: [] for kind in EvidenceType}
    for evidence in evidence_of(actor, project):
        revisions: list[EvidenceRevision] = evidence.latest_revisions  # type: ignore[attr-defined]
        current = next((revision for revision in revisions if revision.state in CURRENT_STATES), None)
        lines[evidence.type].append(EvidenceLine(evidence, revisions[0], current))
    return [
        TypeBlock(kind, TYPE_CODES[kind], CHECK_FOCUS[kind], REVIEW_METHOD[kind], lines[kind])
        for kind in EvidenceType
    ]


def context(project: Project, actor: Actor) -> dict[str, Any]:
    """What the section's template needs."""
    return {
        "project": project,
        "blocks": type_blocks(project, actor),
        "may_edit": policies.allowed(actor, "evidence.edit", project),
    }


def register() -> None:
    """Put the section between runs and reviews."""
    register_section(
        Section(
            key="evidence",
            title=_("Evidence"),
            order=30,
            template="evidence/_section.html",
            context=context,
        )
    )
