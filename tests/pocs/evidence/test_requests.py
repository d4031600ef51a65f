"""Asking a person for a review, returning with a reason, submitting again."""

from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from rest_framework.test import APIClient

from pocs.common.errors import Conflict, InvalidInput, NotPermitted
from pocs.evidence import services
from pocs.evidence.models import EvidenceRevision, ReviewRequest
from pocs.evidence.selectors import possible_reviewers, waiting_for_review
from pocs.people.models import User
from tests.factories import Cast
from tests.pocs.evidence.conftest import upload
from tests.pocs.evidence.test_services import edit

Make = Callable[..., Any]
As = Callable[[User], Client]


def ask(cast: Cast, revision: EvidenceRevision, person: User, **given: Any) -> ReviewRequest:
    arguments: dict[str, Any] = {"actor": cast.contributor.as_actor()}
    return services.review_request(revision=revision, person=person, **(arguments | given))


def test_a_request_is_answered_by_the_review(cast: Cast, submitted: Make) -> None:
    revision = submitted()
    request = ask(cast, revision, cast.reviewer, note="The figures, please.")
    services.revision_review(actor=cast.lead.as_actor(), revision=revision)
    request.refresh_from_db()
    assert request.state == "answered"


def test_what_i_was_asked_for_stands_first(cast: Cast, submitted: Make) -> None:
    first, second = submitted(), submitted(title="The other one")
    assert waiting_for_review(cast.reviewer.as_actor()) == [first, second]
    ask(cast, second, cast.reviewer)
    assert waiting_for_review(cast.reviewer.as_actor()) == [second, first]
    assert waiting_for_review(cast.lead.as_actor()) == [first, second]


def test_only_who_may_review_is_asked(cast: Cast, submitted: Make) -> None:
    revision = submitted()
    assert set(possible_reviewers(revision.evidence)) == {cast.reviewer, cast.lead}
    for person in (cast.contributor, cast.viewer, cast.outsider):
        with pytest.raises(InvalidInput) as refusal:
            ask(cast, revision, person)
        assert refusal.value.errors[0].pointer == "/person"
    with pytest.raises(NotPermitted):
        ask(cast, revision, cast.reviewer, actor=cast.viewer.as_actor())
    ask(cast, revision, cast.reviewer)
    with pytest.raises(Conflict):
        ask(cast, revision, cast.reviewer)


def test_a_draft_is_not_asked_for(cast: Cast, make_evidence: Make) -> None:
    with pytest.raises(Conflict):
        ask(cast, make_evidence().revisions.get(), cast.reviewer)


def test_a_request_is_taken_back_by_either_side(cast: Cast, submitted: Make) -> None:
    revision = submitted()
    request = ask(cast, revision, cast.reviewer)
    with pytest.raises(NotPermitted):
        services.review_request_withdraw(actor=cast.viewer.as_actor(), request=request)
    assert (
        services.review_request_withdraw(actor=cast.reviewer.as_actor(), request=request).state == "withdrawn"
    )
    with pytest.raises(Conflict):
        services.review_request_withdraw(actor=cast.contributor.as_actor(), request=request)
    ask(cast, revision, cast.reviewer)  # and may be asked again


def test_a_returned_revision_comes_back_to_who_returned_it(
    cast: Cast, submitted: Make, body_of: Make
) -> None:
    revision = submitted()
    services.revision_return(actor=cast.reviewer.as_actor(), revision=revision, reason="Which contexts?")
    body = body_of("retrospective") | {"degradation": "Contexts above 4,000 tokens queue."}
    draft = edit(cast, revision.evidence, body=body, runs=[])
    again = services.revision_submit(
        actor=cast.contributor.as_actor(), revision=draft, note="The lengths are in it now."
    )
    assert [request.person for request in again.review_requests.all()] == [cast.reviewer]
    assert again.submit_note == "The lengths are in it now."
    # the note is no content: the digest covers what is reviewed
    services.revision_verify(again)


@pytest.mark.parametrize("reason", ["", "   ", None])
def test_row_14_a_return_without_a_reason_is_refused(
    cast: Cast, submitted: Make, page_as: As, api_as: Callable[..., APIClient], reason: str | None
) -> None:
    revision = submitted()
    data = {} if reason is None else {"reason": reason}
    page = page_as(cast.reviewer).post(reverse("evidence:return", args=[revision.pk]), data)
    assert page.status_code == 400
    answer = api_as(cast.reviewer).post(reverse("api-revision-return", args=[revision.pk]), data)
    assert answer.status_code == 400
    assert answer.json()["errors"][0]["pointer"] == "/reason"
    revision.refresh_from_db()
    assert revision.state == "submitted"


def test_row_15_a_superuser_reviews_for_nobody(
    cast: Cast, submitted: Make, page_as: As, api_as: Callable[..., APIClient]
) -> None:
    revision = submitted()
    User.objects.filter(pk=cast.viewer.pk).update(is_superuser=True, is_staff=True)
    boss = User.objects.get(pk=cast.viewer.pk)
    assert page_as(boss).post(reverse("evidence:review", args=[revision.pk]), {"note": ""}).status_code == 403
    assert api_as(boss).post(reverse("api-revision-review", args=[revision.pk]), {}).status_code == 403


def test_the_pages_and_the_api(
    cast: Cast, submitted: Make, page_as: As, api_as: Callable[..., APIClient]
) -> None:
    revision = submitted()
    url = reverse("evidence:review_request", args=[revision.pk])
    client = page_as(cast.contributor)
    assert client.post(url, {"person": ""}).status_code == 400
    assert client.post(url, {"person": cast.reviewer.pk, "note": "Please"}).status_code == 302
    page = page_as(cast.reviewer).get(reverse("evidence:detail", args=[revision.evidence_id]))
    assert "asks you to review this revision" in page.content.decode()
    api = api_as(cast.contributor)
    listed = reverse("api-review-requests", args=[revision.pk])
    assert [row["person"]["id"] for row in api.get(listed).json()] == [cast.reviewer.pk]
    assert api.post(listed, {"person": cast.reviewer.pk}).status_code == 409
    assert api.post(listed, {"person": cast.outsider.pk}).status_code == 400
    assert api.post(listed, {"person": cast.lead.pk}).status_code == 201
    request = ReviewRequest.objects.get(person=cast.reviewer)
    withdraw = reverse("api-review-request-withdraw", args=[request.pk])
    assert api_as(cast.outsider).post(withdraw).status_code == 404
    assert api.post(withdraw).json()["state"] == "withdrawn"
    other = ReviewRequest.objects.get(person=cast.lead)
    assert client.post(reverse("evidence:review_request_withdraw", args=[other.pk])).status_code == 302


def test_the_same_file_twice_is_refused(cast: Cast, make_evidence: Make) -> None:
    evidence = make_evidence(uploads=[upload()])
    revision = evidence.revisions.get()
    actor = cast.contributor.as_actor()
    with pytest.raises(InvalidInput, match="same content") as refusal:
        services.attachment_add(actor=actor, revision=revision, upload=upload("other.txt"))
    assert refusal.value.errors[0].code == "duplicate"
    with pytest.raises(InvalidInput) as taken:
        services.attachment_add(actor=actor, revision=revision, upload=upload(content=b"other\n"))
    assert taken.value.errors[0].code == "name_taken"
    assert revision.attachments.count() == 1


def test_the_same_file_elsewhere_is_told(cast: Cast, make_evidence: Make, page_as: As) -> None:
    make_evidence(uploads=[upload("first.txt")], title="The first place")
    evidence = make_evidence(uploads=[upload("again.txt")])
    page = page_as(cast.viewer).get(reverse("evidence:detail", args=[evidence.pk])).content.decode()
    assert "same content as in" in page
    assert "The first place" in page
