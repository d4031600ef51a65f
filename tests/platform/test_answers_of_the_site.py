"""Error pages, health, headers and the API's pages."""

from collections.abc import Callable

import pytest
import redis
from django.test import Client, RequestFactory, override_settings

from phasegate import error_pages, health, worker_presence
from pocs.people.models import User
from tests.factories import Cast


def test_unknown_page_is_a_page(db: None) -> None:
    response = Client().get("/no/such/page/")
    assert response.status_code == 404
    assert response["Content-Type"].startswith("text/html")


def test_unknown_route_of_the_api_is_a_problem_document(db: None) -> None:
    response = Client().get("/api/v1/no-such-thing/")
    assert response.status_code == 404
    assert response["Content-Type"] == "application/problem+json"
    assert response.json()["request_id"] == response["X-Request-ID"]


def test_a_form_without_its_token_is_explained(cast: Cast) -> None:
    client = Client(enforce_csrf_checks=True)
    response = client.post("/sign-in/", {"username": "a", "password": "b"})
    assert response.status_code == 403
    assert "reload the page" in response.content.decode()


@override_settings(DATA_UPLOAD_MAX_MEMORY_SIZE=100)
def test_a_form_too_large_is_413(cast: Cast, page_as: Callable[[User], Client]) -> None:
    client = page_as(cast.lead)
    client.raise_request_exception = False
    body = "time_zone=" + "x" * 500
    response = client.post("/preferences/", body, content_type="application/x-www-form-urlencoded")
    assert response.status_code == 413
    assert "larger than the site accepts" in response.content.decode()


def test_failures_show_no_details() -> None:
    page = error_pages.server_error(RequestFactory().get("/projects/"))
    assert page.status_code == 500
    assert b"Traceback" not in page.content
    problem = error_pages.server_error(RequestFactory().get("/api/v1/projects/"))
    assert problem["Content-Type"] == "application/problem+json"


def test_policy_allows_nothing_inline(db: None) -> None:
    policy = Client().get("/sign-in/")["Content-Security-Policy"]
    assert "unsafe" not in policy
    assert "default-src 'self'" in policy
    assert "frame-ancestors 'none'" in policy


def test_a_host_header_cannot_widen_the_policy() -> None:
    response = Client().get("/healthz", headers={"host": "a.example; script-src *"})
    assert "script-src *" not in response.get("Content-Security-Policy", "")


def test_api_pages_need_no_sign_in(db: None) -> None:
    page = Client().get("/api/docs/")
    assert page.status_code == 200
    assert b"<script>" not in page.content
    assert b"<style>" not in page.content
    assert Client().get("/api/docs/?script=")["Content-Type"].startswith("application/javascript")


def test_healthz_looks_at_nothing() -> None:
    assert Client().get("/healthz").status_code == 200


@pytest.mark.parametrize(
    ("queues", "status", "absent"),
    [
        ({"engine", "default"}, 200, set()),
        ({"default"}, 503, {"engine_worker"}),
        (set(), 503, {"engine_worker", "default_worker"}),
        (redis.ConnectionError("gone"), 503, {"broker", "engine_worker", "default_worker"}),
    ],
)
def test_readyz_names_what_is_absent(
    db: None, monkeypatch: pytest.MonkeyPatch, queues: object, status: int, absent: set[str]
) -> None:
    def served() -> object:
        if isinstance(queues, Exception):
            raise queues
        return queues

    monkeypatch.setattr(worker_presence, "queues_served", served)
    response = Client().get("/readyz")
    checks = response.json()["checks"]
    assert response.status_code == status
    assert {name for name, well in checks.items() if not well} == absent


def test_readyz_without_database(db: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_presence, "queues_served", lambda: {"engine", "default"})
    monkeypatch.setattr(health, "_database", lambda: False)
    response = Client().get("/readyz")
    assert response.status_code == 503
    assert response.json()["checks"]["database"] is False
