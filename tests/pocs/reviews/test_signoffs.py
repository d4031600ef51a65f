"""Signatures: who may give them, what each verdict does, and what leaves the slot open."""

import pytest

from pocs.common.actors import Actor, system_actor
from pocs.common.errors import Conflict, InvalidInput, NotFound, NotPermitted
from pocs.common.models import AuditEntry
from pocs.evidence import services as evidence_services
from pocs.evidence.choices import EvidenceType
from pocs.people.roles import ProjectRole
from pocs.projects.gates import gate_status
from pocs.projects.models import ProjectMember
from pocs.reviews import services
from pocs.reviews.choices import PackageState, SignOffState, Slot
from pocs.reviews.contributions import contributed
from pocs.reviews.inbox import inbox_of
from pocs.reviews.models import Package, SignOff
from tests.factories import PASSWORD, Cast, make_ci_token, make_run, make_user
from tests.pocs.reviews import walk


def sign(package: Package, actor: Actor, slot: str, **fields: str) -> SignOff:
    values = {"verdict": "approve", "password": PASSWORD} | fields
    return services.signoff_sign(actor=actor, package=package, slot=slot, **values)


def missing_of(cast: Cast, code: str) -> list[str]:
    return [
        item.code
        for status in gate_status(cast.project)
        if status.gate.code == code
        for item in status.missing
    ]


def give(cast: Cast, name: str, role: ProjectRole) -> None:
    ProjectMember.objects.create(project=cast.project, user=getattr(cast, name), role=role)


def test_three_approvals_approve_the_package(cast: Cast, package: Package) -> None:
    walk.sign(cast, package, Slot.BUSINESS)
    walk.sign(cast, package, Slot.SECURITY)
    assert package.state == PackageState.FROZEN
    assert missing_of(cast, "G9") == ["signoff.platform"]
    walk.sign(cast, package, Slot.PLATFORM, verdict="approve_with_conditions", comment="Watch the KV pool.")
    assert package.state == PackageState.APPROVED
    assert missing_of(cast, "G9") == []
    assert set(package.signoffs.values_list("digest", flat=True)) == {package.digest}


@pytest.mark.parametrize("kind", ["token", "system"])
def test_nobody_but_a_person_signs(cast: Cast, package: Package, kind: str) -> None:
    token, _ = make_ci_token(cast.project, sponsor=cast.business, scopes=("read", "evidence:write"))
    actor = token.as_actor() if kind == "token" else system_actor(cast.organisation.pk)
    with pytest.raises(NotPermitted):
        sign(package, actor, "business")
    assert package.signoffs.filter(state=SignOffState.REQUESTED).count() == 3


def test_superuser_signs_for_nobody(cast: Cast, package: Package) -> None:
    superuser = make_user(cast.organisation, "root", is_superuser=True, is_staff=True)
    with pytest.raises(NotFound):
        sign(package, superuser.as_actor(), "business")
    ProjectMember.objects.create(project=cast.project, user=superuser, role=ProjectRole.VIEWER)
    with pytest.raises(NotPermitted):
        sign(package, superuser.as_actor(), "business")


def test_only_the_role_of_the_slot_signs_it(cast: Cast, package: Package) -> None:
    for person in (cast.lead, cast.platform, cast.security, cast.decision_maker, cast.viewer):
        with pytest.raises(NotPermitted):
            sign(package, person.as_actor(), "business")
    for stranger in (cast.bystander, cast.outsider):
        with pytest.raises(NotFound):
            sign(package, stranger.as_actor(), "business")


@pytest.mark.parametrize("name", ["contributor", "lead"])
def test_no_contributor_signs(cast: Cast, package: Package, name: str) -> None:
    give(cast, name, ProjectRole.SIGNER_BUSINESS)
    with pytest.raises(NotPermitted):
        sign(package, getattr(cast, name).as_actor(), "business")


def test_who_sponsored_a_token_contributed(cast: Cast) -> None:
    token, _ = make_ci_token(cast.project, sponsor=cast.business, scopes=("evidence:write",))
    evidence_services.evidence_create(
        actor=token.as_actor(),
        project=cast.project,
        type=EvidenceType.RETROSPECTIVE,
        title="From CI",
        body={"conclusion": "Half written."},
    )
    assert contributed(cast.project, cast.business.pk) == ["evidence"]


def test_who_asked_for_a_run_contributed(cast: Cast) -> None:
    make_run(cast.project, requested_by=cast.security)
    assert contributed(cast.project, cast.security.pk) == ["runs"]
    assert contributed(cast.project, cast.platform.pk) == []


def test_whoever_once_edited_the_conclusion_contributed(cast: Cast) -> None:
    for person in (cast.lead, cast.contributor):
        services.conclusion_save(actor=person.as_actor(), project=cast.project, performance=f"By {person}")
    assert contributed(cast.project, cast.lead.pk) == ["findings"]
    assert contributed(cast.project, cast.contributor.pk) == ["findings"]


def test_one_person_fills_one_slot(cast: Cast, package: Package) -> None:
    give(cast, "business", ProjectRole.SIGNER_PLATFORM)
    sign(package, cast.business.as_actor(), "business")
    with pytest.raises(NotPermitted):
        sign(package, cast.business.as_actor(), "platform")
    assert package.signoffs.get(slot="platform").state == SignOffState.REQUESTED
    sign(package, cast.platform.as_actor(), "platform")


def test_wrong_password_signs_nothing_and_is_recorded(cast: Cast, package: Package) -> None:
    for wrong in ("", "wrong", PASSWORD + " "):
        with pytest.raises(InvalidInput) as refused:
            sign(package, cast.business.as_actor(), "business", password=wrong)
        assert [error.pointer for error in refused.value.errors] == ["/password"]
    assert package.signoffs.get(slot="business").state == SignOffState.REQUESTED
    tries = AuditEntry.objects.filter(verb="signoff.password_refused", project_id=cast.project.pk)
    assert tries.count() == 3
    assert PASSWORD not in str(tries.values_list("after", flat=True))
    sign(package, cast.business.as_actor(), "business")


def test_guessing_the_password_is_stopped(cast: Cast, package: Package) -> None:
    for _ in range(5):
        with pytest.raises(InvalidInput):
            sign(package, cast.business.as_actor(), "business", password="guess")
    with pytest.raises(NotPermitted):
        sign(package, cast.business.as_actor(), "business")
    sign(package, cast.platform.as_actor(), "platform")


@pytest.mark.parametrize("verdict", ["reject", "approve_with_conditions"])
def test_a_verdict_that_needs_words(cast: Cast, package: Package, verdict: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        sign(package, cast.business.as_actor(), "business", verdict=verdict, comment="  ")
    assert [error.pointer for error in refused.value.errors] == ["/comment"]


@pytest.mark.parametrize(
    ("slot", "verdict", "pointer"), [("legal", "approve", "/slot"), ("business", "maybe", "/verdict")]
)
def test_unknown_slot_and_verdict(
    cast: Cast, package: Package, slot: str, verdict: str, pointer: str
) -> None:
    with pytest.raises(InvalidInput) as refused:
        sign(package, cast.business.as_actor(), slot, verdict=verdict)
    assert [error.pointer for error in refused.value.errors] == [pointer]


def test_a_rejection_after_two_approvals_is_a_veto(cast: Cast, package: Package) -> None:
    walk.sign(cast, package, Slot.BUSINESS, Slot.PLATFORM)
    walk.sign(cast, package, Slot.SECURITY, verdict="reject", comment="No audit trail for prompts.")
    assert package.state == PackageState.REJECTED
    assert missing_of(cast, "G9") == ["package.rejected"]
    with pytest.raises(Conflict):
        sign(package, cast.security.as_actor(), "security")


def test_a_rejection_closes_the_open_slots_and_needs_a_change(cast: Cast, package: Package) -> None:
    walk.sign(cast, package, Slot.SECURITY, verdict="reject", comment="No audit trail.")
    assert package.signoffs.filter(state=SignOffState.EXPIRED).count() == 2
    with pytest.raises(Conflict):
        sign(package, cast.business.as_actor(), "business")
    with pytest.raises(Conflict):
        walk.freeze(cast)
    services.conclusion_save(
        actor=cast.contributor.as_actor(), project=cast.project, logs_locate_errors="Audit trail added."
    )
    again = walk.freeze(cast)
    assert again.number == 2
    package.refresh_from_db()
    assert package.state == PackageState.REJECTED


def test_withdrawing_reopens_the_slot(cast: Cast, package: Package) -> None:
    walk.sign(cast, package)
    signoff = package.signoffs.get(slot="platform", state=SignOffState.APPROVED)
    with pytest.raises(NotPermitted):
        services.signoff_withdraw(actor=cast.business.as_actor(), signoff=signoff, reason="Not mine.")
    with pytest.raises(InvalidInput):
        services.signoff_withdraw(actor=cast.platform.as_actor(), signoff=signoff, reason=" ")
    services.signoff_withdraw(actor=cast.platform.as_actor(), signoff=signoff, reason="Saw a stall.")
    package.refresh_from_db()
    assert package.state == PackageState.FROZEN
    assert missing_of(cast, "G9") == ["signoff.platform"]
    states = package.signoffs.filter(slot="platform").order_by("id").values_list("state", flat=True)
    assert list(states) == [SignOffState.WITHDRAWN, SignOffState.REQUESTED]
    walk.sign(cast, package, Slot.PLATFORM)
    assert package.state == PackageState.APPROVED


def test_a_rejection_is_not_withdrawn(cast: Cast, package: Package) -> None:
    walk.sign(cast, package, Slot.SECURITY, verdict="reject", comment="No.")
    with pytest.raises(Conflict):
        services.signoff_withdraw(
            actor=cast.security.as_actor(), signoff=package.signoffs.get(slot="security"), reason="Yes."
        )


def test_without_an_eligible_signer_the_gate_says_so(cast: Cast, package: Package) -> None:
    cast.security.is_active = False
    cast.security.save()
    assert "signoff.security.no_signer" in missing_of(cast, "G9")
    led = inbox_of(cast.lead.as_actor()).led[0]
    assert any(cast.security.first_name in str(item.text) for item in led.missing)
    with pytest.raises(NotFound):
        sign(package, cast.security.as_actor(), "security")
    give(cast, "contributor", ProjectRole.SIGNER_SECURITY)
    assert "signoff.security.no_signer" in missing_of(cast, "G9")
    other = make_user(cast.organisation, "deputy")
    ProjectMember.objects.create(project=cast.project, user=other, role=ProjectRole.SIGNER_SECURITY)
    assert "signoff.security" in missing_of(cast, "G9")
