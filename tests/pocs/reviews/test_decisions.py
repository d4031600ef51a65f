"""Decisions: proposed by one, confirmed by another, with conditions that block the launch."""

from typing import Any

import pytest

from pocs.common.errors import Conflict, GateNotMet, InvalidInput, NotPermitted
from pocs.people.roles import ProjectRole
from pocs.projects.choices import ProjectState
from pocs.projects.models import ProjectMember
from pocs.reviews import services
from pocs.reviews.choices import DecisionState, PackageState, Slot, TaskKind
from pocs.reviews.models import Decision, FollowThroughTask, Package
from tests.factories import Cast, make_user
from tests.pocs.reviews import walk


def confirm(cast: Cast, decision: Decision, name: str = "decision_maker") -> Decision:
    decision = services.decision_confirm(actor=getattr(cast, name).as_actor(), decision=decision)
    cast.project.refresh_from_db()
    return decision


def condition(cast: Cast, **fields: Any) -> services.ConditionInput:
    values = {"text": "Rehearse the rollback.", "owner": cast.lead, "due_on": walk.in_days(10)} | fields
    return services.ConditionInput(**values)


def test_accepting_needs_the_approved_package(cast: Cast, package: Package) -> None:
    for outcome, step in (
        ("accepted", "procurement"),
        ("rejected", "stop"),
        ("extended_pilot", "wider_pilot"),
    ):
        with pytest.raises(Conflict):
            walk.propose(cast, package, outcome=outcome, next_step=step)
    walk.sign(cast, package)
    assert walk.propose(cast, package).state == DecisionState.PROPOSED


@pytest.mark.parametrize(
    ("outcome", "next_step", "pointer"),
    [
        ("accepted", "stop", "/next_step"),
        ("rejected", "procurement", "/next_step"),
        ("extended_pilot", "stop", "/next_step"),
        ("accepted_with_conditions", "procurement", "/conditions"),
        ("splendid", "procurement", "/outcome"),
        ("accepted", "party", "/next_step"),
    ],
)
def test_what_does_not_fit_together(
    cast: Cast, package: Package, outcome: str, next_step: str, pointer: str
) -> None:
    walk.sign(cast, package)
    with pytest.raises(InvalidInput) as refused:
        walk.propose(cast, package, outcome=outcome, next_step=next_step)
    assert [error.pointer for error in refused.value.errors] == [pointer]


def test_conditions_of_a_signature_are_not_dropped(cast: Cast, package: Package) -> None:
    walk.sign(cast, package, Slot.BUSINESS, Slot.PLATFORM)
    walk.sign(cast, package, Slot.SECURITY, verdict="approve_with_conditions", comment="Mask personal data.")
    with pytest.raises(InvalidInput) as refused:
        walk.propose(cast, package)
    assert refused.value.errors[0].code == "conditions-dropped"


def test_the_confirmer_is_another_and_named(cast: Cast, package: Package) -> None:
    walk.sign(cast, package)
    decision = walk.propose(cast, package)
    for name in ("lead", "contributor"):
        ProjectMember.objects.create(
            project=cast.project, user=getattr(cast, name), role=ProjectRole.DECISION_MAKER
        )
        with pytest.raises(NotPermitted):
            confirm(cast, decision, name)
    with pytest.raises(NotPermitted):
        confirm(cast, decision, "viewer")
    decision = confirm(cast, decision)
    assert decision.confirmed_by == cast.decision_maker
    assert cast.project.state == ProjectState.DECIDED
    with pytest.raises(Conflict):
        confirm(cast, decision)


def test_without_three_signatures_nothing_is_confirmed(cast: Cast, package: Package) -> None:
    walk.sign(cast, package)
    decision = walk.propose(cast, package)
    services.signoff_withdraw(
        actor=cast.security.as_actor(), signoff=package.signoffs.get(slot="security"), reason="A finding."
    )
    with pytest.raises((Conflict, GateNotMet)):
        confirm(cast, decision)
    decision.refresh_from_db()
    assert decision.state == DecisionState.PROPOSED
    assert decision.confirmed_by is None


def test_a_veto_may_end_in_a_rejection(cast: Cast, package: Package) -> None:
    walk.sign(cast, package, Slot.SECURITY, verdict="reject", comment="No audit trail.")
    with pytest.raises(Conflict):
        walk.propose(cast, package)
    decision = walk.propose(cast, package, outcome="rejected", next_step="stop")
    confirm(cast, decision)
    assert cast.project.state == ProjectState.DECIDED
    walk.advance(cast, ProjectState.FOLLOW_THROUGH)
    walk.advance(cast, ProjectState.OBSERVING)
    walk.advance(cast, ProjectState.CLOSED)


def test_another_proposal_supersedes(cast: Cast, package: Package) -> None:
    walk.sign(cast, package)
    first = walk.propose(cast, package)
    walk.propose(cast, package, next_step="procurement")
    first.refresh_from_db()
    assert first.state == DecisionState.SUPERSEDED
    with pytest.raises(Conflict):
        confirm(cast, first)


def test_a_stale_package_ends_the_proposal(cast: Cast, package: Package) -> None:
    walk.sign(cast, package)
    decision = walk.propose(cast, package)
    services.conclusion_save(actor=cast.lead.as_actor(), project=cast.project, performance="Changed.")
    decision.refresh_from_db()
    assert decision.state == DecisionState.SUPERSEDED
    with pytest.raises(Conflict):
        confirm(cast, decision)


def test_revoking_returns_the_project_to_review(cast: Cast, decision: Decision) -> None:
    with pytest.raises(InvalidInput):
        services.decision_revoke(actor=cast.decision_maker.as_actor(), decision=decision, reason="")
    with pytest.raises(NotPermitted):
        services.decision_revoke(actor=cast.lead.as_actor(), decision=decision, reason="No.")
    services.decision_revoke(actor=cast.decision_maker.as_actor(), decision=decision, reason="Budget fell.")
    cast.project.refresh_from_db()
    decision.refresh_from_db()
    assert (decision.state, decision.ended_reason) == (DecisionState.REVOKED, "Budget fell.")
    assert cast.project.state == ProjectState.IN_REVIEW
    confirm(cast, walk.propose(cast, decision.package))


@pytest.mark.parametrize(
    ("fields", "pointer"),
    [
        ({"text": " "}, "/conditions/0/text"),
        ({"owner": None}, "/conditions/0/owner"),
        ({"due_on": None}, "/conditions/0/due_on"),
        ({"due_on": walk.in_days(-1)}, "/conditions/0/due_on"),
    ],
)
def test_a_condition_has_owner_and_date(
    cast: Cast, package: Package, fields: dict[str, Any], pointer: str
) -> None:
    walk.sign(cast, package)
    with pytest.raises(InvalidInput) as refused:
        walk.propose(
            cast, package, outcome="accepted_with_conditions", conditions=[condition(cast, **fields)]
        )
    assert [error.pointer for error in refused.value.errors] == [pointer]
    assert not Decision.objects.exists()


def test_open_conditions_block_the_launch(cast: Cast, package: Package) -> None:
    walk.sign(cast, package)
    proposal = walk.propose(
        cast,
        package,
        outcome="accepted_with_conditions",
        conditions=[condition(cast, owner=cast.procurement)],
    )
    decision = confirm(cast, proposal)
    walk.set_follow_through(cast)
    launch, budget = (FollowThroughTask.objects.get(kind=kind) for kind in (TaskKind.LAUNCH, TaskKind.BUDGET))
    services.task_done(actor=cast.procurement.as_actor(), task=budget)
    with pytest.raises(GateNotMet) as refused:
        services.task_done(actor=cast.procurement.as_actor(), task=launch)
    assert "Rehearse the rollback." in str(refused.value.missing[0].text)
    row = decision.conditions.get()
    with pytest.raises(NotPermitted):
        services.condition_close(actor=cast.viewer.as_actor(), condition=row, evidence="Done.")
    with pytest.raises(InvalidInput):
        services.condition_close(actor=cast.procurement.as_actor(), condition=row, evidence="")
    services.condition_close(
        actor=cast.procurement.as_actor(), condition=row, evidence="Rehearsed on Monday."
    )
    assert services.task_done(actor=cast.procurement.as_actor(), task=launch).state == "done"


def test_a_duty_is_for_members(cast: Cast, decision: Decision) -> None:
    for stranger in (cast.bystander, cast.outsider, make_user(cast.organisation, "left", is_active=False)):
        with pytest.raises(InvalidInput) as refused:
            services.task_set(
                actor=cast.lead.as_actor(),
                project=cast.project,
                kind="budget",
                owner=stranger,
                due_on=walk.in_days(3),
            )
        assert refused.value.errors[0].pointer == "/owner"


def test_the_rejected_package_stays_rejected(cast: Cast, package: Package) -> None:
    walk.sign(cast, package, Slot.BUSINESS, verdict="reject", comment="Wrong answers.")
    services.conclusion_save(actor=cast.lead.as_actor(), project=cast.project, performance="Better now.")
    package.refresh_from_db()
    assert package.state == PackageState.REJECTED
