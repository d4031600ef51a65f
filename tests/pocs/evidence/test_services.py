"""Writing, submitting, reviewing and freezing evidence."""

from collections.abc import Callable
from typing import Any

import pytest

from pocs.common.errors import Conflict, InvalidInput, NotFound, NotPermitted, StaleVersion
from pocs.common.models import AuditEntry, LiveEvent
from pocs.evidence import services
from pocs.evidence.content import ContentMismatch
from pocs.evidence.models import Attachment, Evidence, EvidenceRevision
from pocs.evidence.selectors import contributors, current_revisions, waiting_for_review
from pocs.projects import changes
from pocs.projects.choices import ProjectState
from pocs.reviews import database_guards
from pocs.runs.choices import RunState, Validity
from pocs.runs.models import Run
from tests.factories import Cast, make_ci_token, make_run
from tests.pocs.evidence.conftest import upload

Make = Callable[..., Any]


def edit(cast: Cast, evidence: Evidence, **given: Any) -> EvidenceRevision:
    evidence.refresh_from_db()
    newest = evidence.revisions.order_by("-number")[0]
    arguments: dict[str, Any] = {
        "actor": cast.contributor.as_actor(),
        "evidence": evidence,
        "version": evidence.version,
        "body": newest.body,
        "runs": newest.runs.all(),
    }
    return services.revision_edit(**(arguments | given))


def test_a_draft_is_created_with_digest_audit_and_event(cast: Cast, run: Run, make_evidence: Make) -> None:
    evidence = make_evidence("runtime")
    revision = evidence.revisions.get()
    assert (revision.number, revision.state) == (1, "draft")
    assert len(revision.content_sha256) == 64
    assert list(revision.runs.all()) == [run]
    entry = AuditEntry.objects.get(verb="evidence.created")
    assert entry.after["content_sha256"] == revision.content_sha256
    event = LiveEvent.objects.get(stream=f"project:{cast.project.pk}", kind="evidence")
    assert event.data == {
        "evidence": evidence.pk,
        "type": "runtime",
        "revision": 1,
        "state": "draft",
    }


def test_only_roles_that_write_may_write(cast: Cast, body_of: Make) -> None:
    for person in (cast.reviewer, cast.viewer, cast.business, cast.auditor):
        with pytest.raises(NotPermitted):
            services.evidence_create(
                actor=person.as_actor(), project=cast.project, type="runtime", title="x", body={}
            )
    for person in (cast.outsider, cast.bystander):
        with pytest.raises(NotFound):
            services.evidence_create(
                actor=person.as_actor(), project=cast.project, type="runtime", title="x", body={}
            )
    assert not Evidence.objects.exists()


def test_only_complete_and_valid_runs_are_attached(cast: Cast, make_evidence: Make) -> None:
    foreign = make_run(cast.outsider.project_roles.get().project)
    failed = make_run(cast.project, state=RunState.FAILED, validity=Validity.INVALID)
    invalid = make_run(cast.project, validity=Validity.INVALID)
    with pytest.raises(InvalidInput) as refusal:
        make_evidence("runtime", runs=[foreign, failed, invalid])
    assert [(wrong.pointer, wrong.code) for wrong in refusal.value.errors] == [
        ("/runs/0", "not_found"),
        ("/runs/1", "not_evidence"),
        ("/runs/2", "not_evidence"),
    ]
    assert "“Failed”" in str(refusal.value.errors[1].detail)


def test_the_source_of_a_configuration_is_attached(run: Run, make_evidence: Make) -> None:
    assert list(make_evidence("configuration").revisions.get().runs.all()) == [run]


def test_a_draft_is_edited_in_place(cast: Cast, make_evidence: Make) -> None:
    evidence = make_evidence()
    before = evidence.revisions.get().content_sha256
    revision = edit(cast, evidence, body={"conclusion": "Not yet."}, title="Another title")
    evidence.refresh_from_db()
    assert (revision.number, evidence.version, evidence.title) == (1, 2, "Another title")
    assert revision.content_sha256 != before
    services.revision_verify(revision)


def test_two_tabs_the_second_gets_the_conflict(cast: Cast, make_evidence: Make) -> None:
    evidence = make_evidence()
    edit(cast, evidence, version=1, body={"conclusion": "First tab."})
    with pytest.raises(StaleVersion) as refusal:
        edit(cast, evidence, version=1, body={"conclusion": "Second tab."})
    assert refusal.value.extra["current"] == 2
    assert str(cast.contributor) in str(refusal.value)
    assert evidence.revisions.get().body["conclusion"] == "First tab."


@pytest.mark.parametrize("state", ["submitted", "returned", "reviewed", "frozen"])
def test_an_edit_after_the_draft_makes_the_next_revision(cast: Cast, submitted: Make, state: str) -> None:
    revision = submitted(uploads=[upload()])
    content = revision.content_sha256
    reviewer = cast.reviewer.as_actor()
    if state == "returned":
        services.revision_return(actor=reviewer, revision=revision, reason="Which contexts?")
    if state in ("reviewed", "frozen"):
        services.revision_review(actor=reviewer, revision=revision)
    if state == "frozen":
        services.revisions_freeze(actor=cast.lead.as_actor(), revisions=[revision])
    newer = edit(cast, revision.evidence, body=revision.body | {"conclusion": "Better."})
    revision.refresh_from_db()
    assert (revision.state, revision.content_sha256) == (state, content)
    assert (newer.number, newer.state) == (2, "draft")
    services.revision_submit(actor=cast.contributor.as_actor(), revision=newer)
    services.revision_review(actor=reviewer, revision=newer)
    revision.refresh_from_db()
    assert (revision.state, revision.content_sha256) == ("superseded", content)
    assert [item.number for item in current_revisions(cast.project)] == [2]
    services.revision_verify(revision)
    services.revision_verify(newer)


def test_files_go_on_to_the_next_revision(cast: Cast, submitted: Make) -> None:
    revision = submitted(uploads=[upload()])
    newer = edit(cast, revision.evidence)
    old, new = revision.attachments.get(), newer.attachments.get()
    assert (new.sha256, new.file.name, new.uploaded_by) == (old.sha256, old.file.name, cast.contributor)
    assert new.created_at == old.created_at
    services.attachment_remove(actor=cast.contributor.as_actor(), attachment=new)
    services.revision_verify(revision)


def test_restored_words_are_another_revision(cast: Cast, reviewed: Make) -> None:
    revision = reviewed()
    edit(cast, revision.evidence, body=revision.body | {"conclusion": "Changed."})
    restored = edit(cast, revision.evidence, body=revision.body)
    assert restored.content_sha256 == revision.content_sha256
    assert (restored.number, restored.state) == (2, "draft")


def test_a_submission_names_everything_that_is_missing(cast: Cast, make_evidence: Make) -> None:
    revision = make_evidence("runtime", body={"seen": "Fast."}, runs=[]).revisions.get()
    with pytest.raises(InvalidInput) as refusal:
        services.revision_submit(actor=cast.contributor.as_actor(), revision=revision)
    assert {wrong.pointer for wrong in refusal.value.errors} == {
        "/body/first_token",
        "/body/generation",
        "/body/errors",
        "/body/resources",
        "/body/call_logs",
        "/runs",
    }
    revision.refresh_from_db()
    assert revision.state == "draft"


def test_a_run_that_counts_no_longer_blocks_submission_and_review(
    cast: Cast, run: Run, make_evidence: Make, submitted: Make
) -> None:
    draft = make_evidence("runtime").revisions.get()
    waiting = submitted("runtime")
    Run.objects.filter(pk=run.pk).update(validity=Validity.SUPERSEDED)
    with pytest.raises(InvalidInput):
        services.revision_submit(actor=cast.contributor.as_actor(), revision=draft)
    with pytest.raises(InvalidInput) as refusal:
        services.revision_review(actor=cast.reviewer.as_actor(), revision=waiting)
    assert str(run) in str(refusal.value.errors[0].detail)


def test_states_are_guarded(cast: Cast, make_evidence: Make, reviewed: Make) -> None:
    draft, done = make_evidence().revisions.get(), reviewed()
    author, reviewer = cast.contributor.as_actor(), cast.reviewer.as_actor()
    for call in (
        lambda: services.revision_review(actor=reviewer, revision=draft),
        lambda: services.revision_return(actor=reviewer, revision=draft, reason="No."),
        lambda: services.revision_submit(actor=author, revision=done),
        lambda: services.revision_return(actor=reviewer, revision=done, reason="No."),
        lambda: services.revisions_freeze(actor=cast.lead.as_actor(), revisions=[draft]),
        lambda: services.attachment_add(actor=author, revision=done, upload=upload()),
    ):
        with pytest.raises(Conflict):
            call()


def test_a_newer_draft_keeps_the_older_from_being_reviewed(cast: Cast, submitted: Make) -> None:
    revision = submitted()
    edit(cast, revision.evidence)
    with pytest.raises(Conflict, match="Revision 2 is newer"):
        services.revision_review(actor=cast.reviewer.as_actor(), revision=revision)


def test_a_return_needs_its_reason(cast: Cast, submitted: Make) -> None:
    revision = submitted()
    with pytest.raises(InvalidInput) as refusal:
        services.revision_return(actor=cast.reviewer.as_actor(), revision=revision, reason="  ")
    assert refusal.value.errors[0].pointer == "/reason"
    returned = services.revision_return(actor=cast.reviewer.as_actor(), revision=revision, reason="Why?")
    assert (returned.state, returned.review_note) == ("returned", "Why?")
    assert returned.reviewed_by == cast.reviewer


def test_a_closed_project_keeps_its_evidence(cast: Cast, make_evidence: Make) -> None:
    evidence = make_evidence()
    cast.project.state = ProjectState.CLOSED
    cast.project.save()
    with pytest.raises(Conflict):
        edit(cast, Evidence.objects.get(pk=evidence.pk))


# --- separation of duties ---------------------------------------------------------------------


def test_nobody_reviews_what_they_wrote(cast: Cast, submitted: Make) -> None:
    by_lead = submitted(actor=cast.lead.as_actor())
    with pytest.raises(NotPermitted, match="You wrote revision 1 of this evidence"):
        services.revision_review(actor=cast.lead.as_actor(), revision=by_lead)


def test_a_hand_in_an_older_revision_counts(cast: Cast, submitted: Make) -> None:
    revision = submitted(actor=cast.lead.as_actor())
    newer = edit(cast, revision.evidence)
    services.revision_submit(actor=cast.contributor.as_actor(), revision=newer)
    with pytest.raises(NotPermitted, match="You wrote revision 1"):
        services.revision_review(actor=cast.lead.as_actor(), revision=newer)
    services.revision_review(actor=cast.reviewer.as_actor(), revision=newer)


@pytest.mark.parametrize("deed", ["edited", "submitted", "uploaded", "uploaded and took off"])
def test_every_hand_in_a_draft_counts(cast: Cast, make_evidence: Make, deed: str) -> None:
    evidence = make_evidence()
    revision, lead = evidence.revisions.get(), cast.lead.as_actor()
    if deed == "edited":
        edit(cast, evidence, actor=lead)
    if deed.startswith("uploaded"):
        attachment = services.attachment_add(actor=lead, revision=revision, upload=upload())
        if deed.endswith("took off"):
            services.attachment_remove(actor=lead, attachment=attachment)
    submitter = lead if deed == "submitted" else cast.contributor.as_actor()
    revision = services.revision_submit(actor=submitter, revision=revision)
    with pytest.raises(NotPermitted, match=f"You {deed.split(maxsplit=1)[0].replace('edited', 'wrote')}"):
        services.revision_review(actor=lead, revision=revision)
    with pytest.raises(NotPermitted):
        services.revision_return(actor=lead, revision=revision, reason="Better not.")
    assert contributors(cast.project) == {cast.contributor.pk, cast.lead.pk}


def test_the_sponsor_of_a_token_that_wrote_it_does_not_review_it(cast: Cast, submitted: Make) -> None:
    token, _ = make_ci_token(cast.project, sponsor=cast.reviewer, scopes=("evidence:write",), name="nightly")
    revision = submitted(actor=token.as_actor())
    assert (revision.created_by, revision.token) == (cast.reviewer, token)
    with pytest.raises(NotPermitted, match="The token “nightly”, which you sponsor, wrote revision 1"):
        services.revision_review(actor=cast.reviewer.as_actor(), revision=revision)
    assert cast.reviewer.pk in contributors(cast.project)
    services.revision_review(actor=cast.lead.as_actor(), revision=revision)


def test_a_token_never_reviews(cast: Cast, submitted: Make) -> None:
    revision = submitted()
    for scopes in (("read", "evidence:write"), ("evidence:write",), ("read",)):
        token, _ = make_ci_token(cast.project, sponsor=cast.lead, scopes=scopes)
        with pytest.raises(NotPermitted, match="Only a person"):
            services.revision_review(actor=token.as_actor(), revision=revision)


def test_roles_without_the_right_and_foreigners_do_not_review(cast: Cast, submitted: Make) -> None:
    revision = submitted()
    for person in (cast.viewer, cast.business, cast.decision_maker, cast.auditor):
        with pytest.raises(NotPermitted):
            services.revision_review(actor=person.as_actor(), revision=revision)
    for person in (cast.outsider, cast.bystander):
        with pytest.raises(NotFound):
            services.revision_review(actor=person.as_actor(), revision=revision)


def test_what_waits_for_whom(cast: Cast, submitted: Make, make_evidence: Make) -> None:
    mine = submitted(actor=cast.lead.as_actor(), title="By the lead")
    other = submitted(title="By the contributor")
    make_evidence(title="A draft")
    assert waiting_for_review(cast.reviewer.as_actor()) == [mine, other]
    # the submission of the first was by the contributor, the writing by the lead
    assert waiting_for_review(cast.lead.as_actor()) == [other]
    assert waiting_for_review(cast.viewer.as_actor()) == []
    assert waiting_for_review(cast.outsider.as_actor()) == []


# --- digest -----------------------------------------------------------------------------------


def change_body(revision: EvidenceRevision) -> None:
    database_guards.remove()  # it refuses what is tried here
    EvidenceRevision.objects.filter(pk=revision.pk).update(body=revision.body | {"seen": "Perfect."})


def change_title(revision: EvidenceRevision) -> None:
    database_guards.remove()  # it refuses what is tried here
    EvidenceRevision.objects.filter(pk=revision.pk).update(title="Perfect")


def change_run(revision: EvidenceRevision) -> None:
    revision.runs.update(manifest={"requests": {"lines": 4, "sha256": "c" * 64}})


def remove_run(revision: EvidenceRevision) -> None:
    revision.runs.clear()


def change_file_digest(revision: EvidenceRevision) -> None:
    revision.attachments.update(sha256="0" * 64)


def change_file_bytes(revision: EvidenceRevision) -> None:
    with open(revision.attachments.get().file.path, "wb") as stored:
        stored.write(b"something else")


def lose_file(revision: EvidenceRevision) -> None:
    file = revision.attachments.get().file
    file.storage.delete(file.name)


@pytest.mark.parametrize(
    "tamper",
    [change_body, change_title, change_run, remove_run, change_file_digest, change_file_bytes, lose_file],
)
def test_changed_content_blocks_review_and_freeze(
    cast: Cast, submitted: Make, reviewed: Make, tamper: Callable[[EvidenceRevision], None]
) -> None:
    waiting = submitted("runtime", uploads=[upload()])
    tamper(waiting)
    with pytest.raises(ContentMismatch):
        services.revision_review(actor=cast.reviewer.as_actor(), revision=waiting)
    done = reviewed("retrospective")
    other = reviewed("runtime", uploads=[upload()], runs=[make_run(cast.project, manifest={"a": 1})])
    tamper(other)
    with pytest.raises(ContentMismatch):
        services.revisions_freeze(actor=cast.lead.as_actor(), revisions=[done, other])
    done.refresh_from_db()
    assert done.state == "reviewed"  # all or none


def test_changed_content_blocks_the_submission(cast: Cast, make_evidence: Make) -> None:
    revision = make_evidence("runtime").revisions.get()
    change_body(revision)
    with pytest.raises(ContentMismatch):
        services.revision_submit(actor=cast.contributor.as_actor(), revision=revision)


def test_freezing_keeps_the_content(cast: Cast, reviewed: Make) -> None:
    revision = reviewed()
    services.revisions_freeze(actor=cast.lead.as_actor(), revisions=[revision])
    services.revisions_freeze(actor=cast.lead.as_actor(), revisions=[revision])
    stored = EvidenceRevision.objects.get(pk=revision.pk)
    assert (stored.state, stored.content_sha256) == ("frozen", revision.content_sha256)
    assert AuditEntry.objects.filter(verb="evidence.frozen").count() == 1


# --- who is told ------------------------------------------------------------------------------


def test_listeners_are_told_of_every_change(
    cast: Cast, make_evidence: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[tuple[str, str]] = []
    listeners = [lambda project, actor, obj, what: told.append((actor.label, what))]
    monkeypatch.setattr(changes, "_listeners", listeners)
    evidence = make_evidence()
    revision = edit(cast, evidence)
    attachment = services.attachment_add(
        actor=cast.contributor.as_actor(), revision=revision, upload=upload()
    )
    services.attachment_remove(actor=cast.contributor.as_actor(), attachment=attachment)
    services.revision_submit(actor=cast.contributor.as_actor(), revision=revision)
    services.revision_review(actor=cast.reviewer.as_actor(), revision=revision)
    assert [what for _, what in told] == [
        "evidence was added",
        "evidence was edited",
        "a file was attached to evidence",
        "a file was taken off evidence",
        "evidence was submitted for review",
        "evidence was reviewed",
    ]
    assert told[-1][0] == str(cast.reviewer)


def test_nothing_remains_of_a_refused_creation(cast: Cast, make_evidence: Make, settings: Any) -> None:
    with pytest.raises(InvalidInput):
        make_evidence(uploads=[upload(), upload("page.html", b"<html>")])
    assert not Evidence.objects.exists()
    assert not Attachment.objects.exists()
    assert not list(settings.MEDIA_ROOT.rglob("*.*")) if settings.MEDIA_ROOT.exists() else True
