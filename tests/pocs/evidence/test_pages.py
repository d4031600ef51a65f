"""Pages of evidence: the cast, forms that keep what was typed, two tabs, files, who may review."""

import re
from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from pocs.evidence import services
from pocs.evidence.choices import EvidenceType
from pocs.evidence.models import Attachment, Evidence, EvidenceRevision
from pocs.people.models import User
from pocs.reviews import database_guards
from pocs.runs.choices import Validity
from pocs.runs.models import Run
from tests.factories import Cast, make_run
from tests.pocs.evidence.conftest import PNG, upload

Make = Callable[..., Any]
As = Callable[[User], Client]


def text_of(response: Any) -> str:
    return response.content.decode()


def typed(cast: Cast, **given: Any) -> dict[str, Any]:
    """A retrospective as a browser sends it."""
    return {
        "title": "After the pilot",
        "degradation": "Long contexts queue.",
        "rollback_outcome": "Back in two minutes.",
        "next_optimisation": "Chunked prefill.",
        "conclusion": "Usable for the help desk.",
        "owner": cast.contributor.pk,
    } | given


def new_url(cast: Cast, type: str) -> str:
    return reverse("evidence:create", args=[cast.project.pk, type])


# --- the cast ---------------------------------------------------------------------------------


def all_urls(revision: EvidenceRevision) -> list[str]:
    evidence, attachment = revision.evidence, revision.attachments.get()
    return [
        reverse("evidence:list", args=[evidence.project_id]),
        reverse("evidence:detail", args=[evidence.pk]),
        reverse("evidence:difference", args=[evidence.pk]),
        reverse("evidence:download", args=[attachment.pk]),
        reverse("evidence:revision_download", args=[revision.pk, attachment.pk]),
    ]


def test_members_read_outsiders_do_not_find(cast: Cast, page_as: As, reviewed: Make) -> None:
    urls = all_urls(reviewed(uploads=[upload()]))
    for person in (cast.lead, cast.viewer, cast.auditor):
        assert [page_as(person).get(url).status_code for url in urls] == [200] * len(urls)
    for person in (cast.outsider, cast.bystander):
        assert [page_as(person).get(url).status_code for url in urls] == [404] * len(urls)
    assert [Client().get(url).status_code for url in urls] == [302] * len(urls)


def test_writing_is_refused_by_role(cast: Cast, page_as: As, make_evidence: Make) -> None:
    evidence = make_evidence(uploads=[upload()])
    revision = evidence.revisions.get()
    posts = [
        new_url(cast, "retrospective"),
        reverse("evidence:edit", args=[evidence.pk]),
        reverse("evidence:submit", args=[revision.pk]),
        reverse("evidence:attach", args=[revision.pk]),
        reverse("evidence:remove", args=[revision.attachments.get().pk]),
    ]
    for person, status in ((cast.viewer, 403), (cast.reviewer, 403), (cast.outsider, 404)):
        client = page_as(person)
        data = typed(cast, file=upload())
        assert [client.post(url, data | {"file": upload()}).status_code for url in posts] == [status] * 5
    revision.refresh_from_db()
    assert (revision.state, revision.attachments.count()) == ("draft", 1)


def test_a_foreign_file_is_not_found_on_either_route(cast: Cast, page_as: As, make_evidence: Make) -> None:
    mine = make_evidence(uploads=[upload()]).revisions.get()
    foreign_project = cast.outsider.project_roles.get().project
    foreign = services.evidence_create(
        actor=cast.outsider.as_actor(),
        project=foreign_project,
        type="retrospective",
        title="Foreign",
        body={},
        uploads=[upload()],
    ).revisions.get()
    file = foreign.attachments.get()
    client = page_as(cast.lead)
    for url in (
        reverse("evidence:download", args=[file.pk]),
        reverse("evidence:revision_download", args=[mine.pk, file.pk]),
        reverse("evidence:revision_download", args=[foreign.pk, file.pk]),
        reverse("evidence:revision_download", args=[foreign.pk, mine.attachments.get().pk]),
    ):
        assert client.get(url).status_code == 404
    assert client.post(reverse("evidence:remove", args=[file.pk])).status_code == 404
    assert client.post(reverse("evidence:submit", args=[foreign.pk])).status_code == 404


# --- writing ----------------------------------------------------------------------------------


@pytest.mark.parametrize("type", EvidenceType.values)
def test_every_type_has_its_form(cast: Cast, run: Run, page_as: As, type: str) -> None:
    response = page_as(cast.contributor).get(new_url(cast, type))
    assert response.status_code == 200
    assert "Nothing was saved yet" not in text_of(response)


def test_an_unknown_type_is_not_found(cast: Cast, page_as: As) -> None:
    assert page_as(cast.contributor).get(new_url(cast, "gossip")).status_code == 404


def test_a_half_written_draft_is_saved(cast: Cast, page_as: As) -> None:
    client = page_as(cast.contributor)
    data = {"title": "Half", "conclusion": "Only this."}
    response = client.post(new_url(cast, "retrospective"), data, follow=True)
    evidence = Evidence.objects.get()
    assert response.redirect_chain[-1][0] == reverse("evidence:detail", args=[evidence.pk])
    assert evidence.revisions.get().body["conclusion"] == "Only this."
    page = text_of(response)
    assert "Before it can be submitted" in page
    assert "“Degradation” is missing." in page


def test_a_refused_form_keeps_everything_typed(cast: Cast, page_as: As) -> None:
    data = typed(cast, title="", conclusion="Word " * 5000)
    response = page_as(cast.contributor).post(new_url(cast, "retrospective"), data)
    page = text_of(response)
    assert response.status_code == 400
    assert "Nothing was saved yet" in page
    for kept in ("Long contexts queue.", "Back in two minutes.", "Chunked prefill."):
        assert kept in page
    assert not Evidence.objects.exists()
    response = page_as(cast.contributor).post(new_url(cast, "retrospective"), data | {"title": "Now"})
    assert response.status_code == 400
    assert "At most 20000 characters" in text_of(response)
    assert "Chunked prefill." in text_of(response)


@pytest.mark.parametrize(
    ("file", "told"),
    [
        (("big.log", b"x" * 5000), "“big.log” is larger than the"),
        (("page.html", b"<script>"), "of a kind that is not accepted"),
        (("chart.png", b"no image"), "not what its name says"),
        (("empty.txt", b""), "is empty"),
    ],
)
def test_a_refused_file_keeps_what_was_typed(
    cast: Cast, page_as: As, settings: Any, file: tuple[str, bytes], told: str
) -> None:
    settings.PHASEGATE_ATTACHMENT_MAX_BYTES = 1000
    data = typed(cast, files=[upload(*file)])
    response = page_as(cast.contributor).post(new_url(cast, "retrospective"), data)
    page = text_of(response)
    assert response.status_code == 400
    assert told in page
    assert "Usable for the help desk." in page
    assert 'value="After the pilot"' in page
    assert not Evidence.objects.exists()


def test_an_upload_ends_at_the_limit(cast: Cast, page_as: As, settings: Any, make_evidence: Make) -> None:
    settings.PHASEGATE_ATTACHMENT_MAX_BYTES = 100_000
    settings.FILE_UPLOAD_MAX_MEMORY_SIZE = 1000
    revision = make_evidence().revisions.get()
    url = reverse("evidence:attach", args=[revision.pk])
    client = page_as(cast.contributor)
    refused = client.post(url, {"file": upload("big.log", b"line\n" * 1_000_000)})
    assert refused.status_code == 400
    assert "“big.log” is larger than the 97.7" in text_of(refused)
    accepted = client.post(url, {"file": upload("server.log", b"line\n" * 20_000)})
    assert accepted.status_code == 302
    assert revision.attachments.get().size_bytes == 100_000


def test_uploads_are_protected_against_forgery(cast: Cast) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(cast.contributor)
    assert client.post(new_url(cast, "retrospective"), typed(cast)).status_code == 403
    assert not Evidence.objects.exists()


def test_files_are_attached_and_downloaded(cast: Cast, page_as: As) -> None:
    client = page_as(cast.contributor)
    files = [upload("日志 1.log", b"error 12\n"), upload("chart.png", PNG)]
    client.post(new_url(cast, "retrospective"), typed(cast, files=files))
    log, chart = Attachment.objects.order_by("id")
    response = client.get(reverse("evidence:download", args=[log.pk]))
    assert b"".join(response.streaming_content) == b"error 12\n"
    assert response["Content-Type"] == "text/plain; charset=utf-8"
    assert response["X-Content-Type-Options"] == "nosniff"
    assert response["Content-Disposition"].startswith("attachment;")
    assert response["Content-Security-Policy"].startswith("sandbox")
    assert client.post(reverse("evidence:remove", args=[chart.pk])).status_code == 302
    assert list(Attachment.objects.all()) == [log]


def test_a_changed_file_is_not_served(cast: Cast, page_as: As, make_evidence: Make) -> None:
    file = make_evidence(uploads=[upload()]).revisions.get().attachments.get()
    with open(file.file.path, "wb") as stored:
        stored.write(b"forged")
    response = page_as(cast.viewer).get(reverse("evidence:download", args=[file.pk]))
    assert response.status_code == 409
    assert "is lost or was changed after its upload" in text_of(response)


# --- configuration ----------------------------------------------------------------------------


def test_a_configuration_is_prefilled_from_the_run(cast: Cast, run: Run, page_as: As) -> None:
    client = page_as(cast.contributor)
    page = text_of(client.get(new_url(cast, "configuration"), {"run": run.pk}))
    assert run.configuration_digest in page
    assert f"Configuration of run {run}" in page
    assert 'name="engine_settings"' not in page  # captured, not typed
    data = {"title": "Baseline", "source_run": run.pk, "policy": "Routing.", "engine_settings": "dtype: fp8"}
    client.post(new_url(cast, "configuration"), data)
    body = Evidence.objects.get().revisions.get().body
    assert body["engine_settings"] == {"dtype": "float32"}
    assert (body["source_run"], body["policy"]) == (run.pk, "Routing.")


def test_what_a_run_did_not_record_can_be_typed(cast: Cast, page_as: As) -> None:
    bare = make_run(cast.project, configuration={"url": "http://host/v1", "target": {"model": "large"}})
    client = page_as(cast.contributor)
    page = text_of(client.get(new_url(cast, "configuration"), {"run": bare.pk}))
    assert 'name="versions"' in page
    assert 'name="model"' not in page
    data = {"title": "Endpoint", "source_run": bare.pk, "versions": "vllm: 0.9.1"}
    client.post(new_url(cast, "configuration"), data)
    assert Evidence.objects.get().revisions.get().body["versions"] == {"vllm": "0.9.1"}


def test_showing_what_a_run_recorded_keeps_what_was_typed(cast: Cast, run: Run, page_as: As) -> None:
    data = {"title": "", "source_run": run.pk, "policy": "Typed before.", "capture": "1"}
    response = page_as(cast.contributor).post(new_url(cast, "configuration"), data)
    page = text_of(response)
    assert response.status_code == 200
    assert "Typed before." in page
    assert "float32" in page
    assert "This field is required" not in page
    assert not Evidence.objects.exists()


def test_settings_are_typed_as_lines(cast: Cast, page_as: As) -> None:
    client = page_as(cast.contributor)
    settings = "max_batch: 32\nprefix_cache = true\nurl: http://host:1/v1\ntorch: 2.10\nnote\n\n"
    client.post(new_url(cast, "configuration"), {"title": "Endpoint", "engine_settings": settings})
    evidence = Evidence.objects.get()
    body = evidence.revisions.get().body
    assert body["engine_settings"] == {
        "max_batch": 32,
        "prefix_cache": True,
        "url": "http://host:1/v1",
        "torch": "2.10",
        "note": "",
    }
    page = text_of(client.get(reverse("evidence:edit", args=[evidence.pk])))
    assert "max_batch: 32" in page


# --- runtime ----------------------------------------------------------------------------------


def test_a_run_is_attached_from_its_own_page(cast: Cast, run: Run, page_as: As) -> None:
    client = page_as(cast.contributor)
    url = reverse("evidence:create_from_run", args=[cast.project.pk])
    page = text_of(client.get(url, {"run": run.pk}))
    assert re.search(rf'value="{run.pk}"[^>]*checked', page)
    assert "tenant-a" in page
    assert "help-desk" in page
    assert "67.2" in page  # TTFT p95 beside the checkbox
    client.post(url, {"title": "Matrix", "runs": [run.pk], "first_token": "p95 67 ms"})
    assert list(Evidence.objects.get().revisions.get().runs.all()) == [run]


def test_a_run_that_does_not_count_is_told_and_not_offered(cast: Cast, page_as: As) -> None:
    invalid = make_run(cast.project, validity=Validity.INVALID)
    url = reverse("evidence:create_from_run", args=[cast.project.pk])
    page = text_of(page_as(cast.contributor).get(url, {"run": invalid.pk}))
    assert "only complete and valid runs are evidence" in page
    assert f'value="{invalid.pk}"' not in page
    foreign = make_run(cast.outsider.project_roles.get().project)
    assert page_as(cast.contributor).get(url, {"run": foreign.pk}).status_code == 404
    response = page_as(cast.contributor).post(url, {"title": "x", "runs": [invalid.pk]})
    assert response.status_code == 400


# --- responsibility ---------------------------------------------------------------------------


def rows_data(*rows: dict[str, Any], initial: int = 0) -> dict[str, Any]:
    data: dict[str, Any] = {"rows-TOTAL_FORMS": len(rows), "rows-INITIAL_FORMS": initial}
    for index, row in enumerate(rows):
        data |= {f"rows-{index}-{name}": value for name, value in row.items()}
    return data


def test_rows_are_saved_and_empty_ones_ignored(cast: Cast, page_as: As) -> None:
    client = page_as(cast.contributor)
    page = text_of(client.get(new_url(cast, "responsibility")))
    assert 'name="rows-6-subject"' in page  # four kinds and three empty rows, without a script
    data = {"title": "Who"} | rows_data(
        {"kind": "approval", "subject": "Launch", "team": cast.team.pk},
        {"kind": "ownership"},
        {"kind": "alert", "subject": "Queue", "alert_route": "#oncall", "DELETE": "on"},
        {"kind": "", "subject": "Unsorted"},
    )
    client.post(new_url(cast, "responsibility"), data)
    rows = Evidence.objects.get().revisions.get().body["rows"]
    assert [(row["kind"], row["subject"], row["team"]) for row in rows] == [
        ("approval", "Launch", cast.team.pk),
        ("", "Unsorted", None),
    ]


def test_more_rows_keep_what_was_typed(cast: Cast, page_as: As) -> None:
    data = {"title": "Who", "more": "1"} | rows_data(
        {"kind": "approval", "subject": "Launch", "team": cast.team.pk}
    )
    page = text_of(page_as(cast.contributor).post(new_url(cast, "responsibility"), data))
    assert 'value="Launch"' in page
    assert 'name="rows-3-subject"' in page
    assert not Evidence.objects.exists()


def test_stored_rows_are_edited(cast: Cast, page_as: As, make_evidence: Make) -> None:
    evidence = make_evidence("responsibility")
    url = reverse("evidence:edit", args=[evidence.pk])
    page = text_of(page_as(cast.contributor).get(url))
    assert 'value="Subject of approval"' in page
    rows = [dict(row) for row in evidence.revisions.get().body["rows"]]
    data = {"title": "Who", "version": 1} | rows_data(*rows[:3], initial=4)
    data |= {"rows-TOTAL_FORMS": 4, "rows-3-DELETE": "on"}
    assert page_as(cast.contributor).post(url, data).status_code == 302
    assert len(evidence.revisions.get().body["rows"]) == 3


def test_a_wrong_row_is_marked_where_it_is(cast: Cast, page_as: As) -> None:
    data = {"title": "Who"} | rows_data({"kind": "alert", "subject": "Queue", "team": 10**9})
    response = page_as(cast.contributor).post(new_url(cast, "responsibility"), data)
    assert response.status_code == 400
    assert 'value="Queue"' in text_of(response)
    assert "Select a valid choice" in text_of(response)


# --- two tabs ---------------------------------------------------------------------------------


def test_the_second_tab_sees_both_and_may_save_again(cast: Cast, page_as: As, make_evidence: Make) -> None:
    evidence = make_evidence()
    client, url = page_as(cast.contributor), reverse("evidence:edit", args=[evidence.pk])
    assert 'name="version" value="1"' in text_of(client.get(url))
    assert client.post(url, typed(cast, version=1, conclusion="First tab.")).status_code == 302
    response = client.post(url, typed(cast, version=1, conclusion="Second tab."))
    page = text_of(response)
    assert response.status_code == 412
    assert "was changed after you opened it" in page
    assert "First tab." in page  # what is stored now
    assert page.count("Second tab.") == 2  # beside it, and in the form
    assert 'name="version" value="2"' in page
    assert evidence.revisions.get().body["conclusion"] == "First tab."
    assert client.post(url, typed(cast, version=2, conclusion="Second tab.")).status_code == 302
    assert evidence.revisions.get().body["conclusion"] == "Second tab."


def test_a_conflict_tells_of_runs_too(cast: Cast, run: Run, page_as: As, make_evidence: Make) -> None:
    evidence = make_evidence("runtime")
    other = make_run(cast.project)
    url = reverse("evidence:edit", args=[evidence.pk])
    page_as(cast.lead).post(url, {"title": "Lead's", "version": 1, "runs": [run.pk]})
    response = page_as(cast.contributor).post(url, {"title": "Mine", "version": 1, "runs": [other.pk]})
    page = text_of(response)
    assert response.status_code == 412
    assert "Lead&#x27;s" in page
    assert re.search(rf"Attached run</th><td[^>]*>{run}</td>", page)


# --- submit, review, return -------------------------------------------------------------------


def test_the_way_from_draft_to_review(cast: Cast, page_as: As, make_evidence: Make) -> None:
    evidence = make_evidence()
    revision = evidence.revisions.get()
    author, reviewer = page_as(cast.contributor), page_as(cast.reviewer)
    detail = reverse("evidence:detail", args=[evidence.pk])
    response = author.post(reverse("evidence:submit", args=[revision.pk]), follow=True)
    assert "waits for its review" in text_of(response)
    assert "Your role on this project does not include reviewing evidence." in text_of(response)
    page = text_of(reviewer.get(detail))
    assert "You did not contribute to this evidence, so you may review it." in page
    response = reviewer.post(
        reverse("evidence:review", args=[revision.pk]), {"note": "Checked the rows."}, follow=True
    )
    page = text_of(response)
    assert "Revision 1 is reviewed." in page
    assert "Checked the rows." in page
    revision.refresh_from_db()
    assert (revision.state, revision.reviewed_by) == ("reviewed", cast.reviewer)


def test_a_contributor_is_told_why_someone_else_reviews(cast: Cast, page_as: As, submitted: Make) -> None:
    revision = submitted(actor=cast.lead.as_actor())
    client = page_as(cast.lead)
    page = text_of(client.get(reverse("evidence:detail", args=[revision.evidence_id])))
    assert "You wrote revision 1 of this evidence, so someone else reviews it." in page
    assert reverse("evidence:review", args=[revision.pk]) not in page
    response = client.post(reverse("evidence:review", args=[revision.pk]), {"note": ""})
    assert response.status_code == 403
    assert "so someone else reviews it" in text_of(response)
    revision.refresh_from_db()
    assert revision.state == "submitted"


def test_an_incomplete_submission_names_what_is_missing(cast: Cast, page_as: As, make_evidence: Make) -> None:
    revision = make_evidence(body={"conclusion": "x"}).revisions.get()
    response = page_as(cast.contributor).post(reverse("evidence:submit", args=[revision.pk]), follow=True)
    assert "“Owner” is missing." in text_of(response)
    revision.refresh_from_db()
    assert revision.state == "draft"


def test_a_return_without_reason_stays_on_the_page(cast: Cast, page_as: As, submitted: Make) -> None:
    revision = submitted()
    client, url = page_as(cast.reviewer), reverse("evidence:return", args=[revision.pk])
    response = client.post(url, {"reason": " "})
    assert response.status_code == 400
    assert "This field is required" in text_of(response)
    assert client.post(url, {"reason": "Which contexts?"}).status_code == 302
    page = text_of(page_as(cast.contributor).get(reverse("evidence:edit", args=[revision.evidence_id])))
    assert "Which contexts?" in page
    assert "becomes the next revision" in page


def test_changed_content_is_not_shown(cast: Cast, page_as: As, submitted: Make) -> None:
    revision = submitted()
    database_guards.remove()  # it refuses what is tried here
    EvidenceRevision.objects.filter(pk=revision.pk).update(body=revision.body | {"conclusion": "Forged."})
    client = page_as(cast.reviewer)
    page = text_of(client.get(reverse("evidence:detail", args=[revision.evidence_id])))
    assert "no longer matches its digest" in page
    assert "Forged." not in page
    response = client.post(reverse("evidence:review", args=[revision.pk]), {"note": ""})
    assert response.status_code == 409
    assert "no longer matches its digest" in text_of(response)


def test_older_revisions_and_their_difference(cast: Cast, page_as: As, submitted: Make) -> None:
    revision = submitted()
    client = page_as(cast.contributor)
    edit = reverse("evidence:edit", args=[revision.evidence_id])
    client.post(edit, typed(cast, version=2, conclusion="Wider pilot."))
    detail = reverse("evidence:detail", args=[revision.evidence_id])
    old = text_of(client.get(detail, {"revision": 1}))
    assert "Usable for the help desk." in old
    assert "Revision 2 is newer." in old
    difference = text_of(client.get(reverse("evidence:difference", args=[revision.evidence_id])))
    assert "Usable for the help desk." in difference
    assert "Wider pilot." in difference
    assert client.get(detail, {"revision": 9}).status_code == 404
    assert (
        client.get(
            reverse("evidence:difference", args=[revision.evidence_id]), {"from": "x", "to": "1"}
        ).status_code
        == 404
    )


def test_the_project_page_shows_the_four_types(cast: Cast, page_as: As, reviewed: Make) -> None:
    revision = reviewed()
    page = text_of(page_as(cast.contributor).get(reverse("projects:detail", args=[cast.project.pk])))
    assert revision.title in page
    for code in ("E1", "E2", "E3", "E4"):
        assert f"({code})" in page
    assert new_url(cast, "runtime") in page
