"""What systems of this kind get wrong, row by row, over pages and API alike."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from rest_framework.test import APIClient

from pocs.common import audit
from pocs.common.models import AuditEntry, AuditHead
from pocs.evidence.choices import EvidenceType
from pocs.evidence.models import Evidence
from pocs.people import services as people_services
from pocs.people.models import User
from pocs.people.roles import OrganisationRole, ProjectRole
from pocs.projects.choices import ProjectState
from pocs.projects.models import Project, ProjectMember
from pocs.reviews import database_guards
from pocs.reviews.choices import PackageState, SignOffState, Slot
from pocs.reviews.inbox import inbox_of
from pocs.reviews.models import Package, Waiver
from tests.factories import PASSWORD, Cast, make_ci_token, make_user
from tests.pocs.reviews import walk

ByType = dict[EvidenceType, Evidence]
SignInApi = Callable[..., APIClient]
SignInPage = Callable[[User], Client]


def signing(slot: str, **fields: str) -> dict[str, str]:
    """The body of a signature over the API."""
    return {"slot": slot, "verdict": "approve", "password": PASSWORD} | fields


def typed(slot: str, **fields: str) -> dict[str, str]:
    """The same as the page's form sends it."""
    values = {"verdict": "approve", "password": PASSWORD, "comment": ""} | fields
    return {f"{slot}-{name}": value for name, value in values.items()}


def sign_url(package: Package, slot: str) -> str:
    return reverse("reviews:sign", args=[package.pk, slot])


def signoffs_url(package: Package) -> str:
    return reverse("api-signoffs", args=[package.pk])


def test_01_restored_bytes_revive_no_signature(
    cast: Cast, evidence: ByType, package: Package, api_as: SignInApi, page_as: SignInPage
) -> None:
    assert api_as(cast.business).post(signoffs_url(package), signing("business")).status_code == 201
    assert page_as(cast.platform).post(sign_url(package, "platform"), typed("platform")).status_code == 302
    kept = evidence[EvidenceType.RETROSPECTIVE]
    before = kept.revisions.get(number=1).body
    walk.edit(cast, kept, degradation="Worse.")
    walk.edit(cast, kept, **before)
    walk.review(cast, kept)
    shown = api_as(cast.viewer).get(reverse("api-package", args=[package.pk])).json()
    assert shown["state"] == "stale"
    assert {row["state"] for row in shown["signoffs"] if row["signer"]} == {"stale"}
    assert api_as(cast.security).post(signoffs_url(package), signing("security")).status_code == 409
    assert page_as(cast.security).post(sign_url(package, "security"), typed("security")).status_code == 409
    frozen = api_as(cast.lead).post(reverse("api-packages", args=[cast.project.pk]))
    assert (frozen.status_code, frozen.json()["number"]) == (201, 2)


def test_02_the_sponsor_of_a_token_neither_reviews_nor_signs(
    cast: Cast, evidence: ByType, api_as: SignInApi, page_as: SignInPage
) -> None:
    _, plaintext = make_ci_token(cast.project, sponsor=cast.business, scopes=("read", "evidence:write"))
    ProjectMember.objects.create(project=cast.project, user=cast.business, role=ProjectRole.REVIEWER)
    body = {"type": "retrospective", "title": "From CI", "body": {"conclusion": "Fine."}}
    url = reverse("api-project-evidence", args=[cast.project.pk])
    uploaded = api_as(token=plaintext).post(url, body)
    assert uploaded.status_code == 201, uploaded.content
    cast.project.refresh_from_db()
    package = walk.freeze(cast)
    assert api_as(cast.business).post(signoffs_url(package), signing("business")).status_code == 403
    assert page_as(cast.business).post(sign_url(package, "business"), typed("business")).status_code == 403
    assert package.signoffs.get(slot="business").state == SignOffState.REQUESTED


def test_03_whoever_edits_is_named_and_the_signature_stays_listed(
    cast: Cast, evidence: ByType, package: Package, api_as: SignInApi, page_as: SignInPage
) -> None:
    walk.sign(cast, package, Slot.BUSINESS)
    walk.edit(cast, evidence[EvidenceType.RUNTIME], errors="Two timeouts.")
    shown = api_as(cast.viewer).get(reverse("api-package", args=[package.pk])).json()
    assert shown["stale_by"]["label"] == str(cast.contributor)
    assert [row["signed_as"] for row in shown["signoffs"] if row["state"] == "stale"] == [str(cast.business)]
    page = page_as(cast.viewer).get(reverse("reviews:package", args=[package.pk])).content.decode()
    assert f"Stale: {cast.contributor}" in page
    assert str(cast.business) in page


def test_04_a_quorum_of_nobody_is_refused(cast: Cast, api_as: SignInApi, page_as: SignInPage) -> None:
    admin = make_user(cast.organisation, "admin", organisation_role=OrganisationRole.ADMIN)
    refused = api_as(admin).patch(
        reverse("api-review-policy"), {"quorum_security": 0}, headers={"If-Match": '"0"'}
    )
    assert refused.status_code == 400
    assert refused.json()["errors"][0]["pointer"] == "/quorum_security"
    url, form = reverse("reviews:policy"), {"version": 0, "quorum_business": 1, "quorum_platform": 0}
    rest = {"quorum_security": 1, "request_days": 30, "signature_days": 90, "objection_days": 0}
    assert page_as(admin).post(url, form | rest).status_code == 400
    assert page_as(admin).post(url, form | rest | {"quorum_platform": 2}).status_code == 302


def test_04_without_an_eligible_signer_the_gate_closes_and_the_lead_is_told(
    cast: Cast, package: Package, api_as: SignInApi, page_as: SignInPage
) -> None:
    admin = make_user(cast.organisation, "admin", organisation_role=OrganisationRole.ADMIN)
    people_services.user_activate(actor=admin.as_actor(), user=cast.security, active=False)
    gates = api_as(cast.lead).get(reverse("api-gates", args=[cast.project.pk])).json()
    assert "signoff.security.no_signer" in [item["code"] for item in gates["missing"]]
    assert any("deactivated" in str(item.text) for item in inbox_of(cast.lead.as_actor()).led[0].missing)
    page = page_as(cast.lead).get(reverse("reviews:package", args=[package.pk])).content.decode()
    assert "Nobody may sign this slot now" in page


def test_05_the_last_two_slots_move_the_package_once(cast: Cast, package: Package) -> None:
    walk.sign(cast, package)
    moved = AuditEntry.objects.filter(verb="package.approved", object_id=str(package.pk))
    assert (package.state, moved.count()) == (PackageState.APPROVED, 1)  # at once: see test_race


def test_07_a_patch_keeps_what_it_does_not_name(cast: Cast, api_as: SignInApi) -> None:
    admin = make_user(cast.organisation, "admin", organisation_role=OrganisationRole.ADMIN)
    client, url = api_as(admin), reverse("api-review-policy")
    asked = {"quorum_business": 2, "objection_days": 3}
    assert client.patch(url, asked, headers={"If-Match": '"0"'}).status_code == 200
    kept = client.patch(url, {"signature_days": 14}, headers={"If-Match": '"1"'}).json()
    assert (kept["quorum_business"], kept["objection_days"], kept["signature_days"]) == (2, 3, 14)
    assert client.patch(url, {"version": 9}, headers={"If-Match": '"2"'}).status_code == 400
    assert client.patch(url, {"signature_days": 15}).status_code == 428
    assert client.patch(url, {"signature_days": 15}, headers={"If-Match": '"1"'}).status_code == 412


def test_08_a_waiver_without_expiry_by_any_route(cast: Cast, api_as: SignInApi, page_as: SignInPage) -> None:
    body = {"guard": "G8", "reason": "No figures yet.", "scope": "The first month."}
    assert api_as(cast.lead).post(reverse("api-waivers", args=[cast.project.pk]), body).status_code == 400
    page = page_as(cast.lead).post(reverse("reviews:waivers", args=[cast.project.pk]), body)
    assert page.status_code == 400
    assert "A waiver needs an expiry." in page.content.decode()
    assert not Waiver.objects.exists()


@pytest.mark.parametrize("guard", ["G5", "G9", "G10", "G12"])
def test_08_what_is_never_waived(cast: Cast, api_as: SignInApi, guard: str) -> None:
    body = {"guard": guard, "reason": "In a hurry.", "scope": "All.", "expires_at": "2099-01-01T00:00:00Z"}
    refused = api_as(cast.lead).post(reverse("api-waivers", args=[cast.project.pk]), body)
    assert refused.json()["errors"][0]["code"] == "never-waived"


def test_09_another_organisations_objects_on_every_route(
    cast: Cast, package: Package, api_as: SignInApi, page_as: SignInPage
) -> None:
    signoff = package.signoffs.first()
    assert signoff is not None
    routes = [
        ("api-package", [package.pk]), ("api-signoffs", [package.pk]), ("api-package-lines", [package.pk]),
        ("api-objections", [package.pk]), ("api-bundle", [cast.project.pk]),
        ("api-observation-schedule", [cast.project.pk]), ("reviews:package", [package.pk]),
        ("reviews:bundle", [cast.project.pk]), ("projects:history", [cast.project.pk]),
    ]  # fmt: skip
    for name, arguments in routes:
        for client in (api_as(cast.outsider), page_as(cast.outsider), page_as(cast.bystander)):
            assert client.get(reverse(name, args=arguments)).status_code == 404, name
    posts = [
        ("api-signoff-withdraw", [signoff.pk]), ("api-signoff-ask", [package.pk, "business"]),
        ("api-objections", [package.pk]), ("reviews:objection_raise", [package.pk]),
        ("reviews:ask_again", [package.pk, "business"]), ("reviews:withdraw", [signoff.pk]),
    ]  # fmt: skip
    for name, arguments in posts:
        assert api_as(cast.outsider).post(reverse(name, args=arguments), {}).status_code == 404, name


def test_10_two_tabs_the_second_gets_the_conflict(cast: Cast, api_as: SignInApi, page_as: SignInPage) -> None:
    url = reverse("reviews:conclusion", args=[cast.project.pk])
    fields = {"version": 0, "performance": "First tab.", "release_in_time": "", "batching_and_tail": "",
              "rollback_of_switch": "", "logs_locate_errors": ""}  # fmt: skip
    assert page_as(cast.lead).post(url, fields).status_code == 302
    second = page_as(cast.contributor).post(url, fields | {"performance": "Second tab."})
    assert second.status_code == 412
    text = second.content.decode()
    assert "First tab." in text
    assert "Second tab." in text
    api = reverse("api-conclusion", args=[cast.project.pk])
    stale = api_as(cast.lead).patch(api, {"performance": "Third."}, headers={"If-Match": '"0"'})
    assert stale.status_code == 412


def test_11_a_cut_tail_is_found_on_page_and_api(
    cast: Cast, package: Package, api_as: SignInApi, page_as: SignInPage
) -> None:
    audit.checkpoint_now(cast.organisation.pk)
    kept = AuditEntry.objects.filter(organisation_id=cast.organisation.pk).order_by("-sequence")[3]
    database_guards.remove()
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM common_auditentry WHERE sequence > %s", [kept.sequence])
        head = "UPDATE common_audithead SET length = %s, hash = %s WHERE organisation_id = %s"
        cursor.execute(head, [kept.sequence, kept.hash, cast.organisation.pk])
    found = api_as(cast.auditor).post(reverse("api-audit-verification")).json()
    assert not found["holds"]
    assert "cut" in [problem["code"] for problem in found["problems"]]
    page = page_as(cast.auditor).post(reverse("projects:audit")).content.decode()
    assert 'data-verified="no"' in page


def test_13_a_thin_matrix_is_named(cast: Cast, api_as: SignInApi) -> None:
    walk.complete_plan(cast.project, cast.team)
    walk.advance(cast, ProjectState.PLANNED)
    walk.advance(cast, ProjectState.RUNNING)
    walk.add_runs(cast)[1].delete()  # the one with another length and the interruption
    url = reverse("api-advance", args=[cast.project.pk])
    refused = api_as(cast.lead).post(url, {"to": "evidence_complete"})
    assert refused.status_code == 409
    assert "G3" in {item["guard"] for item in refused.json()["missing"]}
    assert "(S11)" in " ".join(item["detail"] for item in refused.json()["missing"])


def test_14_a_rejection_needs_its_reason_and_is_a_veto(
    cast: Cast, package: Package, api_as: SignInApi, page_as: SignInPage
) -> None:
    walk.sign(cast, package, Slot.BUSINESS, Slot.PLATFORM)
    body = signing("security", verdict="reject")
    assert api_as(cast.security).post(signoffs_url(package), body).status_code == 400
    form = typed("security", verdict="reject")
    assert page_as(cast.security).post(sign_url(package, "security"), form).status_code == 400
    body["comment"] = "No audit trail."
    assert api_as(cast.security).post(signoffs_url(package), body).status_code == 201
    package.refresh_from_db()
    assert package.state == PackageState.REJECTED


def test_15_a_superuser_signs_for_nobody(
    cast: Cast, package: Package, api_as: SignInApi, page_as: SignInPage
) -> None:
    root = make_user(cast.organisation, "root", is_superuser=True, is_staff=True)
    ProjectMember.objects.create(project=cast.project, user=root, role=ProjectRole.VIEWER)
    for fields in ({}, {"on_behalf_of": cast.business.pk}):
        answer = api_as(root).post(signoffs_url(package), signing("business") | fields)
        assert answer.status_code == 403
    assert page_as(root).post(sign_url(package, "business"), typed("business")).status_code == 403


# -- inputs of people who do this job ---------------------------------------------------------------------


def test_input_14_a_plan_in_six_ticks_stays_where_it_is(cast: Cast, api_as: SignInApi) -> None:
    body = {"name": "Six ticks", "goal": "accuracy over 95 %, latency under 100 ms, ROI, sign-off"}
    made = api_as(cast.lead).post(reverse("api-projects"), body).json()
    refused = api_as(cast.lead).post(reverse("api-advance", args=[made["id"]]), {"to": "planned"})
    assert refused.status_code == 409
    gates = api_as(cast.lead).get(reverse("api-gates", args=[made["id"]])).json()["gates"]
    unmet = {gate["code"] for gate in gates if not gate["met"]}
    assert {"G1", "G2", "G3", "G5", "G7", "G8", "G9", "G10", "G11", "G12"} <= unmet
    lines = [item["detail"] for gate in gates for item in gate["missing"] if gate["code"] == "G6"]
    assert len(lines) == 1  # G5 says what to do about each type
    assert Project.objects.get(pk=made["id"]).state == ProjectState.DRAFT


def test_input_15_one_person_fills_one_slot(
    cast: Cast, package: Package, api_as: SignInApi, page_as: SignInPage
) -> None:
    ProjectMember.objects.create(project=cast.project, user=cast.business, role=ProjectRole.SIGNER_PLATFORM)
    assert api_as(cast.business).post(signoffs_url(package), signing("business")).status_code == 201
    assert api_as(cast.business).post(signoffs_url(package), signing("platform")).status_code == 403
    assert page_as(cast.business).post(sign_url(package, "platform"), typed("platform")).status_code == 403
    assert package.signoffs.get(slot="platform").state == SignOffState.REQUESTED


def forge_signature(package: Package) -> str:
    return (
        f"UPDATE reviews_signoff SET state = 'approved' WHERE package_id = {package.pk} AND slot = 'security'"
    )


def forge_package(package: Package) -> str:
    return f"UPDATE reviews_package SET state = 'approved' WHERE id = {package.pk}"


def forge_waiver(package: Package) -> str:
    waiver = Waiver.objects.create(
        project=package.project,
        guard="G8",
        reason="x",
        scope="y",
        requested_by=package.frozen_by,
        expires_at=timezone.now() + timedelta(days=1),
    )
    return f"UPDATE reviews_waiver SET state = 'granted' WHERE id = {waiver.pk}"


@pytest.mark.parametrize("forge", [forge_signature, forge_package, forge_waiver])
def test_input_16_a_change_past_the_audit_is_reported(
    cast: Cast, package: Package, forge: Callable[[Package], Any]
) -> None:
    assert audit.verify(cast.organisation.pk) == []
    statement = forge(package)
    with connection.cursor() as cursor:
        cursor.execute(statement)
    problems = audit.verify(cast.organisation.pk)
    assert problems, "a forged state leaves no trace"
    assert {problem.code for problem in problems} <= {"state", "unaudited"}
    assert AuditHead.objects.get(organisation_id=cast.organisation.pk).length  # the chain itself is perfect
