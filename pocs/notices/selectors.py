"""Reading notices, preferences and webhooks: each person their own, administrators the organisation's."""

from dataclasses import dataclass

from django.db.models import Q, QuerySet
from django.utils.translation import gettext as _

from pocs.common.actors import Actor
from pocs.common.errors import NotFound, Text
from pocs.notices.kinds import KINDS
from pocs.notices.models import Notice, NoticeSettings, Webhook, WebhookDelivery
from pocs.people.selectors import is_admin


def notices_of(actor: Actor) -> QuerySet[Notice]:
    """What the person was told, newest first."""
    rows = Notice.objects.filter(recipient_id=actor.user_id if actor.is_person else None)
    return rows.select_related("project").order_by("-id")


def settings_of(actor: Actor) -> NoticeSettings:
    """The person's choices; an unsaved row with version 0 for who made none."""
    if not actor.is_person or actor.user_id is None:
        return NoticeSettings(version=0)
    row = NoticeSettings.objects.filter(user_id=actor.user_id).first()
    return row or NoticeSettings(user_id=actor.user_id, version=0)


@dataclass(frozen=True)
class KindChoice:
    """One kind with the channel in force."""

    key: str
    label: Text
    channel: str
    chosen: bool


def kind_choices(chosen: NoticeSettings) -> list[KindChoice]:
    """Every kind in order, each with the person's channel or the one of those who chose none."""
    return [
        KindChoice(
            kind.key,
            kind.label,
            chosen.channels.get(kind.key, str(kind.channel.value)),
            kind.key in chosen.channels,
        )
        for kind in KINDS.values()
    ]


def webhooks_of(actor: Actor) -> QuerySet[Webhook]:
    """The person's own webhooks, and the organisation's for its administrators."""
    if not actor.is_person:
        return Webhook.objects.none()
    mine = Q(owner_id=actor.user_id)
    if is_admin(actor):
        mine |= Q(owner=None)
    rows = Webhook.objects.filter(mine, organisation_id=actor.organisation_id)
    return rows.select_related("owner", "created_by")


def webhook_get(actor: Actor, pk: int) -> Webhook:
    """One of those; NotFound for anybody else's."""
    hook = webhooks_of(actor).filter(pk=pk).first()
    if hook is None:
        raise NotFound(_("There is no such webhook."))
    return hook


def delivery_get(actor: Actor, pk: int) -> WebhookDelivery:
    """One delivery of a webhook that the actor keeps; NotFound for others."""
    rows = WebhookDelivery.objects.filter(pk=pk, webhook__in=webhooks_of(actor))
    delivery = rows.select_related("webhook").first()
    if delivery is None:
        raise NotFound(_("There is no such delivery."))
    return delivery
