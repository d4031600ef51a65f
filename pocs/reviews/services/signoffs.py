"""Services of sign-offs: a person, their password again, one seat of one slot, one digest."""

from datetime import timedelta

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from pocs.common import audit
from pocs.common.actors import Actor
from pocs.common.canonical import digest
from pocs.common.errors import Conflict, FieldError, GateNotMet, InvalidInput, NotPermitted
from pocs.common.models import AuditEntry
from pocs.common.phrases import said
from pocs.people import policies
from pocs.people.models import User
from pocs.reviews.choices import CURRENT_APPROVALS, PackageState, SignOffState, Slot, Verdict
from pocs.reviews.contributions import contributed
from pocs.reviews.eligibility import taken_slots
from pocs.reviews.manifest import digest_now
from pocs.reviews.models import Package, SignOff
from pocs.reviews.objections import undecided_missing
from pocs.reviews.policy import quorum_of, signature_ends
from pocs.reviews.services.requests import package_to, signoff_end, signoff_request
from pocs.reviews.services.support import require_choice, require_person, require_text, tell
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
    *,
    actor: Actor,
    package: Package,
    slot: str,
    verdict: str,
    password: str,
    comment: str = "",
    on_behalf_of: User | None = None,
) -> SignOff:
    """Sign one slot of a frozen package: `verdict` is a value of choices.Verdict.

    With `on_behalf_of` the actor signs as the deputy whom that person named for today; both must be
    free of contributions and of other slots. Raises NotPermitted for a token or the system, without
    the slot's role, for a contributor and for a second slot of the same person; InvalidInput for a
    wrong password (`/password`), and for a rejection without a reason or conditions left empty
    (`/comment`); GateNotMet for an approval while an objection is undecided; Conflict when the
    package no longer waits for this signature. A package whose content is found changed becomes stale.
    """
    user_id = signing_require(actor=actor, package=package, slot=slot, on_behalf_of=on_behalf_of)
    require_choice("/verdict", verdict, Verdict)
    user = User.objects.get(pk=user_id)
    _require_independent(package, user, slot, on_behalf_of)
    _require_password(actor, package, user, slot, password)
    text = _comment_for(verdict, comment)
    with transaction.atomic():
        locked = Package.objects.select_for_update().select_related("project").get(pk=package.pk)
        changed = _changed_since_frozen(actor, locked)
        if not changed:
            state = VERDICT_STATE[Verdict(verdict)]
            return _sign(actor, user, locked, slot=slot, state=state, comment=text, principal=on_behalf_of)
    # raised after the commit, so that the package stays marked as stale
    raise Conflict(_("What this package holds has changed since it was frozen; it is stale now."))


def signing_require(*, actor: Actor, package: Package, slot: str, on_behalf_of: User | None = None) -> int:
    """The id of the person who may try to sign the slot, in their own name or as a deputy."""
    user_id = require_person(actor)
    require_choice("/slot", slot, Slot)
    if on_behalf_of is None:
        policies.require(actor, f"signoff.{slot}", package.project)
        return user_id
    policies.require(actor, "project.view", package.project)
    principals = policies.principals_for(actor, f"signoff.{slot}", package.project)
    if on_behalf_of.pk not in {user.pk for user in principals}:
        detail = _("%(person)s, who would sign this slot, has not named you as deputy for today.")
        raise NotPermitted(detail % {"person": on_behalf_of})
    return user_id


def signoff_withdraw(*, actor: Actor, signoff: SignOff, reason: str) -> SignOff:
    """Take back an approval that one gave, or that one's deputy gave; the seat is asked again.

    A rejection is final, and so is what a confirmed decision rests on (Conflict).
    """
    withdrawing_require(actor=actor, signoff=signoff)
    text = require_text("/reason", reason, _("Say why the signature is withdrawn."))
    with transaction.atomic():
        package = Package.objects.select_for_update().select_related("project").get(pk=signoff.package_id)
        row = package.signoffs.select_related("package").get(pk=signoff.pk)
        if row.state not in CURRENT_APPROVALS:
            raise Conflict(_("Only an approval that still stands can be withdrawn."))
        if package.decisions.filter(state="confirmed").exists():
            raise Conflict(
                _("The decision on this package is confirmed; the signature can no longer be withdrawn.")
            )
        signoff_end(actor, row, SignOffState.WITHDRAWN, text)
        signoff_request(actor, package, row.slot, row.seat)
        if package.state == PackageState.APPROVED:
            package_to(actor, package, PackageState.FROZEN)
    return row


def withdrawing_require(*, actor: Actor, signoff: SignOff) -> None:
    """NotPermitted for anyone but the signer and the person for whom a deputy signed."""
    user_id = require_person(actor)
    policies.require(actor, "project.view", signoff.package.project)
    if user_id not in (signoff.signer_id, signoff.on_behalf_of_id):
        raise NotPermitted(_("Only the person who signed can withdraw a signature."))


def _require_independent(package: Package, user: User, slot: str, principal: User | None) -> None:
    """No contributor signs, nobody by a deputy either, and one person fills one seat of one slot."""
    if contributed(package.project, user.pk):
        raise NotPermitted(_("You contributed to what this package holds, so another person must sign it."))
    if principal is not None and contributed(package.project, principal.pk):
        detail = _("%(person)s contributed to what this package holds, so nobody signs it for them.")
        raise NotPermitted(detail % {"person": principal})
    taken = taken_slots(package)
    for person in filter(None, (user, principal)):
        seat = taken.get(person.pk)
        if seat is None or (seat == slot and not _is_asked(package, slot)):
            continue
        detail = _("%(person)s has signed the slot “%(slot)s” of this package; one person fills one slot.")
        raise NotPermitted(detail % {"person": person, "slot": Slot(seat).label})


def _is_asked(package: Package, slot: str) -> bool:
    return package.signoffs.filter(slot=slot, state=SignOffState.REQUESTED).exists()


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
    if digest_now(package) == package.digest:
        return False
    package_mark_stale(
        package=package,
        actor=actor,
        obj=package,
        what=gettext_lazy("its content was found changed at signing"),
    )
    return True


def _sign(
    actor: Actor,
    user: User,
    package: Package,
    *,
    slot: str,
    state: SignOffState,
    comment: str,
    principal: User | None,
) -> SignOff:
    """Fill a seat under the package's lock and move the package when this completes or ends it."""
    if package.state != PackageState.FROZEN:
        detail = _("Package %(number)d is “%(state)s”; it takes no more signatures.")
        raise Conflict(detail % {"number": package.number, "state": PackageState(package.state).label})
    # again: the first look was before the lock
    signing_require(actor=actor, package=package, slot=slot, on_behalf_of=principal)
    _require_independent(package, user, slot, principal)
    row = _seat(package, slot)
    if state in CURRENT_APPROVALS and (missing := undecided_missing(package)):
        raise GateNotMet(_("Nothing is approved while an objection is undecided."), missing)
    now = timezone.now()
    row.state, row.signer, row.on_behalf_of, row.comment = state, user, principal, comment
    row.signed_at, row.digest = now, package.digest
    row.expires_at = signature_ends(package, now) if state in CURRENT_APPROVALS else None
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
            "on_behalf_of": str(principal) if principal else "",
        },
    )
    if state == SignOffState.REJECTED:
        for other in package.signoffs.filter(state=SignOffState.REQUESTED).select_related("package"):
            signoff_end(actor, other, SignOffState.EXPIRED, said(gettext_lazy("the package was rejected")))
        package_to(actor, package, PackageState.REJECTED)
    elif _all_approved(package):
        package_to(actor, package, PackageState.APPROVED)
    tell(package.project, "signoff", package=package.number, slot=slot, state=str(state))
    return row


def _seat(package: Package, slot: str) -> SignOff:
    """The next seat of the slot that is asked for, locked; Conflict when there is none."""
    rows = package.signoffs.select_for_update().filter(slot=slot, state=SignOffState.REQUESTED)
    row = rows.order_by("seat").first()
    if row is None:
        lapsed = package.signoffs.filter(slot=slot, state=SignOffState.EXPIRED).exists()
        if lapsed and not package.signoffs.filter(slot=slot, state__in=CURRENT_APPROVALS).exists():
            raise Conflict(_("The time for this signature is over; the technical lead can ask for it again."))
        raise Conflict(_("This slot has been signed already."))
    if row.lapsed:
        raise Conflict(_("The time for this signature is over; the technical lead can ask for it again."))
    return row


def _all_approved(package: Package) -> bool:
    rows = list(package.signoffs.filter(state__in=CURRENT_APPROVALS, digest=package.digest))
    standing = [row.slot for row in rows if not row.lapsed]
    return all(standing.count(slot) >= quorum_of(package, slot) for slot in Slot.values)
