"""CI tokens over REST: issued and ended by people, never by a token, shown once."""

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.urls import reverse
from django.utils import timezone
from rest_framework.test import APIClient

from pocs.common.errors import NotPermitted
from pocs.projects import services
from pocs.projects.models import CIToken
from tests.factories import Cast, make_ci_token

Api = Callable[..., APIClient]


def body(**fields: object) -> dict[str, object]:
    later = (timezone.now() + timedelta(days=30)).isoformat()
    return {"name": "Nightly", "scopes": ["read", "runs:write"], "expires_at": later} | fields


def test_a_token_is_issued_used_and_ended(cast: Cast, api_as: Api) -> None:
    url = reverse("api-tokens", args=[cast.project.pk])
    client = api_as(cast.lead)
    issued = client.post(url, body(sponsor=cast.contributor.pk, allowed_addresses=["127.0.0.1"]))
    assert issued.status_code == 201
    assert issued["Cache-Control"] == "no-store"
    plaintext = issued.json()["token"]
    listed = client.get(url).json()["results"]
    assert [row["sponsor"] for row in listed] == [cast.contributor.pk]
    assert plaintext not in str(listed)
    me = reverse("api-me")
    assert api_as(token=plaintext).get(me).json()["user"] == cast.contributor.pk
    revoke = reverse("api-token-revoke", args=[cast.project.pk, issued.json()["id"]])
    assert client.post(revoke).json()["revoked_at"]
    assert client.post(revoke).status_code == 409
    assert api_as(token=plaintext).get(me).status_code == 401


def test_never_by_a_token_itself(cast: Cast, api_as: Api) -> None:
    token, plaintext = make_ci_token(
        cast.project, sponsor=cast.lead, scopes=("read", "runs:write", "evidence:write", "observation:write")
    )
    url = reverse("api-tokens", args=[cast.project.pk])
    client = api_as(token=plaintext)
    assert client.get(url).status_code == 403
    assert client.post(url, body()).status_code == 403
    assert client.post(reverse("api-token-revoke", args=[cast.project.pk, token.pk])).status_code == 403
    with pytest.raises(NotPermitted):
        services.token_revoke(actor=token.as_actor(), project=cast.project, token=token)
    assert CIToken.objects.get().revoked_at is None


@pytest.mark.parametrize(
    ("fields", "pointer"),
    [
        ({"scopes": []}, "/scopes"),
        ({"scopes": ["admin"]}, "/scopes/0"),
        ({"expires_at": "2001-01-01T00:00:00Z"}, "/expires_at"),
        ({"allowed_addresses": ["nowhere"]}, "/allowed_addresses/0"),
        ({"sponsor": 10**6}, "/sponsor"),
        ({"token": "pgt_mine"}, "/token"),
    ],
)
def test_what_a_token_needs(cast: Cast, api_as: Api, fields: dict[str, object], pointer: str) -> None:
    refused = api_as(cast.lead).post(reverse("api-tokens", args=[cast.project.pk]), body(**fields))
    assert refused.status_code == 400
    assert pointer in [error["pointer"] for error in refused.json()["errors"]]


def test_by_whom(cast: Cast, api_as: Api) -> None:
    url = reverse("api-tokens", args=[cast.project.pk])
    for person in (cast.viewer, cast.contributor, cast.auditor, cast.decision_maker):
        assert api_as(person).get(url).status_code == 403
        assert api_as(person).post(url, {}).status_code == 403
    for stranger in (cast.bystander, cast.outsider):
        assert api_as(stranger).post(url, {}).status_code == 404
    token, _ = make_ci_token(cast.project, sponsor=cast.lead)
    elsewhere = reverse("api-token-revoke", args=[cast.outsider.project_roles.get().project_id, token.pk])
    assert api_as(cast.outsider).post(elsewhere).status_code == 404
