"""Asking one person for the review of a submitted revision."""

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from pocs.common import audit
from pocs.common.actors import Actor
from pocs.common.errors import Conflict, NotPermitted
from pocs.evidence.choices import RequestState, RevisionState
from pocs.evidence.models import EvidenceRevision, ReviewRequest
from pocs.evidence.separation import review_refusal
from pocs.evidence.services.support import claim_revision, invalid, require_not_closed
from pocs.people import policies
from pocs.people.models import User

NOTE_MAX_CHARACTERS = 2_000


@transaction.atomic
def review_request(
    *, actor: Actor, revision: EvidenceRevision, person: User, note: str = ""
) -> ReviewRequest:
    """Ask `person` to review a submitted revision; they must be able to (InvalidInput at `/person`).

    Whoever writes or reviews the evidence may ask. Raises Conflict when they were asked already.
    """
    asking_require(actor=actor, revision=revision)
    require_not_closed(revision.evidence.project)
    _evidence, revision = claim_revision(revision, RevisionState.SUBMITTED)
    note = note.strip()
    if len(note) > NOTE_MAX_CHARACTERS:
        raise invalid("/note", "max_length", _("At most %(max)d characters.") % {"max": NOTE_MAX_CHARACTERS})
    refusal = reviewer_refusal(revision, person)
    if refusal:
        raise invalid("/person", "cannot_review", refusal)
    if revision.review_requests.filter(person=person, state=RequestState.WAITING).exists():
        raise Conflict(_("%(person)s was asked already.") % {"person": person})
    return _ask(actor, revision, person, note)


def asking_require(*, actor: Actor, revision: EvidenceRevision) -> None:
    """NotPermitted for whoever neither writes nor reviews evidence of the project."""
    project = revision.evidence.project
    if any(policies.allowed(actor, name, project) for name in ("evidence.edit", "evidence.review")):
        return
    policies.require(actor, "project.view", project)
    raise NotPermitted(_("Whoever writes or reviews the evidence asks for its review."))


@transaction.atomic
def review_request_withdraw(*, actor: Actor, request: ReviewRequest) -> ReviewRequest:
    """Take a request back: whoever asked, or was asked and cannot do it."""
    withdrawing_require(actor=actor, request=request)
    row = ReviewRequest.objects.select_for_update().get(pk=request.pk)
    if row.state != RequestState.WAITING:
        raise Conflict(_("The request has ended already."))
    _end(actor, row, RequestState.WITHDRAWN)
    return row


def withdrawing_require(*, actor: Actor, request: ReviewRequest) -> None:
    """NotPermitted for anybody but who asked and who was asked."""
    policies.require(actor, "project.view", request.revision.evidence.project)
    if not actor.is_person or actor.user_id not in (request.requested_by_id, request.person_id):
        raise NotPermitted(_("Whoever asked, or was asked, takes the request back."))


def requests_answered(actor: Actor, revision: EvidenceRevision) -> None:
    """End the requests of a revision that was reviewed or returned; call inside the transaction of that."""
    for row in revision.review_requests.filter(state=RequestState.WAITING):
        _end(actor, row, RequestState.ANSWERED)


def request_again(actor: Actor, revision: EvidenceRevision) -> ReviewRequest | None:
    """Ask whoever returned the revision before to look at the new one; None when nobody did or may."""
    before = revision.evidence.revisions.filter(number__lt=revision.number).order_by("-number").first()
    if before is None or before.state != RevisionState.RETURNED or before.reviewed_by is None:
        return None
    if reviewer_refusal(revision, before.reviewed_by):
        return None
    return _ask(actor, revision, before.reviewed_by, "")


def reviewer_refusal(revision: EvidenceRevision, person: User) -> str:
    """Why this person cannot be asked; empty when they may review the evidence."""
    project = revision.evidence.project
    if person.organisation_id != project.organisation_id or not person.is_active:
        return _("There is no such active person in your organisation.")
    if review_refusal(person.as_actor(), revision.evidence):
        return _("%(person)s cannot review this: the role is missing, or they contributed to it.") % {
            "person": person
        }
    return ""


def _ask(actor: Actor, revision: EvidenceRevision, person: User, note: str) -> ReviewRequest:
    row = ReviewRequest.objects.create(
        revision=revision, person=person, requested_by_id=actor.answers_with, note=note
    )
    audit.record(
        actor=actor,
        verb="review.requested",
        obj=row,
        project_id=revision.evidence.project_id,
        after={"state": str(row.state), "person": str(person), "note": note},
    )
    return row


def _end(actor: Actor, row: ReviewRequest, to: RequestState) -> None:
    before = {"state": str(row.state)}
    row.state, row.ended_at = to, timezone.now()
    row.version += 1
    row.save(update_fields=["state", "ended_at", "version", "updated_at"])
    audit.record(
        actor=actor,
        verb=f"review.request_{to.value}",
        obj=row,
        project_id=row.revision.evidence.project_id,
        before=before,
        after={"state": str(to)},
    )
