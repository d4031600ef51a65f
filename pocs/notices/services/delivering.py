"""Sending what webhooks are owed: signed, with growing pauses after failures, and switched off in the end."""

import logging
import time
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import F
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from pocs.common import audit
from pocs.common.actors import system_actor
from pocs.common.errors import Conflict
from pocs.common.phrases import said
from pocs.notices import signing
from pocs.notices.choices import DeliveryState
from pocs.notices.models import Webhook, WebhookDelivery
from pocs.notices.services.telling import tell
from pocs.notices.telling import Telling
from pocs.notices.transport import Answer, post
from pocs.people.models import User
from pocs.people.roles import OrganisationRole
from pocs.runs.credentials import unseal

log = logging.getLogger(__name__)
#: pauses before the second and every later attempt
PAUSES = tuple(timedelta(minutes=minutes) for minutes in (1, 5, 30, 120, 720))
ATTEMPTS_MAX = len(PAUSES) + 1
#: failed attempts in a row, over all deliveries, after which a webhook is switched off
FAILURES_MAX = 15
#: a sender that died leaves its delivery to others after this
CLAIM = timedelta(minutes=5)
BATCH = 50


def deliveries_send(now: datetime | None = None) -> int:
    """Try every delivery that is due; returns how many arrived."""
    now = now or timezone.now()
    due = WebhookDelivery.objects.filter(state=DeliveryState.WAITING, next_attempt_at__lte=now)
    arrived = 0
    for row in due.select_related("webhook").order_by("next_attempt_at", "pk")[:BATCH]:
        if _claim(row, now):
            arrived += _attempt(row)
    return arrived


def _claim(row: WebhookDelivery, now: datetime) -> bool:
    """Whether this sender, and no other, makes the next attempt."""
    mine = WebhookDelivery.objects.filter(
        pk=row.pk, state=DeliveryState.WAITING, attempts=row.attempts, next_attempt_at=row.next_attempt_at
    )
    claimed = bool(mine.update(attempts=F("attempts") + 1, next_attempt_at=now + CLAIM))
    row.attempts += claimed
    return claimed


def _attempt(row: WebhookDelivery) -> bool:
    """Sign, send and note the outcome; no transaction is open while the other side answers."""
    try:
        secret = unseal(row.webhook.secret) or ""
    except Conflict:
        _note(row, Answer(None, "the stored secret cannot be decrypted any more: renew it", 0.0))
        return False
    body = row.body.encode()
    headers = {
        "Content-Type": "application/json; charset=utf-8",
        "User-Agent": "PhaseGate-Webhook/1",
        signing.KIND_HEADER: row.kind,
        signing.DELIVERY_HEADER: str(row.uuid),
        signing.SIGNATURE_HEADER: signing.signature(secret, body, int(time.time())),
    }
    answer = post(row.webhook.url, body, headers)
    _note(row, answer)
    return answer.delivered


@transaction.atomic
def _note(row: WebhookDelivery, answer: Answer) -> None:
    now = timezone.now()
    row.status, row.error, row.duration_ms = answer.status, answer.error, answer.duration_ms
    hook = Webhook.objects.select_for_update().get(pk=row.webhook_id)
    if answer.delivered:
        row.state, row.ended_at, hook.failures = DeliveryState.DELIVERED, now, 0
    else:
        hook.failures += 1
        if row.attempts >= ATTEMPTS_MAX:
            row.state, row.ended_at = DeliveryState.FAILED, now
        else:
            row.next_attempt_at = now + PAUSES[row.attempts - 1]
    row.save(update_fields=["status", "error", "duration_ms", "state", "ended_at", "next_attempt_at"])
    hook.save(update_fields=["failures"])
    if hook.active and hook.failures >= FAILURES_MAX:
        _switch_off(hook, now)


def _switch_off(hook: Webhook, now: datetime) -> None:
    """After many failures in a row; whoever keeps the webhook is told and can switch it on again."""
    log.warning("webhook %s is switched off after %s failed attempts", hook.pk, hook.failures)
    hook.active, hook.disabled_at = False, now
    hook.version += 1
    hook.save(update_fields=["active", "disabled_at", "version", "updated_at"])
    hook.deliveries.filter(state=DeliveryState.WAITING).update(
        state=DeliveryState.FAILED, error="the webhook was switched off", ended_at=now
    )
    audit.record(
        actor=system_actor(hook.organisation_id),
        verb="webhook.disabled",
        obj=hook,
        before={"active": True},
        after={"active": False, "failures": hook.failures},
    )
    admins = User.objects.filter(
        organisation_id=hook.organisation_id, organisation_role=OrganisationRole.ADMIN, is_active=True
    )
    keepers = [hook.owner_id] if hook.owner_id else admins.values_list("pk", flat=True)
    tell(
        Telling(
            kind="webhook.disabled",
            key=f"webhook:{hook.pk}:{hook.version}",
            text=said(
                _("The webhook “%(name)s” was switched off after %(count)s failed attempts"),
                name=hook.name,
                count=hook.failures,
            ),
            user_ids=frozenset(keepers),
            path=reverse("notices:webhook", args=[hook.pk]),
        )
    )
