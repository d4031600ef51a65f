"""The way of a revision after its draft: submitted, reviewed or returned, frozen."""

from collections.abc import Iterable

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from pocs.common import audit
from pocs.common.actors import Actor
from pocs.common.errors import Conflict, FieldError, InvalidInput, NotPermitted
from pocs.evidence.choices import ContributionKind, RevisionState
from pocs.evidence.content import check_content, check_file
from pocs.evidence.models import EvidenceRevision
from pocs.evidence.separation import review_refusal
from pocs.evidence.services.requesting import NOTE_MAX_CHARACTERS, request_again, requests_answered
from pocs.evidence.services.support import (
    claim_revision,
    contribute,
    facts,
    invalid,
    move,
    require_author,
    tell,
    touch,
)
from pocs.evidence.validation import missing_fields, run_refusal
from pocs.people import policies


@transaction.atomic
def revision_submit(*, actor: Actor, revision: EvidenceRevision, note: str = "") -> EvidenceRevision:
    """Hand a draft over for review; raises InvalidInput with a pointer to everything it lacks.

    `note` tells the reviewer what to look at. Whoever returned the revision before is asked again.
    """
    user_id = require_author(actor, revision.evidence.project)
    evidence, revision = claim_revision(revision, RevisionState.DRAFT)
    check_content(revision)
    _require_complete(revision)
    before = facts(revision)
    move(
        revision,
        RevisionState.SUBMITTED,
        submitted_at=timezone.now(),
        submitted_by_id=user_id,
        submit_note=_short_note(note),
    )
    contribute(revision, actor, ContributionKind.SUBMITTED)
    touch(evidence)
    request_again(actor, revision)
    tell(
        actor,
        "evidence.submitted",
        revision,
        before=before,
        what=gettext_lazy("evidence was submitted for review"),
    )
    return revision


@transaction.atomic
def revision_review(*, actor: Actor, revision: EvidenceRevision, note: str = "") -> EvidenceRevision:
    """Accept a submitted revision; the older ones are superseded.

    Raises NotPermitted with the reason when the actor contributed to any revision of the evidence,
    Conflict when there is a newer revision, InvalidInput when a run it stands on counts no longer.
    """
    user_id = reviewing_require(actor=actor, revision=revision)
    evidence, revision = claim_revision(revision, RevisionState.SUBMITTED)
    newest = evidence.revisions.order_by("-number")[0]
    if newest.pk != revision.pk:
        raise Conflict(
            _("Revision %(newer)d is newer than revision %(number)d: review that one once it is submitted.")
            % {"newer": newest.number, "number": revision.number}
        )
    revision_verify(revision)
    _require_complete(revision)
    before = facts(revision)
    move(
        revision,
        RevisionState.REVIEWED,
        reviewed_at=timezone.now(),
        reviewed_by_id=user_id,
        review_note=note.strip(),
    )
    for older in evidence.revisions.filter(number__lt=revision.number).exclude(
        state=RevisionState.SUPERSEDED
    ):
        was = facts(older)
        move(older, RevisionState.SUPERSEDED)
        requests_answered(actor, older)
        audit.record(
            actor=actor,
            verb="evidence.superseded",
            obj=older,
            project_id=evidence.project_id,
            before=was,
            after=facts(older),
        )
    touch(evidence)
    requests_answered(actor, revision)
    tell(actor, "evidence.reviewed", revision, before=before, what=gettext_lazy("evidence was reviewed"))
    return revision


@transaction.atomic
def revision_return(*, actor: Actor, revision: EvidenceRevision, reason: str) -> EvidenceRevision:
    """Send a submitted revision back with the reason; it stays as it is, an edit makes the next one."""
    user_id = reviewing_require(actor=actor, revision=revision)
    reason = reason.strip()
    if not reason:
        raise invalid("/reason", "required", _("Say what has to change."))
    evidence, revision = claim_revision(revision, RevisionState.SUBMITTED)
    before = facts(revision)
    move(
        revision,
        RevisionState.RETURNED,
        reviewed_at=timezone.now(),
        reviewed_by_id=user_id,
        review_note=reason,
    )
    touch(evidence)
    requests_answered(actor, revision)
    tell(actor, "evidence.returned", revision, before=before, what=gettext_lazy("evidence was returned"))
    return revision


def revision_verify(revision: EvidenceRevision) -> None:
    """Raise ContentMismatch unless content and files are what was hashed when they were saved."""
    revision = EvidenceRevision.objects.select_related("evidence").get(pk=revision.pk)
    check_content(revision)
    for attachment in revision.attachments.select_related("revision__evidence"):
        check_file(attachment)


@transaction.atomic
def revisions_freeze(*, actor: Actor, revisions: Iterable[EvidenceRevision]) -> None:
    """Freeze reviewed revisions into a package; frozen ones stay so. All of them or none.

    The caller checks the right to freeze and tells the listeners; here content and state are
    checked again under the lock. Raises ContentMismatch or Conflict.
    """
    for given in revisions:
        evidence, revision = claim_revision(given, RevisionState.REVIEWED, RevisionState.FROZEN)
        revision_verify(revision)
        if revision.state == RevisionState.REVIEWED:
            before = facts(revision)
            move(revision, RevisionState.FROZEN)
            touch(evidence)
            audit.record(
                actor=actor,
                verb="evidence.frozen",
                obj=revision,
                project_id=evidence.project_id,
                before=before,
                after=facts(revision),
            )


def _short_note(note: str) -> str:
    note = note.strip()
    if len(note) > NOTE_MAX_CHARACTERS:
        detail = _("At most %(max)d characters.") % {"max": NOTE_MAX_CHARACTERS}
        raise invalid("/note", "max_length", detail)
    return note


def reviewing_require(*, actor: Actor, revision: EvidenceRevision) -> int:
    """The person who reviews; raises NotPermitted with the reason why this one may not."""
    project = revision.evidence.project
    if not policies.allowed(actor, "evidence.edit", project):
        policies.require(actor, "project.view", project)
    refusal = review_refusal(actor, revision.evidence)
    if refusal or actor.user_id is None:
        raise NotPermitted(refusal)
    return actor.user_id


def _require_complete(revision: EvidenceRevision) -> None:
    runs = list(revision.runs.all())
    missing = missing_fields(type=revision.evidence.type, body=revision.body, runs=runs)
    missing += [
        FieldError("/runs", "not_evidence", run_refusal(run)) for run in runs if not run.counts_as_evidence
    ]
    if missing:
        raise InvalidInput(_("The evidence is not complete yet."), missing)
