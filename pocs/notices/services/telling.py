"""Storing what people are to be told, and handing it to their channels and webhooks."""

import json
import uuid
from collections.abc import Iterable
from typing import Any

from django.conf import settings
from django.db.models import Q
from django.urls import reverse
from django.utils import timezone, translation
from django.utils.functional import Promise

from pocs.common import notices as port
from pocs.common.errors import Text
from pocs.common.phrases import Said, said
from pocs.notices.kinds import kind_of
from pocs.notices.models import Notice, NoticeSettings, Webhook, WebhookDelivery
from pocs.notices.telling import Telling
from pocs.people.models import User
from pocs.people.roles import OrganisationRole
from pocs.projects.models import Project

TEXT_MAX_CHARACTERS = 500
DETAIL_MAX_CHARACTERS = 2_000


def tell(telling: Telling) -> list[Notice]:
    """Store one notice for each person who is active and sees the project, and what webhooks are owed.

    A telling with a known key adds nothing. Call inside a transaction.
    """
    kind = kind_of(telling.kind).key
    people = _people(telling)
    choices = {row.user_id: row.channels for row in NoticeSettings.objects.filter(user__in=people)}
    rows = []
    words = {name: _stored(getattr(telling, name)) for name in ("text", "detail")}
    for user in people:
        channel = choices.get(user.pk, {}).get(kind) or kind_of(kind).channel
        with translation.override(user.language or settings.LANGUAGE_CODE):
            rows.append(
                Notice(
                    recipient=user,
                    project=telling.project,
                    kind=kind,
                    key=telling.key,
                    text=" ".join(str(telling.text).split())[:TEXT_MAX_CHARACTERS],
                    detail=str(telling.detail)[:DETAIL_MAX_CHARACTERS],
                    text_said=words["text"],
                    detail_said=words["detail"],
                    path=telling.path,
                    due_on=telling.due_on,
                    channel=channel,
                )
            )
    known = set(Notice.objects.filter(key=telling.key).values_list("recipient_id", flat=True))
    stored = Notice.objects.bulk_create([row for row in rows if row.recipient_id not in known])
    _owe_webhooks(telling, kind, stored)
    return stored


def on_port_notice(notice: port.Notice) -> None:
    """Listener of `pocs.common.notices`: runs in the transaction of the change that it tells of."""
    tell(
        Telling(
            kind=notice.kind,
            key=f"told:{uuid.uuid4()}",
            text=notice.title,
            user_ids=frozenset(notice.user_ids),
            path=reverse(notice.route, args=notice.route_args),
            project=Project.objects.filter(pk=notice.project_id).first(),
            due_on=notice.due_on,
        )
    )


def _stored(text: Text | Said) -> dict[str, Any] | None:
    """The words to be read in any language; None for what a person wrote."""
    if isinstance(text, Said):
        return text.stored()
    return said(text).stored() if isinstance(text, Promise) else None


def _people(telling: Telling) -> list[User]:
    """Who of those named is active and may see what the notice speaks of."""
    people = User.objects.filter(pk__in=telling.user_ids, is_active=True).exclude(organisation=None)
    project = telling.project
    if project is not None:
        seeing = Q(project_roles__project=project) | Q(organisation_role=OrganisationRole.AUDITOR)
        people = people.filter(seeing, organisation_id=project.organisation_id).distinct()
    return list(people.order_by("pk"))


def _owe_webhooks(telling: Telling, kind: str, stored: Iterable[Notice]) -> None:
    """Deliveries of the organisation's webhooks, without content, and of the recipients' own, with it."""
    hooks = Webhook.objects.filter(active=True)
    deliveries = []
    if telling.project is not None:
        of_organisation = hooks.filter(owner=None, organisation_id=telling.project.organisation_id)
        facts = _facts(kind, telling.path, telling.project)
        deliveries += [_delivery(hook, telling.key, facts) for hook in of_organisation if hook.wants(kind)]
    by_owner = {notice.recipient_id: notice for notice in stored}
    for hook in hooks.filter(owner__in=by_owner):
        notice = by_owner[hook.owner_id or 0]
        if hook.wants(kind):
            told = {"text": notice.text, "detail": notice.detail}
            project = {"project_name": telling.project.name} if telling.project else {}
            facts = _facts(kind, telling.path, telling.project) | told | project
            facts["due_on"] = notice.due_on.isoformat() if notice.due_on else None
            deliveries.append(_delivery(hook, telling.key, facts))
    WebhookDelivery.objects.bulk_create(deliveries, ignore_conflicts=True)


def _facts(kind: str, path: str, project: Project | None) -> dict[str, Any]:
    return {
        "schema": "phasegate-notice/1",
        "kind": kind,
        "at": timezone.now().isoformat(),
        "project": project.pk if project else None,
        "url": settings.PHASEGATE_BASE_URL + path,
    }


def _delivery(hook: Webhook, key: str, facts: dict[str, Any]) -> WebhookDelivery:
    body = json.dumps(facts, ensure_ascii=False)
    return WebhookDelivery(webhook=hook, key=key, kind=facts["kind"], body=body)
