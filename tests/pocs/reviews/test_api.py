"""The API of the reviews: who gets what answer, over the same guards as the pages."""

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.utils import timezone
from rest_framework.test import APIClient

from pocs.projects.choices import ProjectState
from pocs.reviews.models import Decision, Package
from tests.factories import PASSWORD, Cast, make_ci_token
from tests.pocs.reviews import walk

SignIn = Callable[..., APIClient]
SIGNING = {"slot": "business", "verdict": "approve", "password": PASSWORD}


def url(cast: Cast, rest: str) -> str:
    return f"/api/v1/projects/{cast.project.pk}/{rest}"


@pytest.mark.parametrize(
    "rest",
    ["conclusion/", "business-result/", "packages/", "waivers/", "decisions/", "sheet/", "follow-through/",
     "follow-through/budget/", "observations/", "observations/cost/", "observations/cost/readings/"],
)  # fmt: skip
def test_reading_is_for_members(cast: Cast, package: Package, api_as: SignIn, rest: str) -> None:
    assert api_as(cast.viewer).get(url(cast, rest)).status_code == 200
    assert api_as(cast.bystander).get(url(cast, rest)).status_code == 404
    assert api_as(cast.outsider).get(url(cast, rest)).status_code == 404
    assert api_as().get(url(cast, rest)).status_code == 401
    _, plaintext = make_ci_token(cast.project, sponsor=cast.contributor, scopes=("read",))
    assert api_as(token=plaintext).get(url(cast, rest)).status_code == 200


def test_freeze_over_the_api(cast: Cast, evidence: object, api_as: SignIn) -> None:
    assert api_as(cast.contributor).post(url(cast, "packages/")).status_code == 403
    answer = api_as(cast.lead).post(url(cast, "packages/"))
    assert answer.status_code == 201
    assert answer.json()["manifest"]["package"] == 1
    assert {row["state"] for row in answer.json()["signoffs"]} == {"requested"}
    listed = api_as(cast.viewer).get(url(cast, "packages/")).json()
    assert [row["digest"] for row in listed["results"]] == [answer.json()["digest"]]
    assert listed["next"] is None


def test_freeze_names_what_is_missing(cast: Cast, api_as: SignIn) -> None:
    walk.complete_plan(cast.project)
    walk.advance(cast, ProjectState.PLANNED)
    answer = api_as(cast.lead).post(url(cast, "packages/"))
    assert answer.status_code == 409


def test_signing_is_for_people(cast: Cast, package: Package, api_as: SignIn) -> None:
    path = f"/api/v1/packages/{package.pk}/signoffs/"
    for scopes in (("read",), ("runs:write",), ("read", "runs:write", "evidence:write")):
        _, plaintext = make_ci_token(cast.project, sponsor=cast.business, scopes=scopes)
        assert api_as(token=plaintext).post(path, SIGNING).status_code == 403
    assert api_as(cast.outsider).post(path, SIGNING).status_code == 404
    assert api_as(cast.platform).post(path, SIGNING).status_code == 403
    assert api_as(cast.business).post(path, SIGNING | {"password": "wrong"}).status_code == 400
    refused = api_as(cast.business).post(path, SIGNING | {"verdict": "reject"})
    assert refused.status_code == 400
    assert refused.json()["errors"][0]["pointer"] == "/comment"
    signed = api_as(cast.business).post(path, SIGNING)
    assert signed.status_code == 201
    assert signed.json()["digest"] == package.digest
    assert "password" not in signed.json()
    assert api_as(cast.business).post(path, SIGNING).status_code == 409


def test_findings_need_if_match(cast: Cast, api_as: SignIn) -> None:
    client, path = api_as(cast.contributor), url(cast, "conclusion/")
    assert client.get(path).headers["ETag"] == '"0"'
    body = {"performance": "Decode takes most of the time."}
    assert client.patch(path, body).status_code == 428
    assert client.patch(path, body, headers={"If-Match": '"7"'}).status_code == 412
    saved = client.patch(path, body, headers={"If-Match": '"0"'})
    assert saved.status_code == 200
    assert saved.headers["ETag"] == '"1"'
    more = client.patch(path, {"release_in_time": "Within 2 ms."}, headers={"If-Match": '"1"'})
    assert more.json()["performance"] == body["performance"]
    assert client.patch(path, {"version": 3}, headers={"If-Match": '"2"'}).status_code == 400
    assert api_as(cast.viewer).patch(path, body, headers={"If-Match": '"2"'}).status_code == 403


def test_waiver_needs_an_expiry(cast: Cast, api_as: SignIn) -> None:
    client, path = api_as(cast.lead), url(cast, "waivers/")
    body = {"guard": "G3", "reason": "No long prompts.", "scope": "Help desk."}
    assert client.post(path, body).status_code == 400
    assert client.post(path, body | {"expires_at": None}).status_code == 400
    past = (timezone.now() - timedelta(days=1)).isoformat()
    assert client.post(path, body | {"expires_at": past}).status_code == 400
    later = (timezone.now() + timedelta(days=1)).isoformat()
    for guard in ("G5", "G9", "G12", "G99"):
        refused = client.post(path, body | {"expires_at": later, "guard": guard})
        assert refused.json()["errors"][0]["pointer"] == "/guard"
    asked = client.post(path, body | {"expires_at": later})
    assert asked.status_code == 201
    granting = f"/api/v1/waivers/{asked.json()['id']}/grant/"
    assert client.post(granting).status_code == 403
    assert api_as(cast.outsider).post(granting).status_code == 404
    assert api_as(cast.decision_maker).post(granting).json()["state"] == "granted"


def test_decision_and_what_follows(cast: Cast, package: Package, api_as: SignIn) -> None:
    walk.sign(cast, package)
    body = {
        "outcome": "accepted_with_conditions",
        "next_step": "procurement",
        "rationale": "It holds its limits.",
        "conditions": [{"text": "Alerts on call", "owner": cast.lead.pk, "due_on": str(walk.in_days(5))}],
    }
    assert api_as(cast.viewer).post(url(cast, "decision/"), body).status_code == 403
    assert api_as(cast.lead).get(url(cast, "decision/")).status_code == 404
    foreign = body | {"conditions": [body["conditions"][0] | {"owner": cast.outsider.pk}]}
    refused = api_as(cast.lead).post(url(cast, "decision/"), foreign)
    assert refused.status_code == 400
    assert refused.json()["errors"][0]["pointer"] == "/conditions/0/owner"
    decision = api_as(cast.lead).post(url(cast, "decision/"), body).json()
    confirm = f"/api/v1/decisions/{decision['id']}/confirm/"
    assert api_as(cast.lead).post(confirm).status_code == 403
    confirmed = api_as(cast.decision_maker).post(confirm)
    assert confirmed.status_code == 200
    assert confirmed.json()["confirmed_by"]["id"] == cast.decision_maker.pk

    client = api_as(cast.lead)
    task = {"owner": cast.lead.pk, "due_on": str(walk.in_days(9))}
    path = url(cast, "follow-through/launch/")
    assert client.put(path, task).status_code == 428
    assert client.put(path, task, headers={"If-Match": '"0"'}).status_code == 200
    blocked = client.post(path + "done/")
    assert blocked.status_code == 409
    assert blocked.json()["missing"][0]["code"] == "condition.open"
    condition = confirmed.json()["conditions"][0]["id"]
    close = f"/api/v1/conditions/{condition}/close/"
    assert client.post(close, {"evidence": ""}).status_code == 400
    assert client.post(close, {"evidence": "Runbook 9 is in force."}).status_code == 200
    assert client.post(path + "done/").json()["state"] == "done"


def test_observation_readings(cast: Cast, decision: Decision, api_as: SignIn) -> None:
    walk.set_follow_through(cast)
    walk.advance(cast, ProjectState.FOLLOW_THROUGH)
    client, path = api_as(cast.lead), url(cast, "observations/cost/")
    reading = {"value": "1.25", "unit": "CNY/1k tokens"}
    assert client.post(path + "readings/", reading).status_code == 409
    named = client.put(path, {"observer": cast.observer.pk}, headers={"If-Match": '"0"'})
    assert named.status_code == 200
    assert api_as(cast.viewer).post(path + "readings/", reading).status_code == 403
    assert client.post(path + "readings/", reading | {"value": "NaN"}).status_code == 400
    assert api_as(cast.observer).post(path + "readings/", reading).status_code == 201
    assert client.get(path + "readings/").json()["results"][0]["value"] == "1.2500"
    assert client.get(path).json()["state"] == "active"


def test_sheet_in_either_language(cast: Cast, decision: Decision, api_as: SignIn) -> None:
    client = api_as(cast.viewer)
    sheet = client.get(url(cast, "sheet/") + "?lang=en").json()
    assert sheet["language"] == "en"
    assert sheet["confirmed_by"].startswith(str(cast.decision_maker))
    assert len(sheet["signatures"]) == 3
    assert client.get(url(cast, "sheet/") + "?lang=zh-hans").json()["language"] == "zh-hans"
    assert client.get(url(cast, "sheet/") + "?lang=fr").status_code == 400
