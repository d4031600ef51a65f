"""What every endpoint shares: problems, conditional writes, idempotency, request ids."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone
from rest_framework.test import APIClient

from pocs.common.api.idempotency import ABANDONED_AFTER_S
from pocs.common.models import IdempotencyKey
from pocs.projects.models import Project
from tests.factories import Cast

ApiAs = Callable[..., APIClient]
KEY: dict[str, Any] = {"HTTP_IDEMPOTENCY_KEY": "one-key"}


def problem(response: Any, status: int, kind: str) -> dict[str, Any]:
    assert response.status_code == status
    assert response["Content-Type"].startswith("application/problem+json")
    body = response.json()
    assert body["type"] == f"/problems/{kind}"
    assert body["status"] == status
    assert body["request_id"] == response["X-Request-ID"]
    assert body["title"]
    assert body["detail"]
    return body


def test_without_credentials_401_says_how(api_as: ApiAs) -> None:
    response = api_as().get("/api/v1/projects/")
    problem(response, 401, "not-authenticated")
    assert response["WWW-Authenticate"] == "Bearer"


def test_unknown_object_404_wrong_method_405_bad_body_400_wrong_type_415(cast: Cast, api_as: ApiAs) -> None:
    api = api_as(cast.lead)
    problem(api.get("/api/v1/projects/999999/"), 404, "not-found")
    problem(api.delete("/api/v1/projects/"), 405, "method-not-allowed")
    problem(api.post("/api/v1/projects/", "{", content_type="application/json"), 400, "malformed")
    problem(api.post("/api/v1/projects/", '{"name": NaN}', content_type="application/json"), 400, "malformed")
    problem(api.post("/api/v1/projects/", "x", content_type="text/csv"), 415, "unsupported-media-type")


@pytest.mark.parametrize("body", [[], "text", 7, None])
def test_a_body_of_another_shape_is_400(cast: Cast, api_as: ApiAs, body: object) -> None:
    problem(api_as(cast.lead).post("/api/v1/projects/", body, format="json"), 400, "invalid-input")


def test_wrong_fields_are_named_by_pointer(cast: Cast, api_as: ApiAs) -> None:
    body = problem(
        api_as(cast.lead).post("/api/v1/projects/", {"state": "decided", "colour": "red"}),
        400,
        "invalid-input",
    )
    assert {(error["pointer"], error["code"]) for error in body["errors"]} == {
        ("/state", "read_only"),
        ("/colour", "unknown"),
    }


def test_texts_follow_the_language_asked_for(cast: Cast, api_as: ApiAs) -> None:
    response = api_as(cast.lead).get("/api/v1/projects/999999/", HTTP_ACCEPT_LANGUAGE="en")
    assert response.json()["title"] == "Not found"


def test_a_session_without_csrf_token_is_refused(cast: Cast) -> None:
    api = APIClient(enforce_csrf_checks=True)
    api.force_login(cast.lead)
    problem(api.post("/api/v1/projects/", {"name": "Forged"}), 403, "not-permitted")
    assert not Project.objects.filter(name="Forged").exists()


def test_writes_need_the_etag_that_was_read(cast: Cast, api_as: ApiAs) -> None:
    api = api_as(cast.lead)
    url = f"/api/v1/projects/{cast.project.pk}/"
    tag = api.get(url)["ETag"]
    assert tag == '"1"'
    problem(api.patch(url, {"goal": "New"}), 428, "precondition-required")
    for wrong in ['"2"', 'W/"1"', "1", '"abc"', '"99999999999999999999"']:
        body = problem(api.patch(url, {"goal": "New"}, HTTP_IF_MATCH=wrong), 412, "stale-version")
        assert body["current"] == 1
    answer = api.patch(url, {"goal": "New"}, HTTP_IF_MATCH=tag)
    assert answer.status_code == 200
    assert answer["ETag"] == '"2"'
    problem(api.patch(url, {"goal": "Other"}, HTTP_IF_MATCH=tag), 412, "stale-version")
    assert api.patch(url, {"goal": "Any"}, HTTP_IF_MATCH="*").status_code == 200


def test_a_repeated_post_gets_the_first_answer(cast: Cast, api_as: ApiAs) -> None:
    api = api_as(cast.lead)
    first = api.post("/api/v1/projects/", {"name": "Once"}, **KEY)
    second = api.post("/api/v1/projects/", {"name": "Once"}, **KEY)
    assert (first.status_code, second.status_code) == (201, 201)
    assert second.json() == first.json()
    assert second["Location"] == first["Location"]
    assert second["ETag"] == first["ETag"]
    assert second["Idempotent-Replayed"] == "true"
    assert not first.has_header("Idempotent-Replayed")
    assert Project.objects.filter(name="Once").count() == 1


def test_the_same_key_with_another_body_is_422_and_belongs_to_one_person(cast: Cast, api_as: ApiAs) -> None:
    api_as(cast.lead).post("/api/v1/projects/", {"name": "Once"}, **KEY)
    other = api_as(cast.lead).post("/api/v1/projects/", {"name": "Twice"}, **KEY)
    problem(other, 422, "idempotency-key-reused")
    assert api_as(cast.contributor).post("/api/v1/projects/", {"name": "Mine"}, **KEY).status_code == 201


def test_a_refused_request_leaves_its_key_free(cast: Cast, api_as: ApiAs) -> None:
    api = api_as(cast.lead)
    problem(api.post("/api/v1/projects/", {"name": ""}, **KEY), 400, "invalid-input")
    assert api.post("/api/v1/projects/", {"name": "Now right"}, **KEY).status_code == 201


def test_while_the_first_is_in_flight_others_wait_until_it_is_given_up(cast: Cast, api_as: ApiAs) -> None:
    api = api_as(cast.lead)
    api.post("/api/v1/projects/", {"name": "Once"}, **KEY)
    Project.objects.filter(name="Once").delete()
    IdempotencyKey.objects.update(status=None, response=None)
    waiting = api.post("/api/v1/projects/", {"name": "Once"}, **KEY)
    problem(waiting, 409, "request-in-flight")
    assert waiting["Retry-After"] == "1"
    long_ago = timezone.now() - timedelta(seconds=ABANDONED_AFTER_S + 1)
    IdempotencyKey.objects.update(created_at=long_ago)
    assert api.post("/api/v1/projects/", {"name": "Once"}, **KEY).status_code == 201


def test_a_proxys_request_id_is_kept_and_a_strange_one_replaced(api_as: ApiAs) -> None:
    assert api_as().get("/api/v1/me/", HTTP_X_REQUEST_ID="abc-12345")["X-Request-ID"] == "abc-12345"
    assert api_as().get("/api/v1/me/", HTTP_X_REQUEST_ID="x\r\ny: z")["X-Request-ID"] != "x\r\ny: z"


def test_lists_come_in_cursor_pages(cast: Cast, api_as: ApiAs) -> None:
    api = api_as(cast.lead)
    for number in range(3):
        api.post("/api/v1/projects/", {"name": f"P{number}"})
    first = api.get("/api/v1/projects/?page_size=2").json()
    second = api.get(first["next"]).json()
    names = [row["name"] for row in first["results"] + second["results"]]
    assert len(names) == len(set(names)) == 4
    assert second["next"] is None
