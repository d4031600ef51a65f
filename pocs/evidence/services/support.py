"""What the services of evidence share: who may write, the locked rows, the traces of a change."""

from typing import Any

from django.utils.translation import gettext as _

from pocs.common import audit, events
from pocs.common.actors import Actor
from pocs.common.errors import Conflict, FieldError, InvalidInput, StaleVersion, Text
from pocs.evidence.choices import ContributionKind, RevisionState
from pocs.evidence.content import stored_digest
from pocs.evidence.models import Contribution, Evidence, EvidenceRevision
from pocs.evidence.separation import person_behind
from pocs.people import policies
from pocs.projects.changes import notify_change
from pocs.projects.choices import ProjectState
from pocs.projects.models import Project


def invalid(pointer: str, code: str, detail: str) -> InvalidInput:
    return InvalidInput(detail, [FieldError(pointer, code, detail)])


def require_author(actor: Actor, project: Project) -> int:
    """The person who answers for what is written: the actor, or the sponsor of its token."""
    policies.require(actor, "evidence.edit", project)
    user_id = person_behind(actor)
    require_not_closed(project)
    return user_id


def require_not_closed(project: Project) -> None:
    """Raise Conflict for a project that is closed or cancelled: its record stays as it is."""
    if project.state in (ProjectState.CLOSED, ProjectState.CANCELLED):
        raise Conflict(_("The project is closed: its evidence no longer changes."))


def claim(evidence: Evidence, version: int | None = None) -> Evidence:
    """The evidence's row, locked; raises StaleVersion when it is not at `version` any more."""
    locked = Evidence.objects.select_for_update().get(pk=evidence.pk)
    if version is not None and locked.version != version:
        last = Contribution.objects.filter(revision__evidence=locked).select_related("user").last()
        raise StaleVersion(
            _("“%(title)s” was changed after you opened it, last by %(who)s. Nothing of yours was saved yet.")
            % {"title": locked.title, "who": last.user if last else "—"},
            current=locked.version,
        )
    return locked


def claim_revision(revision: EvidenceRevision, *expected: RevisionState) -> tuple[Evidence, EvidenceRevision]:
    """Evidence and revision as stored, locked; raises Conflict when the state is none of `expected`."""
    evidence = claim(revision.evidence)
    stored = EvidenceRevision.objects.select_related("evidence__project").get(pk=revision.pk)
    if stored.state not in expected:
        raise Conflict(
            _("Revision %(number)d is “%(state)s”; this needs “%(expected)s”.")
            % {
                "number": stored.number,
                "state": stored.get_state_display(),
                "expected": " / ".join(str(state.label) for state in expected),
            }
        )
    return evidence, stored


def move(revision: EvidenceRevision, to: RevisionState, **changes: Any) -> None:
    revision.state = to
    revision.version += 1
    for name, value in changes.items():
        setattr(revision, name, value)
    revision.save(update_fields=["state", "version", "updated_at", *changes])


def touch(evidence: Evidence) -> None:
    evidence.version += 1
    evidence.save(update_fields=["title", "version", "updated_at"])


def seal(revision: EvidenceRevision) -> None:
    """Store the digest of the draft's content as the database gives it back."""
    revision.content_sha256 = stored_digest(revision)
    revision.save(update_fields=["content_sha256"])


def contribute(revision: EvidenceRevision, actor: Actor, kind: ContributionKind) -> None:
    Contribution.objects.get_or_create(
        revision=revision, user_id=person_behind(actor), token_id=actor.token_id, kind=kind
    )


def facts(revision: EvidenceRevision) -> dict[str, Any]:
    """What the audit chain says of a revision."""
    return {
        "revision": revision.number,
        "state": str(revision.state),
        "title": revision.title,
        "content_sha256": revision.content_sha256,
    }


def tell(
    actor: Actor, verb: str, revision: EvidenceRevision, *, what: Text, before: dict[str, Any] | None = None
) -> None:
    """Audit entry, listeners of frozen packages, and the live pages of the project."""
    project = revision.evidence.project
    audit.record(
        actor=actor, verb=verb, obj=revision, project_id=project.pk, before=before, after=facts(revision)
    )
    notify_change(project=project, actor=actor, obj=revision, what=what)
    events.emit(
        f"project:{project.pk}",
        "evidence",
        {
            "evidence": revision.evidence_id,
            "type": revision.evidence.type,
            "revision": revision.number,
            "state": str(revision.state),
        },
    )
