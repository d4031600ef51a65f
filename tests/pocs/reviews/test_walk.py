"""The whole way of a project from draft to closed, over the services."""

from decimal import Decimal

import pytest

from pocs.common.errors import GateNotMet
from pocs.projects.choices import ProjectState
from pocs.projects.gates import gate_status, gates
from pocs.reviews import services
from pocs.reviews.choices import ObservationState, PackageState
from tests.factories import Cast
from tests.pocs.reviews import walk


def codes(cast: Cast) -> dict[str, int]:
    """How many points each gate misses now."""
    return {status.gate.code: len(status.missing) for status in gate_status(cast.project)}


def test_from_draft_to_closed(cast: Cast) -> None:
    walk.to_evidence_complete(cast)
    package = walk.freeze(cast)
    assert cast.project.state == ProjectState.IN_REVIEW
    assert codes(cast)["G9"] == 3
    walk.sign(cast, package)
    assert package.state == PackageState.APPROVED
    services.decision_confirm(actor=cast.decision_maker.as_actor(), decision=walk.propose(cast, package))
    cast.project.refresh_from_db()
    assert cast.project.state == ProjectState.DECIDED
    with pytest.raises(GateNotMet) as refused:
        walk.advance(cast, ProjectState.FOLLOW_THROUGH)
    assert {item.guard for item in refused.value.missing} == {"G11"}
    walk.set_follow_through(cast)
    walk.advance(cast, ProjectState.FOLLOW_THROUGH)
    with pytest.raises(GateNotMet) as refused:
        walk.advance(cast, ProjectState.OBSERVING)
    assert [item.code for item in refused.value.missing] == [
        "observer.capacity",
        "observer.cost",
        "observer.stability",
    ]
    walk.set_observers(cast)
    walk.advance(cast, ProjectState.OBSERVING)
    for observation in cast.project.observations.all():
        services.observation_read(
            actor=cast.observer.as_actor(), observation=observation, value=Decimal("12.5"), unit="requests/s"
        )
        closed = services.observation_close(actor=cast.lead.as_actor(), observation=observation)
        assert closed.state == ObservationState.CLOSED
    with pytest.raises(GateNotMet) as refused:
        walk.advance(cast, ProjectState.CLOSED)
    assert [item.code for item in refused.value.missing] == [
        "task.budget.open",
        "task.procurement.open",
        "task.launch.open",
    ]
    for task in cast.project.follow_through.all():
        services.task_done(actor=cast.procurement.as_actor(), task=task)
    walk.advance(cast, ProjectState.CLOSED)
    assert not any(codes(cast).values())


def test_every_gate_is_registered() -> None:
    assert [gate.code for gate in gates()] == [f"G{number}" for number in range(1, 13)]
    assert {gate.code for gate in gates() if not gate.waivable} >= {"G9", "G12"}
