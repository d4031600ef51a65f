"""The REST API of projects: who gets which answer on every route, and what is written."""

from collections.abc import Callable
from typing import Any

import pytest
from rest_framework.test import APIClient

from pocs.people.models import User
from tests.factories import Cast, complete_plan, make_scenario_version, make_spec

ApiAs = Callable[..., APIClient]

#: every route below one project with the methods it offers; {} stands for the project's number
ROUTES: dict[str, dict[str, Any]] = {
    "/api/v1/projects/{}/": {"get": None, "patch": {"goal": "x"}},
    "/api/v1/projects/{}/gates/": {"get": None},
    "/api/v1/projects/{}/advance/": {"post": {"to": "planned"}},
    "/api/v1/projects/{}/cancel/": {"post": {"reason": "x"}},
    "/api/v1/projects/{}/history/": {"get": None},
    "/api/v1/projects/{}/members/": {"get": None, "post": {"user": 1, "role": "viewer"}},
    "/api/v1/projects/{}/members/1/": {"delete": None},
    "/api/v1/projects/{}/affected/": {"get": None, "post": {"kind": "data", "name": "x"}},
    "/api/v1/projects/{}/affected/1/": {"delete": None},
    "/api/v1/projects/{}/readiness/": {"get": None},
    "/api/v1/projects/{}/readiness/logs/": {"get": None, "put": {"ready": False}},
    "/api/v1/projects/{}/declarations/": {"get": None},
    "/api/v1/projects/{}/declarations/real_roles/": {"get": None, "put": {"statement": ""}},
    "/api/v1/projects/{}/scenarios/": {
        "get": None,
        "post": {"slug": "s", "name": "S", "kind": "streaming", "spec": make_spec().as_json()},
    },
    "/api/v1/projects/{}/scenarios/short/1/": {"get": None},
    "/api/v1/projects/{}/scenarios/short/1/approve/": {"post": {}},
    "/api/v1/projects/{}/scenarios/short/1/retire/": {"post": {}},
}
CASES = [(path, method, body) for path, methods in ROUTES.items() for method, body in methods.items()]


def ask(api: APIClient, cast: Cast, path: str, method: str, body: Any) -> int:
    """Status of one request; the numbers 1 in the path and body are replaced by real ones."""
    item = cast.project.affected.first()
    member = cast.project.members.get(user=cast.viewer)
    if "/affected/1/" in path and item is not None:
        path = path.replace("/affected/1/", f"/affected/{item.pk}/")
    path = path.replace("/members/1/", f"/members/{member.pk}/")
    if isinstance(body, dict) and "user" in body:
        body = body | {"user": cast.bystander.pk}
    headers = {"HTTP_IF_MATCH": "*"} if method in ("patch", "put") else {}
    return getattr(api, method)(path.format(cast.project.pk), body, **headers).status_code


@pytest.fixture
def full(cast: Cast) -> Cast:
    complete_plan(cast.project, cast.team)
    make_scenario_version(cast.project, "short", state="draft")
    return cast


@pytest.mark.parametrize(("path", "method", "body"), CASES)
def test_every_route_knows_who_asks(full: Cast, api_as: ApiAs, path: str, method: str, body: Any) -> None:
    assert ask(api_as(), full, path, method, body) == 401
    for stranger in (full.outsider, full.bystander):
        assert ask(api_as(stranger), full, path, method, body) == 404
    for reader in (full.viewer, full.auditor):
        assert ask(api_as(reader), full, path, method, body) == (200 if method == "get" else 403)
    assert ask(api_as(full.lead), full, path, method, body) in (200, 201, 204)


def test_a_project_shows_what_it_is(full: Cast, api_as: ApiAs) -> None:
    body = api_as(full.viewer).get(f"/api/v1/projects/{full.project.pk}/").json()
    assert body["state"] == "draft"
    assert body["version"] == full.project.version
    assert "organisation" not in body


def test_a_patch_keeps_what_it_does_not_name(full: Cast, api_as: ApiAs) -> None:
    api = api_as(full.lead)
    url = f"/api/v1/projects/{full.project.pk}/"
    before = api.get(url).json()
    after = api.patch(url, {"supplier": "ACME"}, HTTP_IF_MATCH="*").json()
    moving = {"supplier", "version", "updated_at"}
    assert {name for name in after if after[name] != before[name]} == moving


@pytest.mark.parametrize(
    "field", ["id", "state", "version", "created_at", "updated_at", "organisation", "created_by"]
)
def test_a_patch_of_anything_else_is_400_and_changes_nothing(full: Cast, api_as: ApiAs, field: str) -> None:
    url = f"/api/v1/projects/{full.project.pk}/"
    answer = api_as(full.lead).patch(url, {field: 1, "goal": "sneaked in"}, HTTP_IF_MATCH="*")
    assert answer.status_code == 400
    assert answer.json()["errors"][0]["pointer"] == f"/{field}"
    full.project.refresh_from_db()
    assert full.project.goal != "sneaked in"


def test_gates_and_a_refused_step_say_what_is_missing(cast: Cast, api_as: ApiAs) -> None:
    api = api_as(cast.lead)
    base = f"/api/v1/projects/{cast.project.pk}/"
    gates = api.get(f"{base}gates/").json()
    assert gates["next_state"] == "planned"
    assert len(gates["missing"]) == 10
    first = next(gate for gate in gates["gates"] if gate["code"] == "G1")
    assert (first["met"], first["waived"], first["before"]) == (False, False, "planned")
    refused = api.post(f"{base}advance/", {"to": "planned"})
    assert refused.status_code == 409
    problem = refused.json()
    assert problem["type"] == "/problems/gate-not-met"
    assert problem["missing"] == gates["missing"]
    assert set(problem["missing"][0]) == {"guard", "code", "object", "detail", "url"}
    assert problem["missing"][0]["guard"] == "G1"


def test_a_step_out_of_order_is_a_conflict(full: Cast, api_as: ApiAs) -> None:
    api = api_as(full.lead)
    base = f"/api/v1/projects/{full.project.pk}/"
    assert api.post(f"{base}advance/", {"to": "running"}).json()["type"] == "/problems/conflict"
    assert api.post(f"{base}advance/", {"to": "planned"}).json()["state"] == "planned"
    assert api.post(f"{base}advance/", {"to": "planned"}).status_code == 409
    assert api.post(f"{base}advance/", {}).status_code == 400
    assert api.post(f"{base}advance/", {"to": "mars"}).json()["errors"][0]["pointer"] == "/to"


def test_scenarios_are_listed_with_slug_and_version(cast: Cast, api_as: ApiAs) -> None:
    make_scenario_version(cast.project, "short")
    make_scenario_version(cast.project, "short", output_tokens=32)
    body = api_as(cast.viewer).get(f"/api/v1/projects/{cast.project.pk}/scenarios/").json()
    assert set(body) >= {"results", "next"}
    assert sorted((row["slug"], row["version"]) for row in body["results"]) == [("short", 1), ("short", 2)]
    assert set(body["results"][0]) >= {"slug", "version", "name", "kind", "state", "spec", "digest"}


def test_a_scenario_is_made_versioned_and_approved(cast: Cast, api_as: ApiAs) -> None:
    api = api_as(cast.lead)
    url = f"/api/v1/projects/{cast.project.pk}/scenarios/"
    body = {
        "slug": "long",
        "name": "Long",
        "kind": "long_context",
        "spec": make_spec(input_tokens=900).as_json(),
    }
    made = api.post(url, body)
    assert made.status_code == 201
    assert (made.json()["version"], made.json()["state"]) == (1, "draft")
    assert api.get(made["Location"]).json() == made.json()
    second = api.post(url, {"slug": "long", "spec": make_spec(input_tokens=1000).as_json()})
    assert second.json()["version"] == 2
    approved = api.post(f"{made['Location']}approve/")
    assert approved.json()["state"] == "approved"
    assert api.post(f"{made['Location']}approve/").status_code == 409
    renamed = api.post(url, {"slug": "long", "name": "Other", "spec": make_spec(input_tokens=1100).as_json()})
    assert renamed.json()["errors"][0]["pointer"] == "/name"
    nameless = api.post(url, {"slug": "new", "spec": make_spec().as_json()})
    assert {error["pointer"] for error in nameless.json()["errors"]} == {"/name", "/kind"}


def test_latency_below_100_ms_is_refused_over_the_api(cast: Cast, api_as: ApiAs) -> None:
    spec = make_spec().as_json() | {"limits": ["latency < 100 ms"]}
    body = {"slug": "plan", "name": "Plan", "kind": "short_request", "spec": spec}
    answer = api_as(cast.lead).post(f"/api/v1/projects/{cast.project.pk}/scenarios/", body)
    assert answer.status_code == 400
    (error,) = answer.json()["errors"]
    assert error["pointer"] == "/spec/limits/0"
    assert "percentile, phase, length and load" in error["detail"]


def test_readiness_and_declarations_are_written_in_the_version_seen(cast: Cast, api_as: ApiAs) -> None:
    api = api_as(cast.contributor)
    base = f"/api/v1/projects/{cast.project.pk}/"
    rows = api.get(f"{base}readiness/").json()["results"]
    assert [row["version"] for row in rows] == [0] * 5
    url = f"{base}readiness/logs/"
    assert api.get(url)["ETag"] == '"0"'
    assert api.put(url, {"ready": True, "basis": "Loki"}).status_code == 428
    assert api.put(url, {"ready": True, "basis": ""}, HTTP_IF_MATCH='"0"').status_code == 400
    stated = api.put(url, {"ready": True, "basis": "Loki", "team": cast.team.pk}, HTTP_IF_MATCH='"0"')
    assert (stated.status_code, stated["ETag"]) == (200, '"1"')
    assert api.put(url, {"ready": False}, HTTP_IF_MATCH='"0"').status_code == 412
    foreign = api.put(url, {"ready": False, "team": 10**6}, HTTP_IF_MATCH='"1"')
    assert foreign.json()["errors"][0]["pointer"] == "/team"
    assert api.get(f"{base}readiness/moon/").status_code == 404
    declared = {"statement": "500 tickets", "source": "Export 7"}
    assert api.put(f"{base}declarations/real_requests/", declared, HTTP_IF_MATCH='"0"').status_code == 200
    assert api.get(f"{base}declarations/").json()["results"][0]["version"] == 1


def test_members_over_the_api_stay_inside_the_organisation(cast: Cast, api_as: ApiAs) -> None:
    url = f"/api/v1/projects/{cast.project.pk}/members/"
    answer = api_as(cast.lead).post(url, {"user": cast.outsider.pk, "role": "viewer"})
    assert answer.status_code == 400
    assert answer.json()["errors"][0]["pointer"] == "/user"
    assert api_as(cast.lead).post(url, {"user": "x", "role": "king"}).status_code == 400


def test_an_item_of_another_project_is_404_on_the_nested_route(full: Cast, api_as: ApiAs) -> None:
    api = api_as(full.lead)
    other = api.post("/api/v1/projects/", {"name": "Other"}).json()["id"]
    item = full.project.affected.first()
    assert item is not None
    assert api.delete(f"/api/v1/projects/{other}/affected/{item.pk}/").status_code == 404
    assert full.project.affected.filter(pk=item.pk).exists()


def test_history_is_paged_newest_first(full: Cast, api_as: ApiAs) -> None:
    api = api_as(full.lead)
    for number in range(3):
        body = {"kind": "data", "name": f"D{number}"}
        api.post(f"/api/v1/projects/{full.project.pk}/affected/", body)
    url = f"/api/v1/projects/{full.project.pk}/history/"
    first = api.get(url, {"page_size": 2}).json()
    assert [row["after"]["name"] for row in first["results"]] == ["D2", "D1"]
    assert api.get(first["next"]).json()["results"][0]["after"]["name"] == "D0"


def test_a_person_without_organisation_may_nothing(api_as: ApiAs, db: None) -> None:
    loner = User.objects.create_user("loner")
    assert api_as(loner).get("/api/v1/projects/").status_code == 403
