"""Webhooks: made with a secret that is shown once, changed, tried out, switched off and on, taken away."""

import json
import uuid
from collections.abc import Sequence
from typing import Any

from django.conf import settings
from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from pocs.common import audit
from pocs.common.actors import Actor
from pocs.common.errors import Conflict, FieldError, InvalidInput, NotPermitted
from pocs.common.versions import changed, save_version
from pocs.notices.addresses import check_url
from pocs.notices.choices import DeliveryState
from pocs.notices.kinds import KINDS
from pocs.notices.models import Webhook, WebhookDelivery
from pocs.notices.signing import new_secret
from pocs.people.selectors import is_admin
from pocs.runs.credentials import seal

NAME_MAX_CHARACTERS = 80
WEBHOOKS_MAX = 20


@transaction.atomic
def webhook_create(
    *, actor: Actor, name: str, url: str, kinds: Sequence[str] = (), for_organisation: bool = False
) -> tuple[Webhook, str]:
    """Make a webhook of one's own, or, as an administrator, of the organisation.

    The second value is the only sight of its secret. Raises InvalidInput for an address that must
    not be reached.
    """
    user_id = _require_person(actor)
    if for_organisation and not is_admin(actor):
        raise NotPermitted(_("Only administrators of the organisation may do this."))
    values = _checked({"name": name, "url": url, "kinds": list(kinds)})
    owner_id = None if for_organisation else user_id
    if (
        Webhook.objects.filter(organisation_id=actor.organisation_id, owner_id=owner_id).count()
        >= WEBHOOKS_MAX
    ):
        raise Conflict(_("There are %(max)d webhooks already.") % {"max": WEBHOOKS_MAX})
    secret = new_secret()
    hook = Webhook.objects.create(
        organisation_id=actor.organisation_id,
        owner_id=owner_id,
        created_by_id=user_id,
        secret=seal(secret),
        **values,
    )
    audit.record(actor=actor, verb="webhook.created", obj=hook, after=values | {"active": True})
    return hook, secret


@transaction.atomic
def webhook_update(*, actor: Actor, webhook: Webhook, version: int, **fields: Any) -> Webhook:
    """Change name, url, kinds or active in the version the editor has seen; what is not given stays.

    Switching on again forgets the failures that switched it off.
    """
    require_keeper(actor, webhook)
    values = _checked(fields)
    stored = Webhook.objects.select_for_update().get(pk=webhook.pk)
    before, after = changed(stored, values)
    extra = {"failures": 0, "disabled_at": None} if after.get("active") else {}
    if version != stored.version or after:
        save_version(stored, version=version, **after, **extra)
    if after:
        audit.record(actor=actor, verb="webhook.changed", obj=stored, before=before, after=after)
    if after.get("active") is False:
        stored.deliveries.filter(state=DeliveryState.WAITING).update(
            state=DeliveryState.FAILED, error="the webhook was switched off", ended_at=timezone.now()
        )
    return stored


@transaction.atomic
def webhook_secret_renew(*, actor: Actor, webhook: Webhook) -> tuple[Webhook, str]:
    """A new secret, which the old one ends with; shown once."""
    require_keeper(actor, webhook)
    stored = Webhook.objects.select_for_update().get(pk=webhook.pk)
    secret = new_secret()
    save_version(stored, secret=seal(secret))
    audit.record(actor=actor, verb="webhook.secret_renewed", obj=stored, after={"name": stored.name})
    return stored, secret


@transaction.atomic
def webhook_delete(*, actor: Actor, webhook: Webhook) -> None:
    """Take a webhook away with the log of its deliveries; the history keeps that it was there."""
    require_keeper(actor, webhook)
    audit.record(
        actor=actor, verb="webhook.deleted", obj=webhook, before={"name": webhook.name, "url": webhook.url}
    )
    webhook.delete()


@transaction.atomic
def webhook_try(*, actor: Actor, webhook: Webhook) -> WebhookDelivery:
    """Owe the webhook a message that says it is a trial."""
    require_keeper(actor, webhook)
    _require_active(webhook)
    key = f"trial:{uuid.uuid4()}"
    facts = {
        "schema": "phasegate-notice/1",
        "kind": "trial",
        "at": timezone.now().isoformat(),
        "project": None,
        "url": settings.PHASEGATE_BASE_URL + "/",
    }
    return WebhookDelivery.objects.create(webhook=webhook, key=key, kind="trial", body=json.dumps(facts))


@transaction.atomic
def delivery_repeat(*, actor: Actor, delivery: WebhookDelivery) -> WebhookDelivery:
    """Send an ended delivery once more, with the same body and identity, so that a receiver can tell."""
    require_keeper(actor, delivery.webhook)
    _require_active(delivery.webhook)
    stored = WebhookDelivery.objects.select_for_update().get(pk=delivery.pk)
    if stored.state == DeliveryState.WAITING:
        raise Conflict(_("This delivery still waits; it is tried again by itself."))
    stored.state, stored.attempts, stored.ended_at = DeliveryState.WAITING, 0, None
    stored.next_attempt_at = timezone.now()
    stored.save(update_fields=["state", "attempts", "ended_at", "next_attempt_at"])
    return stored


def require_keeper(actor: Actor, webhook: Webhook) -> None:
    """NotPermitted unless the webhook is the actor's own, or the organisation's and they administer it."""
    user_id = _require_person(actor)
    if webhook.owner_id == user_id or (webhook.owner_id is None and is_admin(actor)):
        return
    raise NotPermitted(
        _("Webhooks are kept by their owner, those of the organisation by its administrators.")
    )


def _require_person(actor: Actor) -> int:
    if not actor.is_person or actor.user_id is None:
        raise NotPermitted(_("Only a signed-in person can do this; a token or the system cannot."))
    return actor.user_id


def _require_active(webhook: Webhook) -> None:
    if not webhook.active:
        raise Conflict(_("The webhook is switched off."))


def _checked(fields: dict[str, Any]) -> dict[str, Any]:
    wrong: list[FieldError] = []
    values: dict[str, Any] = {}
    for field, value in fields.items():
        if field == "name":
            values["name"] = str(value).strip()
            if not values["name"] or len(values["name"]) > NAME_MAX_CHARACTERS:
                wrong.append(FieldError("/name", "required", _("A name of at most 80 characters.")))
        elif field == "url":
            try:
                values["url"] = check_url(str(value))
            except InvalidInput as error:
                wrong += error.errors
        elif field == "kinds":
            values["kinds"] = sorted(set(value))
            unknown = [kind for kind in values["kinds"] if kind not in KINDS]
            if unknown:
                detail = _("There is no kind “%(kind)s”.") % {"kind": str(unknown[0])[:40]}
                wrong.append(FieldError("/kinds", "unknown", detail))
        elif field == "active" and isinstance(value, bool):
            values["active"] = value
        else:
            wrong.append(FieldError(f"/{field}", "unknown", _("There is no such field.")))
    if wrong:
        raise InvalidInput(_("The webhook cannot be saved like this."), wrong)
    return values
