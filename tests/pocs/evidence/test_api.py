"""Evidence over REST: the cast, tokens, conditional writes, files, the rows of the review method."""

from collections.abc import Callable
from typing import Any

import pytest
from rest_framework.test import APIClient

from pocs.evidence import services
from pocs.evidence.models import Evidence, EvidenceRevision
from pocs.reviews import database_guards
from pocs.runs.models import Run
from tests.factories import Cast, make_ci_token, make_run
from tests.pocs.evidence.conftest import upload

Make = Callable[..., Any]
As = Callable[..., APIClient]
BASE = "/api/v1"


@pytest.fixture
def token_client(cast: Cast, api_as: As) -> Callable[..., APIClient]:
    """A CI token of the project, sponsored by the lead unless told otherwise."""

    def make(*scopes: str, sponsor: Any = None) -> APIClient:
        _, plaintext = make_ci_token(cast.project, sponsor=sponsor or cast.lead, scopes=scopes)
        return api_as(token=plaintext)

    return make


def collection(cast: Cast) -> str:
    return f"{BASE}/projects/{cast.project.pk}/evidence/"


def pointers(response: Any) -> list[str]:
    return [error["pointer"] for error in response.json()["errors"]]


def test_the_list_is_scoped(cast: Cast, api_as: As, reviewed: Make, token_client: As) -> None:
    revision = reviewed()
    (row,) = api_as(cast.viewer).get(collection(cast)).json()["results"]
    assert (row["type"], row["newest"]["state"], row["current"]["id"]) == (
        "retrospective",
        "reviewed",
        revision.pk,
    )
    assert api_as(cast.viewer).get(collection(cast), {"type": "runtime"}).json()["results"] == []
    assert token_client("read").get(collection(cast)).status_code == 200
    assert token_client("evidence:write").get(collection(cast)).status_code == 200
    assert token_client("runs:write").get(collection(cast)).status_code == 403
    for person in (cast.outsider, cast.bystander):
        assert api_as(person).get(collection(cast)).status_code == 404
    assert api_as().get(collection(cast)).status_code == 401


def test_lists_do_not_ask_once_per_row(
    cast: Cast, api_as: As, make_evidence: Make, django_assert_max_num_queries: Any
) -> None:
    for _ in range(5):
        make_evidence()
    client = api_as(cast.viewer)
    with django_assert_max_num_queries(12):
        assert len(client.get(collection(cast)).json()["results"]) == 5


def test_a_token_creates_edits_and_submits_but_never_reviews(
    cast: Cast, run: Run, api_as: As, token_client: As, body_of: Make
) -> None:
    client = token_client("read", "evidence:write")
    body = body_of("runtime")
    created = client.post(
        collection(cast),
        {"type": "runtime", "title": "Nightly", "body": body | {"errors": ""}, "runs": [run.pk]},
    )
    assert created.status_code == 201
    assert created["ETag"] == '"1"'
    evidence = Evidence.objects.get()
    assert created["Location"] == f"{BASE}/evidence/{evidence.pk}/"
    revision = evidence.revisions.get()
    assert revision.created_by == cast.lead
    assert revision.token is not None

    refused = client.post(f"{BASE}/revisions/{revision.pk}/submit/")
    assert refused.status_code == 400
    assert pointers(refused) == ["/body/errors"]
    edited = client.post(
        f"{BASE}/evidence/{evidence.pk}/revisions/", {"body": body}, HTTP_IF_MATCH=created["ETag"]
    )
    assert edited.status_code == 200  # the draft, in place
    assert (edited["ETag"], edited.json()["runs"]) == ('"2"', [run.pk])
    assert client.post(f"{BASE}/revisions/{revision.pk}/submit/").json()["state"] == "submitted"

    assert client.post(f"{BASE}/revisions/{revision.pk}/review/").status_code == 403
    returned = client.post(f"{BASE}/revisions/{revision.pk}/return/", {"reason": "No."})
    assert returned.status_code == 403
    # the sponsor is as much a contributor as the token
    by_sponsor = api_as(cast.lead).post(f"{BASE}/revisions/{revision.pk}/review/")
    assert by_sponsor.status_code == 403
    assert "which you sponsor" in by_sponsor.json()["detail"]
    by_other = api_as(cast.reviewer).post(f"{BASE}/revisions/{revision.pk}/review/", {"note": "Good."})
    assert by_other.status_code == 200
    assert by_other.json()["reviewed_by"]["id"] == cast.reviewer.pk


def test_a_token_without_the_scope_does_not_write(cast: Cast, token_client: As, body_of: Make) -> None:
    data = {"type": "retrospective", "title": "x", "body": {}}
    assert token_client("read").post(collection(cast), data).status_code == 403
    assert token_client("runs:write").post(collection(cast), data).status_code == 403
    assert not Evidence.objects.exists()


def test_a_token_of_another_project_finds_nothing(cast: Cast, api_as: As, make_evidence: Make) -> None:
    evidence = make_evidence()
    foreign = cast.outsider.project_roles.get().project
    _, plaintext = make_ci_token(foreign, sponsor=cast.outsider, scopes=("read", "evidence:write"))
    client = api_as(token=plaintext)
    assert client.get(f"{BASE}/evidence/{evidence.pk}/").status_code == 404
    assert client.post(collection(cast), {"type": "runtime", "title": "x", "body": {}}).status_code == 404


def test_roles_decide_who_writes(cast: Cast, api_as: As, submitted: Make) -> None:
    revision = submitted()
    data = {"type": "retrospective", "title": "x", "body": {}}
    for person, status in ((cast.viewer, 403), (cast.reviewer, 403), (cast.outsider, 404)):
        assert api_as(person).post(collection(cast), data).status_code == status
    for person, status in ((cast.viewer, 403), (cast.business, 403), (cast.outsider, 404)):
        assert api_as(person).post(f"{BASE}/revisions/{revision.pk}/review/").status_code == status
    assert api_as(cast.lead).post(collection(cast), data).status_code == 201


def test_wrong_input_is_pointed_at(cast: Cast, run: Run, api_as: As) -> None:
    client = api_as(cast.contributor)
    foreign = make_run(cast.outsider.project_roles.get().project)
    for data, expected in (
        ({"type": "gossip", "title": "x", "body": {}}, ["/type"]),
        ({"title": "x"}, ["/body", "/type"]),
        ({"type": "runtime", "title": "x", "body": {}, "state": "frozen"}, ["/state"]),
        ({"type": "runtime", "title": "x", "body": {"latency": 3}}, ["/body/latency"]),
        ({"type": "runtime", "title": "x", "body": "text"}, ["/body"]),
        ({"type": "runtime", "title": "x", "body": {}, "runs": [run.pk, foreign.pk]}, ["/runs/1"]),
        ({"type": "runtime", "title": "x", "body": {}, "runs": ["a"]}, ["/runs/0"]),
    ):
        response = client.post(collection(cast), data)
        assert response.status_code == 400, data
        assert sorted(pointers(response)) == expected
    assert not Evidence.objects.exists()


def test_writes_are_conditional(cast: Cast, api_as: As, make_evidence: Make) -> None:
    evidence = make_evidence()
    client, url = api_as(cast.contributor), f"{BASE}/evidence/{evidence.pk}/revisions/"
    assert client.post(url, {"title": "New"}).status_code == 428
    assert client.post(url, {"title": "New"}, HTTP_IF_MATCH='"1"').status_code == 200
    stale = client.post(url, {"title": "Other"}, HTTP_IF_MATCH='"1"')
    assert stale.status_code == 412
    assert stale.json()["current"] == 2
    evidence.refresh_from_db()
    assert evidence.title == "New"
    kept = evidence.revisions.get()
    assert kept.body["conclusion"] == "Usable for the help desk."  # what was not sent stays


def test_an_edit_of_a_submitted_revision_makes_the_next(cast: Cast, api_as: As, submitted: Make) -> None:
    revision = submitted()
    url = f"{BASE}/evidence/{revision.evidence_id}/revisions/"
    client = api_as(cast.contributor)
    response = client.post(url, {"body": revision.body | {"conclusion": "Wider."}}, HTTP_IF_MATCH='"2"')
    assert response.status_code == 201
    assert (response.json()["number"], response.json()["state"]) == (2, "draft")
    numbers = [row["number"] for row in client.get(url).json()["results"]]
    assert numbers == [2, 1]
    nested = f"{url}{response.json()['id']}/"
    assert client.get(nested).json()["body"]["conclusion"] == "Wider."


def test_a_repeated_post_creates_once(cast: Cast, api_as: As) -> None:
    client = api_as(cast.contributor)
    data = {"type": "retrospective", "title": "Once", "body": {}}
    first = client.post(collection(cast), data, HTTP_IDEMPOTENCY_KEY="key-1")
    second = client.post(collection(cast), data, HTTP_IDEMPOTENCY_KEY="key-1")
    assert (first.status_code, second.status_code) == (201, 201)
    assert first.json()["id"] == second.json()["id"]
    assert Evidence.objects.count() == 1


def test_a_return_needs_its_reason(cast: Cast, api_as: As, submitted: Make) -> None:
    url = f"{BASE}/revisions/{submitted().pk}/return/"
    client = api_as(cast.reviewer)
    for data in ({}, {"reason": ""}, {"reason": "  "}):
        response = client.post(url, data)
        assert response.status_code == 400
        assert pointers(response) == ["/reason"]
    assert client.post(url, {"reason": "Why?"}).json()["review_note"] == "Why?"


def test_a_transition_in_the_wrong_state_is_a_conflict(cast: Cast, api_as: As, reviewed: Make) -> None:
    revision = reviewed()
    assert api_as(cast.contributor).post(f"{BASE}/revisions/{revision.pk}/submit/").status_code == 409
    assert api_as(cast.reviewer).post(f"{BASE}/revisions/{revision.pk}/review/").status_code == 409


def test_changed_content_is_not_read(cast: Cast, api_as: As, reviewed: Make) -> None:
    revision = reviewed()
    database_guards.remove()  # it refuses what is tried here
    EvidenceRevision.objects.filter(pk=revision.pk).update(body=revision.body | {"conclusion": "Forged."})
    client = api_as(cast.viewer)
    for url in (f"{BASE}/revisions/{revision.pk}/", f"{BASE}/revisions/{revision.pk}/rows/"):
        response = client.get(url)
        assert response.status_code == 409
        assert response.json()["type"] == "/problems/content-mismatch"
        assert "Forged." not in response.content.decode()


def test_the_review_method_answers_with_rows(cast: Cast, api_as: As, submitted: Make) -> None:
    revision = submitted("runtime")
    answer = api_as(cast.reviewer).get(f"{BASE}/revisions/{revision.pk}/rows/").json()
    assert (answer["type"], answer["passes"], answer["missing"]) == ("runtime", True, [])
    assert answer["rows"][0]["tenant"] == "tenant-a"
    assert answer["rows"][0]["ttft_ms"]["p50"] == 42.0
    assert api_as(cast.outsider).get(f"{BASE}/revisions/{revision.pk}/rows/").status_code == 404
    configuration = submitted("configuration")
    rows = api_as(cast.reviewer).get(f"{BASE}/revisions/{configuration.pk}/rows/").json()["rows"]
    assert rows[0]["versions"] == {"torch": "2"}


# --- files ------------------------------------------------------------------------------------


def attach(client: APIClient, revision: EvidenceRevision, name: str, content: bytes) -> Any:
    url = f"{BASE}/revisions/{revision.pk}/attachments/"
    return client.post(url, {"file": upload(name, content)}, format="multipart")


def test_files_over_both_routes(cast: Cast, api_as: As, make_evidence: Make, token_client: As) -> None:
    revision = make_evidence().revisions.get()
    client = token_client("read", "evidence:write")
    created = attach(client, revision, "server.log", b"error 12\n")
    assert created.status_code == 201
    file = created.json()
    assert (file["size_bytes"], file["uploaded_by"]["id"]) == (9, cast.lead.pk)
    listed = client.get(f"{BASE}/revisions/{revision.pk}/attachments/").json()["results"]
    assert [row["id"] for row in listed] == [file["id"]]
    for url in (
        f"{BASE}/attachments/{file['id']}/",
        f"{BASE}/revisions/{revision.pk}/attachments/{file['id']}/",
    ):
        assert client.get(url).json() == file
        content = api_as(cast.viewer).get(f"{url}content/")
        assert b"".join(content.streaming_content) == b"error 12\n"
        assert content["X-Content-Type-Options"] == "nosniff"
        assert content["Content-Disposition"].startswith("attachment;")
        assert api_as(cast.outsider).get(url).status_code == 404
        assert api_as(cast.outsider).get(f"{url}content/").status_code == 404
        assert api_as(cast.outsider).delete(url).status_code == 404
        assert api_as(cast.viewer).delete(url).status_code == 403
    # the token's sponsor now has a hand in it
    services.revision_submit(actor=cast.contributor.as_actor(), revision=revision)
    assert api_as(cast.lead).post(f"{BASE}/revisions/{revision.pk}/review/").status_code == 403


def test_a_foreign_file_below_an_own_revision_is_not_found(
    cast: Cast, api_as: As, make_evidence: Make
) -> None:
    own = make_evidence(uploads=[upload()]).revisions.get()
    project = cast.outsider.project_roles.get().project
    foreign = services.evidence_create(
        actor=cast.outsider.as_actor(),
        project=project,
        type="retrospective",
        title="Foreign",
        body={},
        uploads=[upload()],
    ).revisions.get()
    file = foreign.attachments.get()
    client = api_as(cast.lead)
    for url in (
        f"{BASE}/attachments/{file.pk}/",
        f"{BASE}/revisions/{own.pk}/attachments/{file.pk}/",
        f"{BASE}/revisions/{foreign.pk}/attachments/{file.pk}/",
        f"{BASE}/revisions/{foreign.pk}/attachments/{own.attachments.get().pk}/",
    ):
        assert client.get(url).status_code == 404
        assert client.get(f"{url}content/").status_code == 404
        assert client.delete(url).status_code == 404
    assert client.get(f"{BASE}/evidence/{own.evidence_id}/revisions/{foreign.pk}/").status_code == 404
    assert foreign.attachments.exists()


def test_files_are_judged(cast: Cast, api_as: As, make_evidence: Make, settings: Any) -> None:
    settings.PHASEGATE_ATTACHMENT_MAX_BYTES = 1000
    revision = make_evidence().revisions.get()
    client = api_as(cast.contributor)
    for name, content, code in (
        ("big.log", b"x" * 1001, "too_large"),
        ("huge.log", b"x" * 2_000_000, "too_large"),
        ("page.html", b"<html>", "content_type"),
        ("empty.txt", b"", "empty"),
    ):
        response = attach(client, revision, name, content)
        assert response.status_code == 400, name
        (error,) = response.json()["errors"]
        assert (error["pointer"], error["code"]) == ("/file", code)
    missing = client.post(f"{BASE}/revisions/{revision.pk}/attachments/", {}, format="multipart")
    assert pointers(missing) == ["/file"]
    assert not revision.attachments.exists()


def test_files_of_a_submitted_revision_stay(cast: Cast, api_as: As, submitted: Make) -> None:
    revision = submitted(uploads=[upload()])
    client = api_as(cast.contributor)
    assert attach(client, revision, "more.log", b"line\n").status_code == 409
    assert client.delete(f"{BASE}/attachments/{revision.attachments.get().pk}/").status_code == 409
    assert revision.attachments.count() == 1


def test_a_file_is_taken_off_a_draft(cast: Cast, api_as: As, make_evidence: Make) -> None:
    revision = make_evidence(uploads=[upload()]).revisions.get()
    file = revision.attachments.get()
    assert api_as(cast.lead).delete(f"{BASE}/attachments/{file.pk}/").status_code == 204
    assert not revision.attachments.exists()
    services.revision_verify(EvidenceRevision.objects.get(pk=revision.pk))
