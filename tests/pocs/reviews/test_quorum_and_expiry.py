"""The policy a package is frozen with: how many sign, until when they may, and how long it counts."""

from datetime import timedelta

import pytest
from django.utils import timezone

from pocs.common import audit
from pocs.common.errors import Conflict, GateNotMet, InvalidInput, NotPermitted, StaleVersion
from pocs.people.roles import OrganisationRole, ProjectRole
from pocs.projects.gates import gate_status
from pocs.projects.models import ProjectMember
from pocs.reviews import services
from pocs.reviews.choices import PackageState, SignOffState, Slot
from pocs.reviews.models import Package, SignOff
from tests.factories import PASSWORD, Cast, make_user
from tests.pocs.reviews import walk


def admin_of(cast: Cast) -> object:
    return make_user(cast.organisation, "admin", organisation_role=OrganisationRole.ADMIN).as_actor()


def g9(cast: Cast) -> list[str]:
    return [
        item.code
        for status in gate_status(cast.project)
        if status.gate.code == "G9"
        for item in status.missing
    ]


def lapse(package: Package, slot: str) -> None:
    past = timezone.now() - timedelta(seconds=1)
    SignOff.objects.filter(package=package, slot=slot, ended_at=None).update(expires_at=past)


def test_only_administrators_set_it_and_only_for_packages_to_come(cast: Cast, evidence: object) -> None:
    package = walk.freeze(cast)
    for person in (cast.lead, cast.auditor, cast.decision_maker):
        with pytest.raises(NotPermitted):
            services.policy_save(actor=person.as_actor(), quorum_security=2)
    actor = admin_of(cast)
    assert services.policy_save(actor=actor, quorum_security=2).version == 1
    with pytest.raises(StaleVersion):
        services.policy_save(actor=actor, version=0, quorum_security=1)
    for wrong in ({"quorum_business": 0}, {"request_days": 0}, {"signature_days": True}, {"colour": 1}):
        with pytest.raises(InvalidInput):
            services.policy_save(actor=actor, **wrong)
    walk.sign(cast, package)  # one a slot, as it was frozen
    assert package.state == PackageState.APPROVED


def test_two_sign_a_slot_that_asks_for_two(cast: Cast, evidence: object) -> None:
    services.policy_save(actor=admin_of(cast), quorum_security=2)
    package = walk.freeze(cast)
    assert package.signoffs.filter(slot="security").count() == 2
    walk.sign(cast, package)
    assert package.state == PackageState.FROZEN
    assert g9(cast) == ["signoff.security.no_signer"]
    with pytest.raises(NotPermitted):
        walk.sign(cast, package, Slot.SECURITY)
    second = make_user(cast.organisation, "second")
    ProjectMember.objects.create(project=cast.project, user=second, role=ProjectRole.SIGNER_SECURITY)
    assert g9(cast) == ["signoff.security"]
    services.signoff_sign(
        actor=second.as_actor(), package=package, slot="security", verdict="approve", password=PASSWORD
    )
    package.refresh_from_db()
    assert package.state == PackageState.APPROVED
    assert g9(cast) == []


def test_a_request_ends_and_is_asked_again(cast: Cast, package: Package) -> None:
    lapse(package, "business")
    with pytest.raises(Conflict):
        walk.sign(cast, package, Slot.BUSINESS)
    assert "signoff.business.expired" in g9(cast)
    assert services.signoffs_expire() == 1
    assert services.signoffs_expire() == 0
    with pytest.raises(Conflict):
        walk.sign(cast, package, Slot.BUSINESS)
    with pytest.raises(NotPermitted):
        services.signoff_ask_again(actor=cast.business.as_actor(), package=package, slot="business")
    assert len(services.signoff_ask_again(actor=cast.lead.as_actor(), package=package, slot="business")) == 1
    with pytest.raises(Conflict):
        services.signoff_ask_again(actor=cast.lead.as_actor(), package=package, slot="business")
    walk.sign(cast, package)
    assert package.state == PackageState.APPROVED
    assert audit.verify(cast.organisation.pk) == []


def test_an_old_approval_counts_no_longer(cast: Cast, package: Package) -> None:
    walk.sign(cast, package)
    decision = walk.propose(cast, package)
    lapse(package, "platform")
    with pytest.raises(GateNotMet):  # before the clock has come by
        services.decision_confirm(actor=cast.decision_maker.as_actor(), decision=decision)
    assert services.signoffs_expire() == 1
    package.refresh_from_db()
    assert package.state == PackageState.FROZEN
    assert package.signoffs.get(slot="platform").state == SignOffState.EXPIRED
    services.signoff_ask_again(actor=cast.lead.as_actor(), package=package, slot="platform")
    walk.sign(cast, package, Slot.PLATFORM)
    assert package.state == PackageState.APPROVED


def test_what_a_decision_rests_on_has_served(cast: Cast, package: Package) -> None:
    walk.sign(cast, package)
    decision = services.decision_confirm(
        actor=cast.decision_maker.as_actor(), decision=walk.propose(cast, package)
    )
    assert set(package.signoffs.values_list("expires_at", flat=True)) == {None}
    assert services.signoffs_expire() == 0
    services.decision_revoke(actor=cast.decision_maker.as_actor(), decision=decision, reason="Budget fell.")
    assert all(row.expires_at for row in package.signoffs.all())
