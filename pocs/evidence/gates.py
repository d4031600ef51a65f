"""The gates of evidence: all four types reviewed (G5), each passing its review method (G6)."""

from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from pocs.common.errors import Missing
from pocs.evidence.choices import TYPE_CODES, EvidenceType
from pocs.evidence.content import ContentMismatch, check_content
from pocs.evidence.models import EvidenceRevision
from pocs.evidence.review import review_missing
from pocs.evidence.selectors import current_revisions, unreviewed_revisions
from pocs.projects.choices import ProjectState
from pocs.projects.gates import Gate, register_gate
from pocs.projects.models import Project


def evidence_reviewed(project: Project) -> list[Missing]:
    """G5: one reviewed revision of each of the four types, with its content as it was reviewed."""
    current = current_revisions(project)
    found = [_type_missing(project, kind) for kind in EvidenceType if not _of_type(current, kind)]
    for revision in current:
        try:
            check_content(revision)
        except ContentMismatch as mismatch:
            found.append(
                _missing("G5", EvidenceType(revision.evidence.type), str(mismatch), revision.evidence_id)
            )
    return found


def review_methods_pass(project: Project) -> list[Missing]:
    """G6: the review method of each reviewed revision returns rows, and nothing is missing in them."""
    current = current_revisions(project)
    found: list[Missing] = []
    waiting = [kind for kind in EvidenceType if not _of_type(current, kind)]
    if waiting:  # one line: what is to be done about each of them, G5 says
        text = _("the review methods of %(codes)s: they are checked once something of each is reviewed (G5)")
        codes = ", ".join(TYPE_CODES[kind] for kind in waiting)
        url = reverse("evidence:list", args=[project.pk])
        found.append(Missing(guard="G6", code="unreviewed", text=text % {"codes": codes}, url=url))
    for revision in current:
        kind = EvidenceType(revision.evidence.type)
        lacks = review_missing(revision)
        found += [
            _missing("G6", kind, f"{revision.evidence.title}: {lack}", revision.evidence_id) for lack in lacks
        ]
    return found


def register() -> None:
    """Add both gates to the registry of projects."""
    register_gate(
        Gate(
            code="G5",
            title=gettext_lazy("All four evidence types are reviewed"),
            before=ProjectState.EVIDENCE_COMPLETE,
            check=evidence_reviewed,
            waivable=False,
        )
    )
    register_gate(
        Gate(
            code="G6",
            title=gettext_lazy("Each evidence passes its review method"),
            before=ProjectState.EVIDENCE_COMPLETE,
            check=review_methods_pass,
        )
    )


def _of_type(revisions: list[EvidenceRevision], kind: EvidenceType) -> bool:
    return any(revision.evidence.type == kind for revision in revisions)


def _type_missing(project: Project, kind: EvidenceType) -> Missing:
    """The type is not there at all, or there is something of it that still waits."""
    started = unreviewed_revisions(project, kind)
    if not started:
        return Missing(
            guard="G5",
            code=TYPE_CODES[kind],
            text=_("missing: %(type)s") % {"type": kind.label},
            url=_create_url(project, kind),
        )
    revision = started[0]
    text = _("missing: the review of %(type)s: “%(title)s” is “%(state)s”") % {
        "type": kind.label,
        "title": revision.evidence.title,
        "state": revision.get_state_display(),
    }
    return _missing("G5", kind, text, revision.evidence_id)


def _missing(guard: str, kind: EvidenceType, text: str, evidence_pk: int) -> Missing:
    return Missing(
        guard=guard,
        code=TYPE_CODES[kind],
        text=text,
        object=f"evidence:{evidence_pk}",
        url=reverse("evidence:detail", args=[evidence_pk]),
    )


def _create_url(project: Project, kind: EvidenceType) -> str:
    return reverse("evidence:create", args=[project.pk, kind.value])
