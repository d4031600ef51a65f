"""Threads on lines of evidence: anchored, carried while the line exists, over pages and API alike."""

from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from rest_framework.test import APIClient

from pocs.common import audit
from pocs.common.errors import Conflict, InvalidInput, NotPermitted
from pocs.evidence import services
from pocs.evidence.discussion import discussion_of
from pocs.evidence.models import Evidence, EvidenceRevision, Thread
from pocs.people.models import User
from pocs.projects.choices import ProjectState
from tests.factories import Cast, make_ci_token
from tests.pocs.evidence.test_services import edit

Make = Callable[..., Any]
As = Callable[[User], Client]

LINES = "Long contexts queue.\nShort ones do not."


def opened(cast: Cast, revision: EvidenceRevision, path: str = "degradation", **given: Any) -> Thread:
    arguments: dict[str, Any] = {"actor": cast.viewer.as_actor(), "text": "Which contexts?"}
    return services.thread_open(revision=revision, path=path, **(arguments | given))


def test_a_thread_is_opened_answered_resolved_and_opened_again(cast: Cast, submitted: Make) -> None:
    revision = submitted()
    thread = opened(cast, revision)
    services.thread_comment(actor=cast.contributor.as_actor(), thread=thread, text="Above 4,000 tokens.")
    services.thread_resolve(actor=cast.contributor.as_actor(), thread=thread)
    with pytest.raises(Conflict):
        services.thread_comment(actor=cast.viewer.as_actor(), thread=thread, text="And why?")
    services.thread_reopen(actor=cast.viewer.as_actor(), thread=thread)
    (placed,) = discussion_of(revision).by_field["degradation"]
    assert [comment.text for comment in placed.comments] == ["Which contexts?", "Above 4,000 tokens."]
    assert placed.is_open
    assert audit.verify(cast.organisation.pk) == []


def test_a_line_that_stays_carries_its_thread(cast: Cast, body_of: Make, submitted: Make) -> None:
    body = body_of("retrospective") | {"degradation": LINES}
    revision = submitted(body=body)
    whole = opened(cast, revision)
    first = opened(cast, revision, quote="Long contexts queue.")
    second = opened(cast, revision, quote="Short ones do not.")
    changed = body | {"degradation": "Long contexts queue.\nShort ones wait for them."}
    found = discussion_of(edit(cast, revision.evidence, body=changed, runs=[]))
    placed = {item.thread.pk: item for item in found.by_field["degradation"]}
    assert set(placed) == {whole.pk, first.pk}
    assert (placed[whole.pk].changed, placed[first.pk].changed) == (True, False)
    assert [item.thread.pk for item in found.gone] == [second.pk]


def test_a_moved_row_keeps_its_thread(cast: Cast, body_of: Make, submitted: Make) -> None:
    body = body_of("responsibility")
    revision = submitted("responsibility", body=body)
    thread = opened(cast, revision, "alert/Subject of alert/alert_route", text="Is the channel staffed?")
    moved = {"rows": body["rows"][::-1]}
    found = discussion_of(edit(cast, revision.evidence, body=moved, runs=[]))
    assert [item.thread for item in found.by_field["rows"]] == [thread]


@pytest.mark.parametrize(
    ("given", "pointer"),
    [
        ({"path": "no_such_field"}, "/path"),
        ({"quote": "Not a line of it."}, "/quote"),
        ({"text": "  "}, "/text"),
        ({"text": "x" * 5001}, "/text"),
    ],
)
def test_what_is_no_line_is_refused(cast: Cast, submitted: Make, given: dict[str, str], pointer: str) -> None:
    with pytest.raises(InvalidInput) as refusal:
        opened(cast, submitted(), **given)
    assert refusal.value.errors[0].pointer == pointer
    assert not Thread.objects.exists()


def test_who_may_comment(cast: Cast, submitted: Make) -> None:
    revision = submitted()
    token, _plaintext = make_ci_token(cast.project, sponsor=cast.contributor, scopes=("read",))
    for actor in (cast.auditor.as_actor(), token.as_actor()):
        with pytest.raises(NotPermitted):
            opened(cast, revision, actor=actor)
    thread = opened(cast, revision)
    with pytest.raises(NotPermitted):
        services.thread_resolve(actor=cast.business.as_actor(), thread=thread)
    cast.project.state = ProjectState.CLOSED
    cast.project.save()
    with pytest.raises(Conflict):
        opened(cast, EvidenceRevision.objects.get(pk=revision.pk))


def test_commenting_makes_nobody_a_contributor(cast: Cast, submitted: Make) -> None:
    revision = submitted()
    opened(cast, revision, actor=cast.reviewer.as_actor())
    assert services.revision_review(actor=cast.reviewer.as_actor(), revision=revision).state == "reviewed"


def test_the_pages(cast: Cast, page_as: As, submitted: Make, body_of: Make) -> None:
    revision = submitted(body=body_of("retrospective") | {"degradation": LINES})
    client = page_as(cast.viewer)
    url = reverse("evidence:thread_open", args=[revision.pk])
    assert client.get(url, {"field": "nothing"}).status_code == 404
    form = client.get(url, {"field": "degradation"}).content.decode()
    assert "Short ones do not." in form
    refused = client.post(f"{url}?field=degradation", {"line": "0.1", "text": ""})
    assert refused.status_code == 400
    answer = client.post(f"{url}?field=degradation", {"line": "0.1", "text": "Really?"})
    thread = Thread.objects.get()
    assert thread.quote == "Short ones do not."
    assert answer["Location"].endswith(f"?revision=1#thread-{thread.pk}")
    detail = reverse("evidence:detail", args=[revision.evidence_id])
    assert "Really?" in client.get(detail).content.decode()
    comment = reverse("evidence:thread_comment", args=[thread.pk])
    too_long = client.post(comment, {"text": "y" * 5001, "revision": "1"})
    assert too_long.status_code == 400
    assert "y" * 5001 in too_long.content.decode()
    assert client.post(comment, {"text": "Answer.", "revision": "1"}).status_code == 302
    assert client.post(reverse("evidence:thread_state", args=[thread.pk, "resolve"])).status_code == 302
    thread.refresh_from_db()
    assert thread.state == "resolved"
    assert client.post(reverse("evidence:thread_state", args=[thread.pk, "burn"])).status_code == 404
    for person in (cast.outsider, cast.bystander):
        assert page_as(person).post(comment, {"text": "Hello."}).status_code == 404


def test_the_api(cast: Cast, api_as: Callable[..., APIClient], submitted: Make) -> None:
    revision = submitted()
    client = api_as(cast.viewer)
    lines = client.get(reverse("api-revision-lines", args=[revision.pk])).json()
    assert "degradation" in [line["path"] for line in lines]
    url = reverse("api-revision-threads", args=[revision.pk])
    created = client.post(url, {"path": "degradation", "text": "Which?"})
    assert created.status_code == 201
    assert client.post(url, {"path": "nothing", "text": "?"}).json()["errors"][0]["pointer"] == "/path"
    assert client.post(url, {"path": "title", "text": "?", "state": "x"}).status_code == 400
    thread = created.json()["id"]
    said = client.post(reverse("api-thread-comments", args=[thread]), {"text": "More."})
    assert said.status_code == 201
    assert client.post(reverse("api-thread-resolve", args=[thread])).json()["state"] == "resolved"
    assert client.post(reverse("api-thread-resolve", args=[thread])).status_code == 409
    assert client.post(reverse("api-thread-reopen", args=[thread])).json()["state"] == "open"
    (row,) = client.get(url).json()
    assert (row["present"], row["changed"], len(row["comments"])) == (True, False, 2)
    foreign = api_as(cast.outsider)
    assert foreign.get(reverse("api-thread", args=[thread])).status_code == 404
    assert foreign.post(url, {"path": "title", "text": "?"}).status_code == 404
    assert api_as(cast.auditor).post(url, {"path": "title", "text": "?"}).status_code == 403


def test_a_thread_changed_past_the_services_is_found(cast: Cast, submitted: Make) -> None:
    """16a: a change that never reached the audit log."""
    thread = opened(cast, submitted())
    Thread.objects.filter(pk=thread.pk).update(state="resolved")
    assert [problem.code for problem in audit.verify(cast.organisation.pk)] == ["state"]


def test_16a_a_state_set_past_the_chain_is_reported(cast: Cast, submitted: Make) -> None:
    revision = submitted()
    EvidenceRevision.objects.filter(pk=revision.pk).update(state="reviewed")
    (problem,) = audit.verify(cast.organisation.pk)
    assert problem.code == "state"
    assert "reviewed" in problem.text


def test_evidence_has_every_line_once(cast: Cast, make_evidence: Make) -> None:
    from pocs.evidence.lines import lines_of

    for kind in ("configuration", "runtime", "responsibility", "retrospective"):
        evidence: Evidence = make_evidence(kind)
        lines = lines_of(evidence.revisions.get())
        assert "title" in lines
        assert all(path == line.path for path, line in lines.items())
