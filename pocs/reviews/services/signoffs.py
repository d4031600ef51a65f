"""Services of sign-offs: a person, their password again, one slot, one digest."""

from datetime import timedelta

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from pocs.common import audit
from pocs.common.actors import Actor
from pocs.common.canonical import digest
from pocs.common.errors import Conflict, FieldError, InvalidInput, NotPermitted
from pocs.common.models import AuditEntry
from pocs.people import policies
from pocs.people.models import User
from pocs.reviews.choices import CURRENT_APPROVALS, PackageState, SignOffState, Slot, Verdict
from pocs.reviews.contributions import contributed
from pocs.reviews.eligibility import FILLING
from pocs.reviews.manifest import manifest_digest
from pocs.reviews.models import Package, SignOff
from pocs.reviews.policy import slot_meaning
from pocs.reviews.services.support import require_choice, require_person, tell
from pocs.reviews.staleness import package_mark_stale

VERDICT_STATE = {
    Verdict.APPROVE: SignOffState.APPROVED,
    Verdict.APPROVE_WITH_CONDITIONS: SignOffState.APPROVED_WITH_CONDITIONS,
    Verdict.REJECT: SignOffState.REJECTED,
}
FAILED_TRY = "signoff.password_refused"
FAILED_TRIES_MAX = 5
FAILED_TRIES_WINDOW = timedelta(minutes=15)


def signoff_sign(
    *, actor: Actor, package: Package, slot: str, verdict: str, password: str, comment: str = ""
) -> SignOff:
    """Sign one slot of a frozen package: `verdict` is a value of choices.Verdict.

    Raises NotPermitted for a token or the system, without the slot's role, for a contributor and
    for a second slot of the same person; InvalidInput for a wrong password (`/password`), and for
    a rejection without a reason or conditions left empty (`/comment`); Conflict when the package
    no longer waits for this signature. A package whose content is found changed becomes stale.
    """
    user_id = require_person(actor)
    require_choice("/slot", slot, Slot)
    policies.require(actor, f"signoff.{slot}", package.project)
    require_choice("/verdict", verdict, Verdict)
    user = User.objects.get(pk=user_id)
    _require_independent(package, user, slot)
    _require_password(actor, package, user, slot, password)
    text = _comment_for(verdict, comment)
    with transaction.atomic():
        locked = Package.objects.select_for_update().select_related("project").get(pk=package.pk)
        changed = _changed_since_frozen(actor, locked)
        if not changed:
            state = VERDICT_STATE[Verdict(verdict)]
            return _sign(actor, user, locked, slot=slot, state=state, comment=text)
    # raised after the commit, so that the package stays marked as stale
    raise Conflict(_("What this package holds has changed since it was frozen; it is stale now."))


def signoff_withdraw(*, actor: Actor, signoff: SignOff, reason: str) -> SignOff:
    """Take back one's own approval; its slot is asked again and the package is frozen, not approved.

    A rejection is final, and so is what a confirmed decision rests on (Conflict).
    """
    user_id = require_person(actor)
    policies.require(actor, "project.view", signoff.package.project)
    if signoff.signer_id != user_id:
        raise NotPermitted(_("Only the person who signed can withdraw a signature."))
    text = reason.strip()
    if not text:
        detail = _("Say why the signature is withdrawn.")
        raise InvalidInput(detail, [FieldError("/reason", "required", detail)])
    with transaction.atomic():
        package = Package.objects.select_for_update().select_related("project").get(pk=signoff.package_id)
        row = package.signoffs.get(pk=signoff.pk)
        if row.state not in CURRENT_APPROVALS:
            raise Conflict(_("Only an approval that still stands can be withdrawn."))
        if package.decisions.filter(state="confirmed").exists():
            raise Conflict(
                _("The decision on this package is confirmed; the signature can no longer be withdrawn.")
            )
        before = row.state
        row.state, row.ended_at, row.ended_reason = SignOffState.WITHDRAWN, timezone.now(), text[:300]
        row.version += 1
        row.save()
        SignOff.objects.create(
            package=package, slot=row.slot, meaning=slot_meaning(row.slot), digest=package.digest
        )
        if package.state == PackageState.APPROVED:
            _package_to(actor, package, PackageState.FROZEN)
        audit.record(
            actor=actor,
            verb="signoff.withdrawn",
            obj=row,
            project_id=package.project_id,
            before={"state": before},
            after={"state": row.state, "reason": text, "digest": package.digest},
        )
        tell(package.project, "signoff", package=package.number, slot=row.slot, state=row.state)
    return row


def _require_independent(package: Package, user: User, slot: str) -> None:
    """No contributor signs, and one person fills one slot: the slot stays open for another."""
    if contributed(package.project, user.pk):
        raise NotPermitted(_("You contributed to what this package holds, so another person must sign it."))
    taken = package.signoffs.filter(signer=user, state__in=FILLING).exclude(slot=slot).first()
    if taken is not None:
        detail = _("You have signed the slot “%(slot)s” of this package; one person fills one slot.")
        raise NotPermitted(detail % {"slot": Slot(taken.slot).label})


def _require_password(actor: Actor, package: Package, user: User, slot: str, password: str) -> None:
    """The person is asked again at each signing; failed tries are recorded and limited."""
    recent = AuditEntry.objects.filter(
        project_id=package.project_id,
        verb=FAILED_TRY,
        at__gt=timezone.now() - FAILED_TRIES_WINDOW,
        actor__user_id=user.pk,
    ).count()
    if recent >= FAILED_TRIES_MAX:
        raise NotPermitted(_("Too many wrong passwords. Try again in a quarter of an hour."))
    if user.check_password(password):
        return
    with transaction.atomic():
        audit.record(
            actor=actor,
            verb=FAILED_TRY,
            obj=package,
            project_id=package.project_id,
            after={"slot": slot, "digest": package.digest},
        )
    detail = _("The password is not right; nothing was signed.")
    raise InvalidInput(detail, [FieldError("/password", "wrong", detail)])


def _comment_for(verdict: str, comment: str) -> str:
    text = comment.strip()
    if not text and verdict == Verdict.REJECT:
        detail = _("A rejection needs its reason.")
        raise InvalidInput(detail, [FieldError("/comment", "required", detail)])
    if not text and verdict == Verdict.APPROVE_WITH_CONDITIONS:
        detail = _("Name the conditions under which you approve.")
        raise InvalidInput(detail, [FieldError("/comment", "required", detail)])
    return text


def _changed_since_frozen(actor: Actor, package: Package) -> bool:
    """Compare the digest with the stored manifest and with the material now; mark a changed one stale."""
    if package.state not in (PackageState.FROZEN, PackageState.APPROVED):
        return False
    if digest(package.manifest) != package.digest:
        raise Conflict(_("The stored manifest does not match its digest; nothing can be signed on it."))
    if manifest_digest(package.project, package.number) == package.digest:
        return False
    package_mark_stale(
        package=package, actor=actor, obj=package, what=_("its content was found changed at signing")
    )
    return True


def _sign(
    actor: Actor, user: User, package: Package, *, slot: str, state: SignOffState, comment: str
) -> SignOff:
    """Fill the slot under the package's lock and move the package when this completes or ends it."""
    if package.state != PackageState.FROZEN:
        detail = _("Package %(number)d is “%(state)s”; it takes no more signatures.")
        raise Conflict(detail % {"number": package.number, "state": PackageState(package.state).label})
    _require_independent(package, user, slot)  # again: the first look was before the lock
    row = package.signoffs.select_for_update().filter(slot=slot, state=SignOffState.REQUESTED).first()
    if row is None:
        raise Conflict(_("This slot has been signed already."))
    row.state, row.signer, row.comment, row.signed_at = state, user, comment, timezone.now()
    row.digest = package.digest
    row.version += 1
    row.save()
    audit.record(
        actor=actor,
        verb=f"signoff.{state}",
        obj=row,
        project_id=package.project_id,
        before={"state": SignOffState.REQUESTED},
        after={
            "slot": slot,
            "state": state,
            "digest": package.digest,
            "meaning": row.meaning,
            "comment": comment,
        },
    )
    if state == SignOffState.REJECTED:
        package.signoffs.filter(state=SignOffState.REQUESTED).update(
            state=SignOffState.EXPIRED, ended_at=timezone.now(), ended_reason=_("the package was rejected")
        )
        _package_to(actor, package, PackageState.REJECTED)
    elif _slots_approved(package) == set(Slot.values):
        _package_to(actor, package, PackageState.APPROVED)
    tell(package.project, "signoff", package=package.number, slot=slot, state=str(state))
    return row


def _slots_approved(package: Package) -> set[str]:
    rows = package.signoffs.filter(state__in=CURRENT_APPROVALS, digest=package.digest)
    return set(rows.values_list("slot", flat=True))


def _package_to(actor: Actor, package: Package, state: PackageState) -> None:
    before = package.state
    package.state = state
    package.version += 1
    package.save(update_fields=["state", "version", "updated_at"])
    audit.record(
        actor=actor,
        verb=f"package.{state}",
        obj=package,
        project_id=package.project_id,
        before={"state": before},
        after={"state": state, "digest": package.digest},
    )
    tell(package.project, "package", package=package.number, state=str(state))
