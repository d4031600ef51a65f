"""What the routes of notices ask for: all of it is a person's own, or their organisation's to administer."""

from typing import Any

from django.utils.translation import gettext_lazy as _

from pocs.common.access import Table
from pocs.common.actors import Actor
from pocs.notices.selectors import delivery_get, webhook_get
from pocs.people.access import PERSON, SIGNED_IN, rule

KEEPS_TEXT = _("who keeps the webhook; the organisation's, its administrators; nobody else sees it")


def _ask_keeping(actor: Actor, pk: int, **more: Any) -> None:
    webhook_get(actor, pk)


def _ask_keeping_delivery(actor: Actor, pk: int, **more: Any) -> None:
    delivery_get(actor, pk)


KEEPS = rule("keep-webhook", KEEPS_TEXT, _ask_keeping)
KEEPS_DELIVERY = rule("keep-webhook", KEEPS_TEXT, _ask_keeping_delivery)

TABLE: Table = {
    "api-notices": {"GET": SIGNED_IN},
    "api-notice-preferences": {"GET": SIGNED_IN, "PATCH": PERSON},
    "api-webhooks": {"GET": SIGNED_IN, "POST": PERSON},
    "api-webhook": {"GET": KEEPS, "PATCH": KEEPS, "DELETE": KEEPS},
    "api-webhook-secret": {"POST": KEEPS},
    "api-webhook-try": {"POST": KEEPS},
    "api-webhook-deliveries": {"GET": KEEPS},
    "api-delivery-again": {"POST": KEEPS_DELIVERY},
    "notices:list": {"GET": PERSON},
    "notices:preferences": {"GET": PERSON, "POST": PERSON},
    "notices:webhooks": {"GET": PERSON, "POST": PERSON},
    "notices:webhook": {"GET": KEEPS, "POST": KEEPS},
    "notices:webhook_secret": {"POST": KEEPS},
    "notices:webhook_try": {"POST": KEEPS},
    "notices:webhook_delete": {"POST": KEEPS},
    "notices:delivery_repeat": {"POST": KEEPS_DELIVERY},
}
