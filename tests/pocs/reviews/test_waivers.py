"""Waivers: asked by one, granted by another, dated, and never for what must not be waived."""

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from pocs.common.errors import Conflict, InvalidInput, NotPermitted
from pocs.people.roles import ProjectRole
from pocs.projects.choices import ProjectState
from pocs.projects.gates import gate_status, missing_before
from pocs.projects.models import ProjectMember
from pocs.reviews import services
from pocs.reviews.choices import PackageState, WaiverState
from pocs.reviews.inbox import inbox_of
from pocs.reviews.models import BusinessResult, Waiver
from tests.factories import Cast
from tests.pocs.reviews import walk


def ask(cast: Cast, guard: str = "G8", **fields: Any) -> Waiver:
    values = {
        "reason": "The pilot has no figures yet.",
        "scope": "Until the first month is over.",
        "expires_at": timezone.now() + timedelta(days=3),
    } | fields
    return services.waiver_request(actor=cast.lead.as_actor(), project=cast.project, guard=guard, **values)


def grant(cast: Cast, waiver: Waiver) -> Waiver:
    return services.waiver_grant(actor=cast.decision_maker.as_actor(), waiver=waiver)


def g8(cast: Cast) -> bool:
    return next(status.met for status in gate_status(cast.project) if status.gate.code == "G8")


@pytest.mark.parametrize(
    ("fields", "pointer"),
    [
        ({"expires_at": None}, "/expires_at"),
        ({"expires_at": timezone.now() - timedelta(hours=1)}, "/expires_at"),
        ({"reason": " "}, "/reason"),
        ({"scope": ""}, "/scope"),
        ({"guard": "G5"}, "/guard"),
        ({"guard": "G9"}, "/guard"),
        ({"guard": "G12"}, "/guard"),
        ({"guard": "G77"}, "/guard"),
    ],
)
def test_what_a_waiver_needs(cast: Cast, fields: dict[str, Any], pointer: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        ask(cast, **fields)
    assert [error.pointer for error in refused.value.errors] == [pointer]
    assert not Waiver.objects.exists()


def test_someone_else_grants(cast: Cast) -> None:
    ProjectMember.objects.create(project=cast.project, user=cast.lead, role=ProjectRole.DECISION_MAKER)
    waiver = ask(cast)
    assert not g8(cast)
    with pytest.raises(NotPermitted):
        services.waiver_grant(actor=cast.lead.as_actor(), waiver=waiver)
    with pytest.raises(NotPermitted):
        services.waiver_grant(actor=cast.viewer.as_actor(), waiver=waiver)
    assert grant(cast, waiver).state == WaiverState.GRANTED
    assert g8(cast)
    with pytest.raises(Conflict):
        grant(cast, waiver)


def test_refusing_and_revoking_need_words(cast: Cast) -> None:
    actor = cast.decision_maker.as_actor()
    waiver = ask(cast)
    with pytest.raises(InvalidInput):
        services.waiver_refuse(actor=actor, waiver=waiver, note="")
    assert services.waiver_refuse(actor=actor, waiver=waiver, note="Too early.").state == WaiverState.REFUSED
    waiver = grant(cast, ask(cast))
    services.waiver_revoke(actor=actor, waiver=waiver, note="Figures are there.")
    assert not g8(cast)


def test_expiry_reopens_the_gate_and_tells_the_lead(cast: Cast) -> None:
    waiver = grant(cast, ask(cast))
    assert g8(cast)
    Waiver.objects.filter(pk=waiver.pk).update(expires_at=timezone.now() - timedelta(seconds=1))
    assert not g8(cast)
    assert services.waivers_expire() == 1
    assert services.waivers_expire() == 0
    waiver.refresh_from_db()
    assert waiver.state == WaiverState.EXPIRED
    assert any("G8" in str(note) for note in inbox_of(cast.lead.as_actor()).led[0].notes)


def test_a_waived_gate_lets_the_package_be_frozen_and_its_end_makes_it_stale(
    cast: Cast, evidence: object
) -> None:
    BusinessResult.objects.all().delete()
    assert missing_before(cast.project, ProjectState.IN_REVIEW)
    waiver = grant(cast, ask(cast))
    package = walk.freeze(cast)
    assert [entry["guard"] for entry in package.manifest["waivers"]] == ["G8"]
    Waiver.objects.filter(pk=waiver.pk).update(expires_at=timezone.now() - timedelta(seconds=1))
    services.waivers_expire()
    package.refresh_from_db()
    cast.project.refresh_from_db()
    assert package.state == PackageState.STALE
    assert package.stale_by["kind"] == "system"
    assert cast.project.state == ProjectState.EVIDENCE_COMPLETE
