"""CI tokens: issued once in sight, refused when anything about them ended, and never a person."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone
from rest_framework.test import APIClient

from pocs.common.errors import Conflict, InvalidInput, NotFound
from pocs.common.models import AuditEntry
from pocs.projects import services, tokens
from pocs.projects.models import CIToken, ProjectMember
from tests.factories import Cast, complete_plan, make_ci_token, make_scenario_version

ApiAs = Callable[..., APIClient]


def issue(cast: Cast, **fields: Any) -> tuple[CIToken, str]:
    defaults: dict[str, Any] = {
        "actor": cast.lead.as_actor(),
        "project": cast.project,
        "name": "CI",
        "scopes": ["read"],
        "expires_at": timezone.now() + timedelta(days=1),
    }
    return services.token_issue(**(defaults | fields))


def test_a_token_is_stored_as_a_digest_and_never_in_the_audit(cast: Cast) -> None:
    token, plaintext = issue(cast)
    assert plaintext.startswith("pgt_")
    assert token.sponsor == cast.lead
    row = CIToken.objects.values().get(pk=token.pk)
    assert plaintext not in str(row)
    entry = AuditEntry.objects.get(verb="token.issued")
    assert entry.after is not None
    assert plaintext not in str(entry.after)
    assert plaintext.startswith(entry.after["prefix"])


@pytest.mark.parametrize(
    ("fields", "pointer"),
    [
        ({"name": " "}, "/name"),
        ({"scopes": []}, "/scopes"),
        ({"scopes": ["read", "everything"]}, "/scopes"),
        ({"expires_at": None}, "/expires_at"),
        ({"expires_at": timezone.now() - timedelta(days=1)}, "/expires_at"),
        ({"expires_at": timezone.now() + timedelta(days=800)}, "/expires_at"),
        ({"allowed_addresses": ["10.0.0.1", "office"]}, "/allowed_addresses/1"),
    ],
)
def test_what_is_wrong_with_a_token_is_named(cast: Cast, fields: dict[str, Any], pointer: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        issue(cast, **fields)
    assert [error.pointer for error in caught.value.errors] == [pointer]


def test_another_contributor_may_answer_for_a_token(cast: Cast) -> None:
    token, _plaintext = issue(cast, sponsor=cast.contributor)
    assert token.sponsor == cast.contributor
    assert token.as_actor().user_id == cast.contributor.pk
    for nobody in (cast.viewer, cast.security, cast.bystander, cast.outsider):
        with pytest.raises(InvalidInput) as caught:
            issue(cast, sponsor=nobody)
        assert caught.value.errors[0].pointer == "/sponsor"


def test_a_token_reads_its_own_project_only(cast: Cast, api_as: ApiAs) -> None:
    _token, plaintext = issue(cast)
    services.project_create(actor=cast.lead.as_actor(), name="Another of the sponsor")
    api = api_as(token=plaintext)
    found = api.get("/api/v1/projects/").json()
    assert [row["id"] for row in found["results"]] == [cast.project.pk]
    assert found["next"] is None
    assert api.get("/api/v1/me/").json()["kind"] == "token"
    for path in ("people", "teams"):
        assert api.get(f"/api/v1/{path}/").status_code == 403
    other = services.project_create(actor=cast.lead.as_actor(), name="Yet another")
    assert api.get(f"/api/v1/projects/{other.pk}/").status_code == 404


def test_without_the_scope_read_a_token_sees_nothing(cast: Cast, api_as: ApiAs) -> None:
    _token, plaintext = issue(cast, scopes=["runs:write"])
    api = api_as(token=plaintext)
    assert api.get("/api/v1/projects/").json()["results"] == []
    assert api.get(f"/api/v1/projects/{cast.project.pk}/").status_code == 403


def test_no_scope_lets_a_token_decide_anything(cast: Cast, api_as: ApiAs) -> None:
    complete_plan(cast.project, cast.team)
    version = make_scenario_version(cast.project, "short", state="draft")
    _token, plaintext = issue(cast, scopes=["read", "runs:write", "evidence:write"])
    api = api_as(token=plaintext)
    base = f"/api/v1/projects/{cast.project.pk}/"
    attempts = [
        api.patch(base, {"goal": "x"}, HTTP_IF_MATCH="*"),
        api.post(f"{base}advance/", {"to": "planned"}),
        api.post(f"{base}cancel/", {"reason": "x"}),
        api.post(f"{base}members/", {"user": cast.viewer.pk, "role": "lead"}),
        api.post(f"{base}affected/", {"kind": "data", "name": "x"}),
        api.put(f"{base}readiness/logs/", {"ready": False}, HTTP_IF_MATCH="*"),
        api.put(f"{base}declarations/real_roles/", {"statement": ""}, HTTP_IF_MATCH="*"),
        api.post(f"{base}scenarios/", {"slug": "s", "name": "s", "kind": "streaming", "spec": version.spec}),
        api.post(f"{base}scenarios/short/1/approve/"),
        api.post(f"{base}scenarios/short/1/retire/"),
        api.post("/api/v1/projects/", {"name": "Own"}),
    ]
    assert [attempt.status_code for attempt in attempts] == [403] * len(attempts)
    cast.project.refresh_from_db()
    assert cast.project.state == "draft"


@pytest.mark.parametrize(
    "end",
    [
        lambda cast, token: services.token_revoke(
            actor=cast.lead.as_actor(), project=cast.project, token=token
        ),
        lambda cast, token: CIToken.objects.update(expires_at=timezone.now() - timedelta(seconds=1)),
        lambda cast, token: type(cast.lead).objects.filter(pk=cast.lead.pk).update(is_active=False),
        lambda cast, token: ProjectMember.objects.filter(user=cast.lead).delete(),
    ],
    ids=["revoked", "expired", "sponsor deactivated", "sponsor left the project"],
)
def test_an_ended_token_is_no_credential(cast: Cast, api_as: ApiAs, end: Callable[..., object]) -> None:
    token, plaintext = issue(cast)
    api = api_as(token=plaintext)
    assert api.get("/api/v1/projects/").status_code == 200
    end(cast, token)
    refused = api.get("/api/v1/projects/")
    assert refused.status_code == 401
    assert refused["WWW-Authenticate"] == "Bearer"


@pytest.mark.parametrize("header", ["Bearer", "Bearer a b", "Bearer pgt_unknown", "Bearer tök"])
def test_malformed_and_unknown_tokens_are_401(db: None, header: str) -> None:
    assert APIClient().get("/api/v1/projects/", HTTP_AUTHORIZATION=header).status_code == 401


def test_a_token_beside_a_session_acts_as_the_token(cast: Cast, api_as: ApiAs) -> None:
    _token, plaintext = issue(cast)
    assert api_as(cast.lead, token=plaintext).get("/api/v1/me/").json()["kind"] == "token"


def test_addresses_bound_the_use(cast: Cast, api_as: ApiAs) -> None:
    _token, plaintext = issue(cast, allowed_addresses=["10.1.0.0/16", "::1"])
    api = api_as(token=plaintext)
    assert api.get("/api/v1/me/", REMOTE_ADDR="10.1.2.3").status_code == 200
    assert api.get("/api/v1/me/", REMOTE_ADDR="::1").status_code == 200
    for address in ("10.2.0.1", "", "nonsense"):
        assert api.get("/api/v1/me/", REMOTE_ADDR=address).status_code == 401


def test_last_use_is_kept_to_the_minute(cast: Cast) -> None:
    token, _plaintext = make_ci_token(cast.project, sponsor=cast.lead)
    tokens.note_use(token)
    token.refresh_from_db()
    first = token.last_used_at
    assert first is not None
    tokens.note_use(token)
    token.refresh_from_db()
    assert token.last_used_at == first
    CIToken.objects.update(last_used_at=first - timedelta(seconds=tokens.LAST_USE_RESOLUTION_S + 1))
    tokens.note_use(token)
    token.refresh_from_db()
    assert token.last_used_at > first - timedelta(seconds=1)


def test_a_token_is_revoked_once_and_by_its_own_project(cast: Cast) -> None:
    token, _plaintext = issue(cast)
    other = services.project_create(actor=cast.lead.as_actor(), name="Other")
    with pytest.raises(NotFound):
        services.token_revoke(actor=cast.lead.as_actor(), project=other, token=token)
    services.token_revoke(actor=cast.lead.as_actor(), project=cast.project, token=token)
    with pytest.raises(Conflict):
        services.token_revoke(actor=cast.lead.as_actor(), project=cast.project, token=token)
