"""Bodies of the API that hold what no database holds: refused by pointer, never a failure of the server."""

from collections.abc import Callable

import pytest
from rest_framework.test import APIClient

from pocs.projects.models import Project
from pocs.runs.models import Run
from tests.factories import Cast

Clients = Callable[..., APIClient]


def post(
    client: APIClient, path: str, body: bytes, content_type: str = "application/json"
) -> tuple[int, dict]:
    answer = client.post(path, data=body, content_type=content_type)
    assert answer["Content-Type"].startswith("application/problem+json")
    return answer.status_code, answer.json()


@pytest.mark.parametrize(
    ("body", "named"),
    [
        (b'{"name": "half \\ud800"}', ("/name", "characters")),
        (b'{"name": "nul \\u0000"}', ("/name", "characters")),
        (b'{"na\\udfff": "x"}', ("/na\N{REPLACEMENT CHARACTER}", "characters")),
        (b'{"a": {"b": [1, ' + b"9" * 400 + b"]}}", ("/a/b/1", "too_large")),
    ],
)
@pytest.mark.parametrize("path", ["/api/v1/projects/", "/api/v1/projects/{pk}/runs/"])
def test_what_cannot_be_stored_is_named(
    cast: Cast, api_as: Clients, path: str, body: bytes, named: tuple[str, str]
) -> None:
    status, problem = post(api_as(cast.lead), path.format(pk=cast.project.pk), body)
    assert status == 400
    assert [(error["pointer"], error["code"]) for error in problem["errors"]] == [named]
    assert not Run.objects.exists()
    assert Project.objects.count() == 2  # the cast's and the outsider's


@pytest.mark.parametrize(
    ("body", "content_type"),
    [
        (b"[" * 100_000, "application/json"),
        (b"\xff\xfe{", "application/json"),
        (b'{"a": ' + b"9" * 5000 + b"}", "application/json"),
    ],
)
@pytest.mark.parametrize("path", ["/api/v1/projects/", "/api/v1/projects/{pk}/runs/"])
def test_what_is_no_json_is_malformed(
    cast: Cast, api_as: Clients, path: str, body: bytes, content_type: str
) -> None:
    status, problem = post(api_as(cast.lead), path.format(pk=cast.project.pk), body, content_type)
    assert (status, problem["type"]) == (400, "/problems/malformed")
