"""Rows of the governance cases that evidence answers for, over pages and API alike."""

from collections.abc import Callable
from typing import Any

from django.test import Client
from django.urls import reverse
from rest_framework.test import APIClient

from pocs.common import audit
from pocs.evidence import services
from pocs.evidence.models import EvidenceRevision
from pocs.people.models import User
from pocs.people.roles import ProjectRole
from pocs.projects.models import ProjectMember
from tests.factories import Cast, make_ci_token
from tests.pocs.evidence.conftest import upload
from tests.pocs.evidence.test_pages import typed

Make = Callable[..., Any]
As = Callable[[User], Client]
ApiAs = Callable[..., APIClient]


def test_row_2_the_sponsor_of_a_token_does_not_review_what_it_wrote(
    cast: Cast, page_as: As, api_as: ApiAs, body_of: Make
) -> None:
    ProjectMember.objects.create(project=cast.project, user=cast.reviewer, role=ProjectRole.CONTRIBUTOR)
    token = make_ci_token(cast.project, sponsor=cast.reviewer, scopes=("read", "evidence:write"))[1]
    machine = api_as(token=token)
    made = machine.post(
        reverse("api-project-evidence", args=[cast.project.pk]),
        {"type": "retrospective", "title": "By CI", "body": body_of("retrospective")},
    ).json()
    revision = made["newest"]["id"]
    assert machine.post(reverse("api-revision-submit", args=[revision])).status_code == 200
    review = {"note": "Fine."}
    page = page_as(cast.reviewer).post(reverse("evidence:review", args=[revision]), review)
    assert page.status_code == 403
    assert "which you sponsor" in page.content.decode()
    person = api_as(cast.reviewer).post(reverse("api-revision-review", args=[revision]), review)
    assert person.status_code == 403
    assert machine.post(reverse("api-revision-review", args=[revision]), review).status_code == 403
    assert api_as(cast.lead).post(reverse("api-revision-review", args=[revision]), review).status_code == 200


def test_row_1_restored_bytes_are_another_revision(cast: Cast, reviewed: Make, body_of: Make) -> None:
    revision = reviewed()
    actor = cast.contributor.as_actor()
    for conclusion in ("Something else.", revision.body["conclusion"]):
        evidence = type(revision.evidence).objects.get(pk=revision.evidence_id)
        body = body_of("retrospective") | {"conclusion": conclusion}
        restored = services.revision_edit(
            actor=actor, evidence=evidence, version=evidence.version, body=body, runs=[]
        )
        if restored.state == "draft" and conclusion == "Something else.":
            services.revision_submit(actor=actor, revision=restored)
    assert restored.content_sha256 == revision.content_sha256
    assert (restored.number, restored.state) == (3, "draft")
    assert EvidenceRevision.objects.get(pk=revision.pk).state == "reviewed"


def test_row_9_a_foreign_file_is_404_on_every_route(
    cast: Cast, page_as: As, api_as: ApiAs, make_evidence: Make
) -> None:
    revision = make_evidence(uploads=[upload()]).revisions.get()
    other = make_evidence(title="Another").revisions.get()
    file = revision.attachments.get()
    pages = [
        reverse("evidence:download", args=[file.pk]),
        reverse("evidence:revision_download", args=[revision.pk, file.pk]),
    ]
    routes = [
        reverse("api-attachment", args=[file.pk]),
        reverse("api-attachment-content", args=[file.pk]),
        reverse("api-revision-attachment", args=[revision.pk, file.pk]),
        reverse("api-revision-attachment-content", args=[revision.pk, file.pk]),
    ]
    assert [page_as(cast.outsider).get(url).status_code for url in pages] == [404, 404]
    assert [api_as(cast.outsider).get(url).status_code for url in routes] == [404] * 4
    assert [api_as(cast.outsider).delete(url).status_code for url in (routes[0], routes[2])] == [404, 404]
    # the nested route asks for the file of that revision, also of one's own
    nested = reverse("evidence:revision_download", args=[other.pk, file.pk])
    assert page_as(cast.contributor).get(nested).status_code == 404
    assert page_as(cast.contributor).get(pages[0]).status_code == 200


def test_row_10_the_second_tab_gets_the_conflict_with_a_difference(
    cast: Cast, page_as: As, api_as: ApiAs, make_evidence: Make
) -> None:
    evidence = make_evidence()
    url = reverse("evidence:edit", args=[evidence.pk])
    first, second = page_as(cast.contributor), page_as(cast.lead)
    assert first.post(url, typed(cast, version=1, conclusion="From the first tab.")).status_code == 302
    late = second.post(url, typed(cast, version=1, conclusion="From the second tab."))
    assert late.status_code == 412
    page = late.content.decode()
    assert "From the first tab." in page
    assert "From the second tab." in page
    api = reverse("api-evidence-revisions", args=[evidence.pk])
    body = {"title": "Third"}
    assert api_as(cast.lead).post(api, body, headers={"If-Match": '"1"'}).status_code == 412
    assert api_as(cast.lead).post(api, body).status_code == 428
    evidence.refresh_from_db()
    assert evidence.title == "After the pilot"
    assert audit.verify(cast.organisation.pk) == []


def test_row_7_what_is_not_sent_stays(cast: Cast, api_as: ApiAs, make_evidence: Make) -> None:
    evidence = make_evidence()
    before = evidence.revisions.get().body
    client = api_as(cast.contributor)
    url = reverse("api-evidence-revisions", args=[evidence.pk])
    changed = client.post(url, {"title": "Only the title"}, headers={"If-Match": '"1"'})
    assert (changed.status_code, changed.json()["title"], changed.json()["body"]) == (
        200,
        "Only the title",
        before,
    )
    for field in ("state", "number", "content_sha256", "reviewed_by", "submit_note"):
        answer = client.post(url, {field: "x"}, headers={"If-Match": "*"})
        assert (field, answer.status_code) == (field, 400)
    project = reverse("api-project", args=[cast.project.pk])
    name = client.get(project).json()["name"]
    patched = client.patch(project, {"supplier": "Example Cloud"}, headers={"If-Match": "*"}).json()
    assert (patched["name"], patched["supplier"]) == (name, "Example Cloud")
    for field in ("state", "version", "cloned_from", "template", "created_at"):
        answer = client.patch(project, {field: "x"}, headers={"If-Match": "*"})
        assert (field, answer.status_code) == (field, 400)
