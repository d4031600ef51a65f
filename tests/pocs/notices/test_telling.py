"""Who is told of what: the audit chain read by rules, the port of the services, languages, boundaries."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.conf import settings
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext_lazy, override

from pocs.common import notices as port
from pocs.common.actors import system_actor
from pocs.common.models import AuditEntry
from pocs.common.phrases import said
from pocs.evidence import services as evidence_services
from pocs.notices import services
from pocs.notices.kinds import kind_of
from pocs.notices.models import AuditCursor, Notice
from pocs.notices.rules import RULES
from pocs.people.models import User
from pocs.people.roles import ProjectRole
from pocs.projects import services as project_services
from pocs.reviews import services as review_services
from pocs.reviews.choices import Slot
from pocs.runs.choices import RunState
from pocs.runs.lifecycle import run_move
from tests.factories import PASSWORD, Cast, make_run
from tests.pocs.notices.conftest import texts
from tests.pocs.reviews import walk

Make = Callable[..., Any]
Told = Callable[[User], list[Notice]]
Kinds = Callable[[User], list[str]]


def test_a_submission_waits_for_every_possible_reviewer(cast: Cast, submitted: Make, kinds: Kinds) -> None:
    submitted()
    assert kinds(cast.reviewer) == ["review.waiting"]
    assert kinds(cast.lead) == ["review.waiting"]
    for person in (cast.contributor, cast.viewer, cast.business, cast.outsider):
        assert kinds(person) == []


def test_who_is_asked_is_told_by_the_request_alone(cast: Cast, submitted: Make, kinds: Kinds) -> None:
    revision = submitted()
    evidence_services.review_request(
        actor=cast.contributor.as_actor(), revision=revision, person=cast.reviewer, note="The figures."
    )
    assert kinds(cast.reviewer) == ["review.requested"]
    assert kinds(cast.lead) == ["review.waiting"]


def test_a_return_and_a_review_reach_the_author(cast: Cast, submitted: Make, told: Told) -> None:
    evidence_services.revision_return(
        actor=cast.reviewer.as_actor(), revision=submitted(), reason="Which contexts?"
    )
    evidence_services.revision_review(actor=cast.reviewer.as_actor(), revision=submitted(title="Other"))
    back, done = told(cast.contributor)
    assert (back.kind, back.detail) == ("evidence.returned", "Which contexts?")
    assert done.kind == "evidence.reviewed"


def test_a_discussion_reaches_those_in_it(cast: Cast, submitted: Make, told: Told) -> None:
    revision = submitted()
    thread = evidence_services.thread_open(
        actor=cast.viewer.as_actor(), revision=revision, path="degradation", text="Which?"
    )
    evidence_services.thread_comment(actor=cast.contributor.as_actor(), thread=thread, text="Long ones.")
    comments = [notice for notice in told(cast.viewer) if notice.kind == "comment"]
    assert [notice.detail for notice in comments] == ["Long ones."]
    assert comments[0].text.endswith("commented on “About retrospective”, Degradation")
    assert comments[0].path.endswith(f"?revision=1#thread-{thread.pk}")
    assert [notice.detail for notice in told(cast.contributor)] == ["Which?"]


def test_everyone_reads_in_their_language(cast: Cast, submitted: Make, told: Told) -> None:
    evidence_services.review_request(
        actor=cast.contributor.as_actor(), revision=submitted(), person=cast.reviewer
    )
    notice = told(cast.reviewer)[0]
    assert "About retrospective" in notice.text
    evidence_services.review_request(
        actor=cast.contributor.as_actor(), revision=notice_revision(notice), person=cast.lead
    )
    assert "asks you to review" in texts(told(cast.lead))


def notice_revision(notice: Notice) -> Any:
    from pocs.evidence.models import EvidenceRevision

    return EvidenceRevision.objects.get(evidence_id=int(notice.path.strip("/").split("/")[-1]))


def test_the_port_puts_the_sentence_together_for_each_reader(cast: Cast) -> None:
    title = said(gettext_lazy("Projects"))
    port.send(
        port.Notice(
            kind="duty.overdue",
            title=title,
            user_ids=[cast.reviewer.pk, cast.lead.pk],
            project_id=cast.project.pk,
            route="projects:detail",
            route_args=(cast.project.pk,),
            due_on=timezone.now().date(),
        )
    )
    found = {notice.recipient_id: notice.text for notice in Notice.objects.all()}
    assert found == {cast.reviewer.pk: "项目", cast.lead.pk: "Projects"}


def test_nothing_is_told_twice(cast: Cast, submitted: Make, kinds: Kinds) -> None:
    submitted()
    assert len(kinds(cast.lead)) == 1
    AuditCursor.objects.update(sequence=0)
    assert len(kinds(cast.lead)) == 1


def test_an_old_organisation_begins_with_now(
    cast: Cast, submitted: Make, kinds: Kinds, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pocs.notices.services.reading.FIRST_LOOK_BACK", timedelta(seconds=-1))
    submitted()
    assert kinds(cast.lead) == []
    project_services.member_add(
        actor=cast.lead.as_actor(), project=cast.project, user=cast.bystander, role=ProjectRole.VIEWER
    )
    assert kinds(cast.bystander) == ["role.given"]


def test_one_odd_entry_does_not_stop_the_rest(
    cast: Cast, submitted: Make, kinds: Kinds, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(entry: AuditEntry, obj: object) -> None:
        raise RuntimeError("odd")

    monkeypatch.setitem(RULES, "evidence.created", broken)
    submitted()
    assert kinds(cast.lead) == ["review.waiting"]


def test_who_left_the_project_is_not_told(cast: Cast, submitted: Make, kinds: Kinds) -> None:
    submitted()
    project_services.member_remove(
        actor=cast.lead.as_actor(), project=cast.project, user=cast.reviewer, role=ProjectRole.REVIEWER
    )
    User.objects.filter(pk=cast.lead.pk).update(is_active=False)
    assert kinds(cast.reviewer) == []
    assert kinds(cast.lead) == []


def test_a_run_that_failed_reaches_who_asked_for_it(cast: Cast, kinds: Kinds) -> None:
    run = make_run(cast.project, state=RunState.MEASURING, validity="pending", requested_by=cast.contributor)
    run_move(
        run_id=run.pk,
        actor=system_actor(cast.organisation.pk),
        to=RunState.FAILED,
        expect=[RunState.MEASURING],
        error="The engine ended.",
    )
    assert kinds(cast.contributor) == ["run.ended_badly"]


def test_signatures_and_a_stale_package(cast: Cast, told: Told, kinds: Kinds) -> None:
    walk.to_evidence_complete(cast)
    package = walk.freeze(cast)
    assert kinds(cast.business).count("signature.requested") == 1
    assert kinds(cast.platform).count("signature.requested") == 1
    assert "signature.requested" not in kinds(cast.contributor)
    review_services.signoff_sign(
        actor=cast.business.as_actor(),
        package=package,
        slot=Slot.BUSINESS,
        verdict="approve",
        password=PASSWORD,
    )
    project = cast.project
    project.refresh_from_db()
    project_services.project_update(
        actor=cast.contributor.as_actor(), project=project, version=project.version, goal="Something else."
    )
    stale = [notice for notice in told(cast.business) if notice.kind == "package.stale"]
    assert [str(cast.contributor) in notice.text for notice in stale] == [True]
    assert "package.stale" in kinds(cast.lead)
    assert "package.stale" not in kinds(cast.contributor)


def test_a_rejection_reaches_lead_and_decision_maker(cast: Cast, kinds: Kinds) -> None:
    walk.to_evidence_complete(cast)
    package = walk.freeze(cast)
    review_services.signoff_sign(
        actor=cast.security.as_actor(),
        package=package,
        slot=Slot.SECURITY,
        verdict="reject",
        password=PASSWORD,
        comment="No audit of prompts.",
    )
    assert "package.settled" in kinds(cast.lead)
    assert "package.settled" in kinds(cast.decision_maker)


def test_waivers(cast: Cast, told: Told, kinds: Kinds) -> None:
    waiver = review_services.waiver_request(
        actor=cast.contributor.as_actor(),
        project=cast.project,
        guard="G3",
        reason="One level only.",
        scope="Until the new nodes come.",
        expires_at=timezone.now() + timedelta(days=2),
    )
    assert kinds(cast.decision_maker) == ["waiver.requested"]
    review_services.waiver_grant(actor=cast.decision_maker.as_actor(), waiver=waiver)
    assert kinds(cast.contributor) == ["waiver.decided"]
    assert services.waivers_remind() > 0
    assert services.waivers_remind() == 0
    assert kinds(cast.contributor) == ["waiver.decided", "waiver.expiring"]


def test_a_decision_reaches_the_project_and_the_owners_of_duties(cast: Cast, kinds: Kinds) -> None:
    walk.to_evidence_complete(cast)
    walk.to_decided(cast)
    assert "decision.settled" in kinds(cast.viewer)
    assert "decision.settled" not in kinds(cast.outsider)


def test_every_kind_that_a_rule_or_service_uses_is_one_to_choose_about(cast: Cast) -> None:
    for key in ("objection.raised", "objection.ruled", "duty.overdue", "signature.expired", "waiver.expired"):
        assert kind_of(key).key != "other"
    assert kind_of("something.new").key == "other"


def test_a_notice_reads_in_the_language_of_who_reads_it(
    cast: Cast, told: Told, submitted: Make, page_as: Callable[[User], Client]
) -> None:
    """Told in English, read in Chinese: the system's words are translated, names and notes stay."""
    project_services.member_add(
        actor=cast.lead.as_actor(), project=cast.project, user=cast.bystander, role=ProjectRole.REVIEWER
    )
    (notice,) = told(cast.bystander)
    assert notice.text.endswith(f"gave you the role “Reviewer” on “{cast.project.name}”")
    with override("zh-hans"):
        assert "评审" in notice.shown_text
        assert str(cast.lead) in notice.shown_text
    client = page_as(cast.bystander)
    client.cookies[settings.LANGUAGE_COOKIE_NAME] = "zh-hans"
    shown = client.get(reverse("notices:list")).content.decode()
    assert "gave you" not in shown
    assert cast.project.name in shown
