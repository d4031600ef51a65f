"""Packages: what freezing asks for, what the digest covers, and what makes a package stale."""

from collections.abc import Callable

import pytest
from django.test import Client
from django.urls import reverse
from django.utils.translation import override

from pocs.common.canonical import digest
from pocs.common.errors import Conflict, GateNotMet, NotPermitted
from pocs.common.models import AuditEntry
from pocs.evidence.choices import EvidenceType, RevisionState
from pocs.evidence.content import ContentMismatch
from pocs.evidence.models import Evidence, EvidenceRevision
from pocs.projects import services as project_services
from pocs.projects.choices import ProjectState
from pocs.projects.ui.entries import readable
from pocs.reviews import database_guards, services
from pocs.reviews.choices import PackageState, SignOffState, Slot
from pocs.reviews.difference import manifest_difference
from pocs.reviews.manifest import manifest_of
from pocs.reviews.models import Package
from tests.factories import PASSWORD, Cast
from tests.pocs.reviews import walk

ByType = dict[EvidenceType, Evidence]


def test_the_manifest_holds_what_is_signed(cast: Cast, package: Package) -> None:
    manifest = package.manifest
    assert {entry["type"] for entry in manifest["evidence"]} == set(EvidenceType.values)
    assert [run["scenario"] for run in manifest["runs"]] == ["short-request@1", "interruption@1"]
    assert len(manifest["scenarios"]) == 2
    assert manifest["conclusion"]["performance"] == "performance: stated."
    assert manifest["business_result"]["statement"]
    assert manifest["project"]["where_not"] == "Legal advice."
    assert len(manifest["project"]["readiness"]) == 5
    assert manifest["policy"]["never_waived"] == ["G10", "G12", "G5", "G9"]
    assert digest(manifest) == package.digest
    assert manifest_of(cast.project, 1) == manifest
    states = EvidenceRevision.objects.values_list("state", flat=True)
    assert set(states) == {RevisionState.FROZEN}


def test_freezing_names_what_is_missing(cast: Cast, evidence: ByType) -> None:
    actor = cast.contributor.as_actor()
    services.conclusion_save(actor=actor, project=cast.project, rollback_of_switch="")
    services.business_result_save(actor=actor, project=cast.project, experience_after="")
    walk.edit(cast, evidence[EvidenceType.RETROSPECTIVE], degradation="Seen after all.")
    with pytest.raises(GateNotMet) as refused:
        walk.freeze(cast)
    codes = {item.code for item in refused.value.missing}
    assert {"conclusion.rollback_of_switch", "business_result.pair", "evidence.unfinished"} <= codes
    assert all(item.url for item in refused.value.missing if item.guard in ("G7", "G8"))
    assert not Package.objects.exists()


def test_only_the_lead_freezes(cast: Cast, evidence: ByType) -> None:
    for person in (cast.contributor, cast.business, cast.decision_maker):
        with pytest.raises(NotPermitted):
            services.package_freeze(actor=person.as_actor(), project=cast.project)


def test_freezing_is_for_complete_evidence(cast: Cast, package: Package) -> None:
    with pytest.raises(Conflict):
        walk.freeze(cast)


def test_bytes_changed_past_the_services_block_the_freeze(cast: Cast, evidence: ByType) -> None:
    EvidenceRevision.objects.filter(evidence=evidence[EvidenceType.RUNTIME]).update(
        body={"seen": "All fine."}
    )
    with pytest.raises((ContentMismatch, GateNotMet)):
        walk.freeze(cast)
    assert not Package.objects.exists()


def test_restoring_the_old_bytes_revives_nothing(cast: Cast, evidence: ByType, package: Package) -> None:
    walk.sign(cast, package)
    kept = evidence[EvidenceType.RETROSPECTIVE]
    before = kept.revisions.get(number=1).body
    walk.edit(cast, kept, degradation="Worse than we said.")
    package.refresh_from_db()
    cast.project.refresh_from_db()
    assert package.state == PackageState.STALE
    assert cast.project.state == ProjectState.EVIDENCE_COMPLETE
    walk.edit(cast, kept, **before)
    walk.review(cast, kept)
    package.refresh_from_db()
    assert package.state == PackageState.STALE
    assert set(package.signoffs.values_list("state", flat=True)) == {SignOffState.STALE}
    second = walk.freeze(cast)
    assert (second.number, second.state) == (2, PackageState.FROZEN)
    assert second.digest != package.digest
    assert second.signoffs.filter(state=SignOffState.REQUESTED).count() == 3


def test_the_editor_is_named_and_old_signatures_stay(cast: Cast, evidence: ByType, package: Package) -> None:
    walk.sign(cast, package, Slot.BUSINESS)
    walk.edit(cast, evidence[EvidenceType.RUNTIME], errors="Two timeouts.")
    package.refresh_from_db()
    assert package.stale_by["user_id"] == cast.contributor.pk
    assert package.stale_by["label"] == str(cast.contributor)
    assert "runtime of the pilot" in package.stale_reason
    signed = package.signoffs.get(slot="business")
    assert (signed.state, signed.signer, signed.digest) == (SignOffState.STALE, cast.business, package.digest)
    assert signed.ended_reason == package.stale_reason
    assert package.signoffs.filter(state=SignOffState.EXPIRED).count() == 2
    client = Client()
    client.force_login(cast.viewer)
    shown = client.get(reverse("reviews:package", args=[package.pk])).content.decode()
    assert shown.count("Not given") == 2  # nobody let their time run out
    assert "Expired" not in shown


def change_conclusion(cast: Cast) -> None:
    services.conclusion_save(
        actor=cast.lead.as_actor(), project=cast.project, performance="Queue, after all."
    )


def change_business_result(cast: Cast) -> None:
    services.business_result_save(actor=cast.lead.as_actor(), project=cast.project, cost_before="12 CNY")


def change_project(cast: Cast) -> None:
    project_services.project_update(
        actor=cast.lead.as_actor(), project=cast.project, version=cast.project.version, where_not="Anything."
    )


def change_affected(cast: Cast) -> None:
    project_services.affected_add(
        actor=cast.lead.as_actor(), project=cast.project, kind="data", name="Tickets", owner="Support"
    )


@pytest.mark.parametrize(
    "change", [change_conclusion, change_business_result, change_project, change_affected]
)
def test_any_change_of_what_it_covers_makes_it_stale(
    cast: Cast, package: Package, change: Callable[[Cast], None]
) -> None:
    change(cast)
    package.refresh_from_db()
    cast.project.refresh_from_db()
    assert package.state == PackageState.STALE
    assert package.stale_by["user_id"] == cast.lead.pk
    assert cast.project.state == ProjectState.EVIDENCE_COMPLETE
    assert walk.freeze(cast).number == 2


def test_what_it_does_not_cover_leaves_it_alone(cast: Cast, package: Package) -> None:
    services.conclusion_save(
        actor=cast.lead.as_actor(), project=cast.project, performance="performance: stated."
    )
    walk.set_follow_through(cast)
    walk.set_observers(cast)
    package.refresh_from_db()
    assert package.state == PackageState.FROZEN


def test_a_change_past_the_services_is_found_at_signing(cast: Cast, package: Package) -> None:
    cast.project.affected.update(owner="Somebody else")
    with pytest.raises(Conflict):
        services.signoff_sign(
            actor=cast.business.as_actor(),
            package=package,
            slot="business",
            verdict="approve",
            password=PASSWORD,
        )
    package.refresh_from_db()
    assert package.state == PackageState.STALE


def test_a_tampered_manifest_takes_no_signature(cast: Cast, package: Package) -> None:
    database_guards.remove()
    Package.objects.filter(pk=package.pk).update(manifest=package.manifest | {"waivers": [{"id": 1}]})
    with pytest.raises(Conflict):
        walk.sign(cast, package, Slot.BUSINESS)
    assert package.signoffs.get(slot="business").state == SignOffState.REQUESTED


def test_the_difference_names_the_revision(cast: Cast, evidence: ByType, package: Package) -> None:
    walk.edit(cast, evidence[EvidenceType.RETROSPECTIVE], degradation="Slower at night.")
    walk.review(cast, evidence[EvidenceType.RETROSPECTIVE])
    second = walk.freeze(cast)
    found = manifest_difference(package.manifest, second.manifest)
    assert [(str(item.part), item.before, item.after) for item in found] == [
        ("Evidence", "retrospective of the pilot r1", "retrospective of the pilot r2")
    ]


def test_a_change_after_the_decision_keeps_the_decision(cast: Cast, evidence: ByType) -> None:
    decision = walk.to_decided(cast)
    change_conclusion(cast)
    cast.project.refresh_from_db()
    decision.package.refresh_from_db()
    assert cast.project.state == ProjectState.DECIDED
    assert decision.package.state == PackageState.STALE


def test_why_it_is_stale_reads_in_the_readers_language(cast: Cast, package: Package) -> None:
    with override("zh-hans"):
        project_services.affected_update(
            actor=cast.lead.as_actor(),
            project=cast.project,
            item=cast.project.affected.order_by("pk")[0],
            version=1,
            owner="Somebody else",
        )
    package.refresh_from_db()
    assert package.state == "stale"
    assert package.stale_text == package.stale_reason
    assert package.stale_text.startswith("Something affected changed: Affected")
    entry = AuditEntry.objects.get(verb="package.stale")
    (reason,) = [change for change in readable([entry])[0].changes if change.field == "reason"]
    assert reason.after == package.stale_reason
    package.stale_said = None  # as of a package from before that was kept
    assert package.stale_text == package.stale_reason
