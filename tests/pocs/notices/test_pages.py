"""Pages and API of notices: the cast, preferences, webhooks, secrets shown once, kept fields."""

from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from rest_framework.test import APIClient

from pocs.common.errors import InvalidInput, NotPermitted, StaleVersion
from pocs.notices import services
from pocs.notices.kinds import KINDS
from pocs.notices.models import NoticeSettings, Webhook
from pocs.people.models import User
from tests.factories import Cast, make_ci_token
from tests.pocs.notices.test_mail import say

As = Callable[[User], Client]
ApiAs = Callable[..., APIClient]
URL = "https://hooks.example.org/in"


def form_of(version: int = 0, **given: str) -> dict[str, Any]:
    channels = {f"channel:{key}": str(kind.channel.value) for key, kind in KINDS.items()}
    return channels | {"digest_on": "on", "digest_hour": "8", "version": version} | given


def test_everyone_sees_their_own(cast: Cast, page_as: As, api_as: ApiAs) -> None:
    say(cast, cast.lead, text="For the lead alone")
    url = reverse("notices:list")
    assert "For the lead alone" in page_as(cast.lead).get(url).content.decode()
    assert "For the lead alone" not in page_as(cast.viewer).get(url).content.decode()
    assert [row["text"] for row in api_as(cast.lead).get(reverse("api-notices")).json()["results"]] == [
        "For the lead alone"
    ]
    assert api_as(cast.outsider).get(reverse("api-notices")).json()["results"] == []
    assert Client().get(url).status_code == 302


def test_preferences_on_the_page(cast: Cast, page_as: As) -> None:
    client = page_as(cast.lead)
    url = reverse("notices:preferences")
    assert client.get(url).status_code == 200
    saved = client.post(url, form_of(**{"channel:comment": "off", "digest_hour": "17"}))
    assert saved.status_code == 302
    row = NoticeSettings.objects.get(user=cast.lead)
    assert (row.channels, row.digest_hour, row.digest_on) == ({"comment": "off"}, 17, True)
    assert client.post(url, form_of(**{"channel:comment": "pigeon"})).status_code == 400
    # another tab that was opened before
    stale = client.post(url, form_of(version=0))
    assert stale.status_code == 412
    assert "Someone else saved in between" in stale.content.decode()


def test_preferences_over_the_api(cast: Cast, api_as: ApiAs) -> None:
    client = api_as(cast.lead)
    url = reverse("api-notice-preferences")
    first = client.get(url)
    assert first["ETag"] == '"0"'
    assert client.patch(url, {"digest_hour": 6}).status_code == 428
    changed = client.patch(url, {"digest_hour": 6}, headers={"If-Match": '"0"'})
    assert (changed.json()["digest_hour"], changed.json()["digest_on"]) == (6, True)
    assert client.patch(url, {"digest_hour": 7}, headers={"If-Match": '"0"'}).status_code == 412
    for bad in (
        {"digest_hour": 24},
        {"channels": {"comment": "pigeon"}},
        {"channels": {"x": "now"}},
        {"hour": 1},
    ):
        answer = client.patch(url, bad, headers={"If-Match": "*"})
        assert (answer.status_code, bad) == (400, bad)
    token = make_ci_token(cast.project, sponsor=cast.lead)[1]
    assert api_as(token=token).patch(url, {"digest_hour": 5}, headers={"If-Match": "*"}).status_code == 403


def test_one_field_alone_keeps_the_others(cast: Cast) -> None:
    actor = cast.lead.as_actor()
    services.notice_settings_set(actor=actor, channels={"comment": "off"}, digest_on=False)
    row = services.notice_settings_set(actor=actor, digest_hour=6)
    assert (row.channels, row.digest_on, row.digest_hour) == ({"comment": "off"}, False, 6)
    with pytest.raises(StaleVersion):
        services.notice_settings_set(actor=actor, digest_hour=7, version=1)
    with pytest.raises(InvalidInput):
        services.notice_settings_set(actor=actor, digest_hour=True)
    token = make_ci_token(cast.project, sponsor=cast.lead)[0]
    with pytest.raises(NotPermitted):
        services.notice_settings_set(actor=token.as_actor(), digest_hour=7)


def test_a_secret_is_shown_once(cast: Cast, page_as: As) -> None:
    client = page_as(cast.lead)
    url = reverse("notices:webhooks")
    made = client.post(url, {"name": "Chat", "url": URL, "kinds": ["comment"]})
    assert "pgw_" in made.content.decode()
    assert made["Cache-Control"] == "no-store"
    hook = Webhook.objects.get()
    page = reverse("notices:webhook", args=[hook.pk])
    for shown in (client.get(url), client.get(page)):
        assert "pgw_" not in shown.content.decode()
    renewed = client.post(reverse("notices:webhook_secret", args=[hook.pk]))
    assert "pgw_" in renewed.content.decode()
    assert client.post(url, {"name": "In", "url": "https://10.0.0.1/"}).status_code == 400
    assert client.post(url, {"name": "", "url": URL}).status_code == 400


def test_webhook_pages_are_the_keepers(cast: Cast, page_as: As, api_as: ApiAs) -> None:
    hook, _secret = services.webhook_create(actor=cast.lead.as_actor(), name="Chat", url=URL)
    delivery = services.webhook_try(actor=cast.lead.as_actor(), webhook=hook)
    pages = [
        ("get", reverse("notices:webhook", args=[hook.pk])),
        ("post", reverse("notices:webhook_try", args=[hook.pk])),
        ("post", reverse("notices:webhook_secret", args=[hook.pk])),
        ("post", reverse("notices:delivery_repeat", args=[delivery.pk])),
        ("post", reverse("notices:webhook_delete", args=[hook.pk])),
    ]
    for person in (cast.viewer, cast.outsider, cast.auditor):
        client = page_as(person)
        assert [getattr(client, method)(url).status_code for method, url in pages] == [404] * 5
        assert api_as(person).get(reverse("api-webhook", args=[hook.pk])).status_code == 404
        assert api_as(person).get(reverse("api-webhook-deliveries", args=[hook.pk])).status_code == 404
    client = page_as(cast.lead)
    assert [getattr(client, method)(url).status_code for method, url in pages] == [200, 302, 200, 302, 302]
    assert not Webhook.objects.exists()


def test_a_refused_edit_keeps_what_was_typed(cast: Cast, page_as: As) -> None:
    hook, _secret = services.webhook_create(actor=cast.lead.as_actor(), name="Chat", url=URL)
    client = page_as(cast.lead)
    url = reverse("notices:webhook", args=[hook.pk])
    typed = {"name": "Typed name", "url": "https://10.0.0.1/", "version": hook.version, "active": "on"}
    refused = client.post(url, typed)
    assert refused.status_code == 400
    assert "Typed name" in refused.content.decode()
    assert client.post(url, typed | {"url": URL}).status_code == 302
    stale = client.post(url, typed | {"url": URL, "name": "From the other tab"})
    assert stale.status_code == 412
    assert "From the other tab" in stale.content.decode()


def test_row_7_a_patch_of_one_field_keeps_the_others_and_read_only_ones_are_refused(
    cast: Cast, api_as: ApiAs
) -> None:
    client = api_as(cast.lead)
    made = client.post(reverse("api-webhooks"), {"name": "Chat", "url": URL, "kinds": ["comment"]})
    assert made.status_code == 201
    assert made.json()["secret"].startswith("pgw_")
    url = reverse("api-webhook", args=[made.json()["id"]])
    assert "secret" not in client.get(url).json()
    changed = client.patch(url, {"active": False}, headers={"If-Match": made["ETag"]}).json()
    assert (changed["name"], changed["url"], changed["kinds"], changed["active"]) == (
        "Chat",
        URL,
        ["comment"],
        False,
    )
    for field, value in (("failures", 0), ("id", 9), ("secret", "x"), ("disabled_at", None)):
        answer = client.patch(url, {field: value}, headers={"If-Match": "*"})
        assert (field, answer.status_code) == (field, 400)
    assert client.patch(url, {"name": "B"}).status_code == 428
    assert client.patch(url, {"name": "B"}, headers={"If-Match": '"1"'}).status_code == 412
    assert client.delete(url).status_code == 204


def test_the_log_over_the_api(cast: Cast, api_as: ApiAs) -> None:
    client = api_as(cast.lead)
    made = client.post(reverse("api-webhooks"), {"name": "Chat", "url": URL}).json()
    tried = client.post(reverse("api-webhook-try", args=[made["id"]]))
    assert tried.status_code == 202
    (row,) = client.get(reverse("api-webhook-deliveries", args=[made["id"]])).json()["results"]
    assert (row["kind"], row["state"]) == ("trial", "waiting")
    assert client.post(reverse("api-delivery-again", args=[row["id"]])).status_code == 409
    renewed = client.post(reverse("api-webhook-secret", args=[made["id"]])).json()
    assert renewed["secret"] != made["secret"]
