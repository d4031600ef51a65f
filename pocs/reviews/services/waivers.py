"""Services of waivers: a dated exception from one guard, asked by one and granted by another."""

from datetime import datetime

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from pocs.common import audit
from pocs.common.actors import Actor, system_actor
from pocs.common.errors import Conflict, FieldError, InvalidInput, NotPermitted
from pocs.common.notices import Notice, send
from pocs.common.phrases import said
from pocs.people import policies
from pocs.projects.changes import notify_change
from pocs.projects.choices import ProjectState
from pocs.projects.gates import gates
from pocs.projects.models import Project
from pocs.reviews.choices import WaiverState
from pocs.reviews.models import Waiver
from pocs.reviews.people import leads_of
from pocs.reviews.policy import NEVER_WAIVED
from pocs.reviews.services.support import require_open, require_person, require_text, state_of, tell


@transaction.atomic
def waiver_request(
    *, actor: Actor, project: Project, guard: str, reason: str, scope: str, expires_at: datetime | None
) -> Waiver:
    """Ask for an exception from `guard` (such as `G3`) until `expires_at`, an aware time to come.

    Raises InvalidInput for an unknown guard, for one that is never waived (an evidence type, the
    signatures, the observer), and without reason, scope or expiry.
    """
    user_id = require_person(actor)
    policies.require(actor, "waiver.request", project)
    require_open(project)
    _require_waivable(guard)
    reason = require_text("/reason", reason, _("Say why the exception is needed."))
    scope = require_text("/scope", scope, _("Say what the exception covers."))
    waiver = Waiver.objects.create(
        project=project,
        guard=guard,
        reason=reason,
        scope=scope,
        requested_by_id=user_id,
        expires_at=_require_expiry(expires_at),
    )
    _record(actor, waiver, "waiver.requested", None)
    return waiver


@transaction.atomic
def waiver_grant(*, actor: Actor, waiver: Waiver) -> Waiver:
    """Grant a requested waiver; never by the one who asked for it (NotPermitted)."""
    user_id = require_person(actor)
    policies.require(actor, "waiver.grant", waiver.project)
    row = _locked(waiver, WaiverState.REQUESTED)
    if row.requested_by_id == user_id:
        raise NotPermitted(_("A waiver is granted by someone other than the person who asked for it."))
    if row.expires_at <= timezone.now():
        raise Conflict(_("The time this waiver was asked for has passed."))
    _end(actor, row, WaiverState.GRANTED, user_id, "")
    notify_change(project=row.project, actor=actor, obj=row, what=gettext_lazy("a waiver was granted"))
    return row


@transaction.atomic
def waiver_refuse(*, actor: Actor, waiver: Waiver, note: str) -> Waiver:
    """Refuse a requested waiver, saying why; not by the one who asked for it."""
    user_id = require_person(actor)
    policies.require(actor, "waiver.grant", waiver.project)
    note = require_text("/note", note, _("Say why the waiver is refused."))
    row = _locked(waiver, WaiverState.REQUESTED)
    if row.requested_by_id == user_id:
        raise NotPermitted(_("A waiver is refused by someone other than the person who asked for it."))
    _end(actor, row, WaiverState.REFUSED, user_id, note)
    return row


@transaction.atomic
def waiver_revoke(*, actor: Actor, waiver: Waiver, note: str) -> Waiver:
    """End a granted waiver before its expiry, saying why; its gate counts again."""
    user_id = require_person(actor)
    policies.require(actor, "waiver.grant", waiver.project)
    note = require_text("/note", note, _("Say why the waiver is revoked."))
    row = _locked(waiver, WaiverState.GRANTED)
    _end(actor, row, WaiverState.REVOKED, user_id, note)
    notify_change(project=row.project, actor=actor, obj=row, what=gettext_lazy("a waiver was revoked"))
    return row


def waivers_expire() -> int:
    """End all waivers whose time has passed; returns how many. Gates ignore them from that moment anyway.

    A package in review that rested on one becomes stale; a decision already taken stays as it was.
    """
    due = Waiver.objects.filter(
        state__in=[WaiverState.REQUESTED, WaiverState.GRANTED], expires_at__lte=timezone.now()
    )
    count = 0
    for waiver_id in list(due.values_list("pk", flat=True)):
        with transaction.atomic():
            row = Waiver.objects.select_for_update().filter(pk=waiver_id, pk__in=due).first()
            if row is None:
                continue
            actor = system_actor(row.project.organisation_id)
            was_granted = row.state == WaiverState.GRANTED
            _end(actor, row, WaiverState.EXPIRED, row.decided_by_id, row.decision_note)
            if was_granted:
                _tell_expired(row)
            if was_granted and state_of(row.project) == ProjectState.IN_REVIEW:
                notify_change(
                    project=row.project, actor=actor, obj=row, what=gettext_lazy("a waiver expired")
                )
            count += 1
    return count


def _tell_expired(row: Waiver) -> None:
    """The gate counts again: those who asked, granted and lead learn it."""
    people = {row.requested_by_id, row.decided_by_id, *leads_of(row.project)} - {None}
    send(
        Notice(
            kind="waiver.expired",
            title=said(
                gettext_lazy("The waiver for %(guard)s has expired; its gate counts again."), guard=row.guard
            ),
            user_ids=sorted(pk for pk in people if pk is not None),
            project_id=row.project_id,
            route="reviews:waivers",
            route_args=(row.project_id,),
        )
    )


def _require_waivable(guard: str) -> None:
    known = {gate.code: gate for gate in gates()}
    if guard not in known:
        detail = _("There is no guard “%(guard)s”.") % {"guard": guard}
        raise InvalidInput(detail, [FieldError("/guard", "unknown", detail)])
    if guard in NEVER_WAIVED or not known[guard].waivable:
        detail = _("%(guard)s is never waived: %(title)s.") % {"guard": guard, "title": known[guard].title}
        raise InvalidInput(detail, [FieldError("/guard", "never-waived", detail)])


def _require_expiry(expires_at: datetime | None) -> datetime:
    if expires_at is None:
        detail = _("A waiver needs an expiry.")
        raise InvalidInput(detail, [FieldError("/expires_at", "required", detail)])
    if timezone.is_naive(expires_at):
        detail = _("The expiry needs a time zone.")
        raise InvalidInput(detail, [FieldError("/expires_at", "naive", detail)])
    if expires_at <= timezone.now():
        detail = _("The expiry must lie in the future.")
        raise InvalidInput(detail, [FieldError("/expires_at", "past", detail)])
    return expires_at


def _locked(waiver: Waiver, state: WaiverState) -> Waiver:
    row = Waiver.objects.select_for_update().select_related("project").get(pk=waiver.pk)
    if row.state != state:
        detail = _("The waiver is “%(state)s”.") % {"state": WaiverState(row.state).label}
        raise Conflict(detail)
    return row


def _end(actor: Actor, row: Waiver, state: WaiverState, decided_by_id: int | None, note: str) -> None:
    before = row.state
    row.state, row.decided_by_id, row.decision_note = state, decided_by_id, note
    row.decided_at = timezone.now()
    row.version += 1
    row.save()
    _record(actor, row, f"waiver.{state}", before)


def _record(actor: Actor, row: Waiver, verb: str, before: str | None) -> None:
    audit.record(
        actor=actor,
        verb=verb,
        obj=row,
        project_id=row.project_id,
        before=None if before is None else {"state": before},
        after={
            "state": row.state,
            "guard": row.guard,
            "reason": row.reason,
            "scope": row.scope,
            "expires_at": row.expires_at.isoformat(),
            "note": row.decision_note,
        },
    )
    tell(row.project, "waiver", waiver=row.pk, guard=row.guard, state=str(row.state))
