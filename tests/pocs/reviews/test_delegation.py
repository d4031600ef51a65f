"""Delegation: dated, not passed on, shown as "B for A"; who may give and end it, and what it gives."""

from collections.abc import Callable
from datetime import date, timedelta
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from rest_framework.test import APIClient

from pocs.common.errors import Conflict, InvalidInput, NotFound, NotPermitted
from pocs.people import policies
from pocs.people.delegations import delegation_give, delegation_revoke
from pocs.people.models import Delegation, User
from pocs.people.roles import OrganisationRole, ProjectRole
from pocs.projects.models import ProjectMember
from pocs.projects.selectors import projects_visible_to
from pocs.reviews import services
from pocs.reviews.choices import SignOffState
from pocs.reviews.inbox import inbox_of
from pocs.reviews.models import Package, SignOff
from tests.factories import PASSWORD, Cast, make_ci_token, make_user
from tests.pocs.reviews import walk


def today() -> date:
    return timezone.now().date()


def give(principal: User, deputy: User | None, **fields: Any) -> Delegation:
    values: dict[str, Any] = {
        "starts_on": today(),
        "ends_on": today() + timedelta(days=5),
        "reason": "Leave.",
    }
    return delegation_give(actor=principal.as_actor(), deputy=deputy, **(values | fields))


def sign_for(package: Package, deputy: User, principal: User, slot: str = "business") -> SignOff:
    return services.signoff_sign(
        actor=deputy.as_actor(),
        package=package,
        slot=slot,
        verdict="approve",
        password=PASSWORD,
        on_behalf_of=principal,
    )


def test_a_deputy_signs_and_the_signature_says_for_whom(cast: Cast, package: Package) -> None:
    assert not policies.allowed(cast.bystander.as_actor(), "project.view", cast.project)
    give(cast.business, cast.bystander)
    actor = cast.bystander.as_actor()
    assert policies.allowed(actor, "project.view", cast.project)
    assert cast.project in projects_visible_to(actor)
    assert policies.capabilities_of(actor, cast.project) == {"project.view"}
    assert [str(item.title) for item in inbox_of(actor).signatures] == [
        f"Sign package 1: Business · for {cast.business}"
    ]
    with pytest.raises(NotPermitted):
        services.signoff_sign(
            actor=actor, package=package, slot="business", verdict="approve", password=PASSWORD
        )
    row = sign_for(package, cast.bystander, cast.business)
    assert (row.signer, row.on_behalf_of) == (cast.bystander, cast.business)
    assert row.signed_as == f"{cast.bystander} for {cast.business}"


def test_it_is_not_passed_on(cast: Cast, package: Package) -> None:
    other = make_user(cast.organisation, "other")
    give(cast.business, cast.bystander)
    give(cast.bystander, other)
    with pytest.raises((NotPermitted, NotFound)):
        sign_for(package, other, cast.business)
    with pytest.raises((NotPermitted, NotFound)):
        sign_for(package, other, cast.bystander)


@pytest.mark.parametrize(
    "ending", ["past", "to come", "revoked", "principal gone", "deputy gone", "role gone"]
)
def test_it_holds_on_its_days_and_between_active_people(cast: Cast, package: Package, ending: str) -> None:
    row = give(cast.business, cast.bystander)
    if ending == "past":
        Delegation.objects.update(starts_on=today() - timedelta(days=9), ends_on=today() - timedelta(days=1))
    elif ending == "to come":
        Delegation.objects.update(starts_on=today() + timedelta(days=1))
    elif ending == "revoked":
        delegation_revoke(actor=cast.business.as_actor(), delegation=row)
    elif ending == "principal gone":
        User.objects.filter(pk=cast.business.pk).update(is_active=False)
    elif ending == "deputy gone":
        User.objects.filter(pk=cast.bystander.pk).update(is_active=False)
    else:
        ProjectMember.objects.filter(user=cast.business).delete()
    with pytest.raises((NotPermitted, NotFound)):
        sign_for(package, cast.bystander, cast.business)
    assert package.signoffs.get(slot="business").state == SignOffState.REQUESTED


def test_it_lends_no_independence(cast: Cast, package: Package) -> None:
    give(cast.business, cast.contributor)  # a contributor does not sign as a deputy either
    with pytest.raises(NotPermitted):
        sign_for(package, cast.contributor, cast.business)
    give(cast.platform, cast.security)  # one person fills one slot, in whichever name
    sign_for(package, cast.security, cast.platform, "platform")
    with pytest.raises(NotPermitted):
        walk.sign(cast, package, walk.Slot.SECURITY)
    ProjectMember.objects.create(project=cast.project, user=cast.platform, role=ProjectRole.SIGNER_SECURITY)
    with pytest.raises(NotPermitted):  # nor does one whose deputy has signed
        services.signoff_sign(
            actor=cast.platform.as_actor(),
            package=package,
            slot="security",
            verdict="approve",
            password=PASSWORD,
        )


def test_a_contributor_is_not_represented(cast: Cast, package: Package) -> None:
    ProjectMember.objects.create(project=cast.project, user=cast.lead, role=ProjectRole.SIGNER_BUSINESS)
    give(cast.lead, cast.bystander)
    with pytest.raises(NotPermitted):
        sign_for(package, cast.bystander, cast.lead)


@pytest.mark.parametrize(
    ("fields", "pointer"),
    [
        ({"starts_on": timezone.now().date() - timedelta(days=1)}, "/starts_on"),
        ({"ends_on": None}, "/ends_on"),
        ({"ends_on": timezone.now().date() - timedelta(days=1)}, "/ends_on"),
        ({"ends_on": timezone.now().date() + timedelta(days=200)}, "/ends_on"),
        ({"reason": " "}, "/reason"),
    ],
)
def test_what_a_delegation_needs(cast: Cast, fields: dict[str, Any], pointer: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        give(cast.business, cast.bystander, **fields)
    assert pointer in [error.pointer for error in refused.value.errors]


def test_to_whom_and_how_often(cast: Cast) -> None:
    for deputy in (None, cast.business, cast.outsider, make_user(cast.organisation, "left", is_active=False)):
        with pytest.raises(InvalidInput):
            give(cast.business, deputy)
    give(cast.business, cast.bystander)
    with pytest.raises(InvalidInput) as refused:
        give(cast.business, cast.viewer, starts_on=today() + timedelta(days=3))
    assert refused.value.errors[0].code == "overlap"


def test_who_ends_it(cast: Cast) -> None:
    row = give(cast.business, cast.bystander)
    with pytest.raises(NotPermitted):
        delegation_revoke(actor=cast.bystander.as_actor(), delegation=row)
    with pytest.raises(NotFound):
        delegation_revoke(actor=cast.outsider.as_actor(), delegation=row)
    admin = make_user(cast.organisation, "admin", organisation_role=OrganisationRole.ADMIN)
    assert delegation_revoke(actor=admin.as_actor(), delegation=row).place == "revoked"
    with pytest.raises(Conflict):
        delegation_revoke(actor=admin.as_actor(), delegation=row)


def test_over_pages_and_api(
    cast: Cast, package: Package, api_as: Callable[..., APIClient], page_as: Callable[[User], Client]
) -> None:
    url, api = reverse("people:delegations"), reverse("api-delegations")
    days = {"starts_on": str(today()), "ends_on": str(today() + timedelta(days=3)), "reason": "Leave."}
    assert page_as(cast.business).post(url, days).status_code == 400
    assert page_as(cast.business).post(url, days | {"deputy": cast.outsider.pk}).status_code == 400
    assert page_as(cast.business).post(url, days | {"deputy": cast.bystander.pk}).status_code == 302
    _, plaintext = make_ci_token(cast.project, sponsor=cast.security)
    assert api_as(token=plaintext).get(api).status_code == 403
    assert api_as(token=plaintext).post(api, days | {"deputy": cast.viewer.pk}).status_code == 403
    given = api_as(cast.security).post(api, days | {"deputy": cast.viewer.pk})
    assert (given.status_code, given.json()["place"]) == (201, "current")
    assert [row["deputy"] for row in api_as(cast.bystander).get(api).json()["results"]] == [cast.bystander.pk]
    assert api_as(cast.bystander).post(f"{api}{given.json()['id']}/revoke/").status_code == 404
    assert len(api_as(cast.auditor).get(api).json()["results"]) == 2

    page = page_as(cast.bystander).get(reverse("reviews:package", args=[package.pk])).content.decode()
    assert f"{cast.bystander} for {cast.business}" in page
    form = {
        "business-verdict": "approve",
        "business-password": PASSWORD,
        "business-capacity": str(cast.business.pk),
    }
    assert (
        page_as(cast.bystander).post(reverse("reviews:sign", args=[package.pk, "business"]), form).status_code
        == 302
    )
    body = {"slot": "security", "verdict": "approve", "password": PASSWORD, "on_behalf_of": cast.security.pk}
    signed = api_as(cast.viewer).post(reverse("api-signoffs", args=[package.pk]), body)
    assert signed.json()["signed_as"] == f"{cast.viewer} for {cast.security}"
    revoked = api_as(cast.security).post(f"{api}{given.json()['id']}/revoke/")
    assert revoked.json()["place"] == "revoked"
    assert (
        package.signoffs.get(slot="security").state == SignOffState.APPROVED
    )  # what was signed stays signed
