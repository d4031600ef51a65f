"""What waits for whom."""

from collections.abc import Callable

import pytest
from django.test import Client
from django.urls import reverse

from pocs.evidence import services as evidence_services
from pocs.evidence.choices import EvidenceType
from pocs.people.models import User
from pocs.reviews.inbox import Inbox, inbox_of
from pocs.reviews.models import Decision, FollowThroughTask, Package
from pocs.runs.choices import RunState, Validity
from tests.factories import Cast, make_run, make_scenario_version
from tests.pocs.reviews import walk


def of(user: User) -> Inbox:
    return inbox_of(user.as_actor())


def test_signatures_wait_for_those_who_may_give_them(cast: Cast, package: Package) -> None:
    for name in ("business", "platform", "security"):
        assert len(of(getattr(cast, name)).signatures) == 1
    for name in ("lead", "contributor", "decision_maker", "viewer", "bystander", "outsider"):
        assert of(getattr(cast, name)).signatures == []
    walk.sign(cast, package, walk.Slot.BUSINESS)
    assert of(cast.business).count == 0


def test_reviews_wait_for_others_than_the_author(cast: Cast) -> None:
    run = walk.add_runs(cast)[0]
    body = walk.bodies(cast, run)[EvidenceType.RETROSPECTIVE]
    evidence = evidence_services.evidence_create(
        actor=cast.lead.as_actor(),
        project=cast.project,
        type=EvidenceType.RETROSPECTIVE,
        title="Looking back",
        body=body,
    )
    evidence_services.revision_submit(actor=cast.lead.as_actor(), revision=evidence.revisions.get())
    assert len(of(cast.reviewer).reviews) == 1
    assert of(cast.lead).reviews == []


def test_a_proposal_waits_for_its_confirmer(cast: Cast, package: Package) -> None:
    walk.sign(cast, package)
    walk.propose(cast, package)
    assert len(of(cast.decision_maker).decisions) == 1
    assert of(cast.lead).decisions == []


def test_duties_come_with_the_overdue_first(cast: Cast, decision: Decision) -> None:
    walk.set_follow_through(cast)
    FollowThroughTask.objects.filter(kind="procurement").update(due_on=walk.in_days(-1))
    duties = of(cast.procurement).duties
    assert [item.overdue for item in duties] == [True, False, False]
    assert str(duties[0].title) == "Follow-through: Procurement"


@pytest.mark.parametrize(
    "ending", [{"state": RunState.FAILED, "validity": Validity.PENDING}, {"validity": Validity.INVALID}]
)
def test_bad_runs_until_a_later_one_counts(cast: Cast, ending: dict[str, str]) -> None:
    version = make_scenario_version(cast.project)
    make_run(cast.project, scenario_version=version, requested_by=cast.contributor, **ending)
    assert len(of(cast.contributor).bad_runs) == 1
    assert of(cast.viewer).bad_runs == []
    make_run(cast.project, scenario_version=version, requested_by=cast.contributor)
    assert of(cast.contributor).bad_runs == []


def test_a_cancelled_run_waits_for_nobody(cast: Cast) -> None:
    make_run(cast.project, requested_by=cast.contributor, state=RunState.CANCELLED, validity=Validity.INVALID)
    assert of(cast.contributor).bad_runs == []


def test_the_lead_sees_what_is_missing_next(cast: Cast) -> None:
    led = of(cast.lead).led
    assert [item.project for item in led] == [cast.project]
    assert {item.guard for item in led[0].missing} == {"G1"}
    assert of(cast.contributor).led == []


def test_the_page(cast: Cast, package: Package, page_as: Callable[[User], Client]) -> None:
    assert Client().get(reverse("inbox")).status_code == 302
    page = page_as(cast.platform).get(reverse("inbox")).content.decode()
    assert reverse("reviews:package", args=[package.pk]) in page
    assert "You are on no project yet." in page_as(cast.bystander).get(reverse("inbox")).content.decode()
