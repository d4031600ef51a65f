"""Services of delegations: a person lets a deputy sign for them for some days."""

from datetime import date, timedelta

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from pocs.common import audit
from pocs.common.actors import Actor
from pocs.common.errors import Conflict, FieldError, InvalidInput, NotFound, NotPermitted
from pocs.people.models import Delegation, User
from pocs.people.selectors import is_admin, person_behind

LONGEST_DAYS = 92


def delegation_give(
    *, actor: Actor, deputy: User | None, starts_on: date | None, ends_on: date | None, reason: str
) -> Delegation:
    """Let `deputy` sign for the acting person from `starts_on` to `ends_on`, both days included (UTC).

    Nobody gives for another, two delegations of one person do not overlap, and what one was given
    is not passed on: the deputy signs by the principal's role alone.
    """
    principal = person_behind(actor) if actor.is_person else None
    if principal is None:
        raise NotPermitted(_("Only a signed-in person can do this; a token or the system cannot."))
    wrong = _check_deputy(principal, deputy) + _check_days(starts_on, ends_on)
    reason = reason.strip()
    if not reason or len(reason) > 300:
        wrong.append(FieldError("/reason", "required", _("Say why, in at most 300 characters.")))
    if wrong or deputy is None or starts_on is None or ends_on is None:
        raise InvalidInput(_("The delegation cannot be given like this."), wrong)
    with transaction.atomic():
        User.objects.select_for_update().get(pk=principal.pk)
        overlapping = Delegation.objects.filter(
            principal=principal, revoked_at=None, starts_on__lte=ends_on, ends_on__gte=starts_on
        ).first()
        if overlapping is not None:
            text = _("You are represented by %(who)s from %(from)s to %(until)s already.") % {
                "who": overlapping.deputy,
                "from": overlapping.starts_on.isoformat(),
                "until": overlapping.ends_on.isoformat(),
            }
            raise InvalidInput(text, [FieldError("/starts_on", "overlap", text)])
        row = Delegation.objects.create(
            organisation_id=actor.organisation_id,
            principal=principal,
            deputy=deputy,
            starts_on=starts_on,
            ends_on=ends_on,
            reason=reason,
        )
        after = {
            "principal": str(principal),
            "deputy": str(deputy),
            "starts_on": starts_on.isoformat(),
            "ends_on": ends_on.isoformat(),
            "reason": reason,
        }
        audit.record(actor=actor, verb="delegation.given", obj=row, after=after)
    return row


def delegation_revoke(*, actor: Actor, delegation: Delegation) -> Delegation:
    """End a delegation now; by whoever gave it, or an administrator. What was signed by it stays signed."""
    revoking_require(actor=actor, delegation=delegation)
    now = timezone.now()
    with transaction.atomic():
        rows = Delegation.objects.filter(pk=delegation.pk, revoked_at=None, ends_on__gte=now.date())
        if not rows.update(revoked_at=now, revoked_by_id=actor.user_id):
            raise Conflict(_("The delegation has ended already."))
        audit.record(
            actor=actor, verb="delegation.revoked", obj=delegation, after={"revoked_at": now.isoformat()}
        )
    delegation.revoked_at, delegation.revoked_by_id = now, actor.user_id
    return delegation


def revoking_require(*, actor: Actor, delegation: Delegation) -> None:
    """NotPermitted for whoever may not end this delegation, NotFound for one of another organisation."""
    if not actor.is_person:
        raise NotPermitted(_("Only a signed-in person can do this; a token or the system cannot."))
    if delegation.organisation_id != actor.organisation_id:
        raise NotFound(_("There is no such delegation."))
    if delegation.principal_id != actor.user_id and not is_admin(actor):
        raise NotPermitted(_("Only the person who gave a delegation, or an administrator, takes it back."))


def _check_deputy(principal: User, deputy: User | None) -> list[FieldError]:
    if deputy is None:
        return [FieldError("/deputy", "required", _("Name a person."))]
    if deputy.organisation_id != principal.organisation_id or not deputy.is_active:
        return [FieldError("/deputy", "unknown", _("There is no such person in your organisation."))]
    if deputy.pk == principal.pk:
        return [FieldError("/deputy", "self", _("Name another person than yourself."))]
    return []


def _check_days(starts_on: date | None, ends_on: date | None) -> list[FieldError]:
    wrong = []
    today = timezone.now().date()
    if starts_on is None or starts_on < today:
        wrong.append(FieldError("/starts_on", "past", _("A delegation begins today or later.")))
    if ends_on is None:
        wrong.append(FieldError("/ends_on", "required", _("A delegation needs its last day.")))
    elif starts_on is not None and ends_on < starts_on:
        wrong.append(FieldError("/ends_on", "order", _("The last day lies before the first.")))
    elif starts_on is not None and ends_on - starts_on > timedelta(days=LONGEST_DAYS):
        text = _("A delegation holds at most %(days)d days.") % {"days": LONGEST_DAYS}
        wrong.append(FieldError("/ends_on", "too_far", text))
    return wrong
