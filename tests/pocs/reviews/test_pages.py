"""The pages of the reviews: who sees them, what they offer to whom, and what they say when refused."""

from collections.abc import Callable

import pytest
from django.test import Client
from django.urls import reverse

from pocs.people.models import User
from pocs.reviews.models import Decision, Package
from tests.factories import PASSWORD, Cast
from tests.pocs.reviews import walk

SignIn = Callable[[User], Client]
PROJECT_PAGES = (
    "conclusion",
    "business_result",
    "packages",
    "waivers",
    "decision",
    "follow_through",
    "observation",
    "sheet",
    "sheet_pdf",
)


@pytest.mark.parametrize("name", PROJECT_PAGES)
def test_members_read_and_others_find_nothing(
    cast: Cast, package: Package, page_as: SignIn, name: str
) -> None:
    url = reverse(f"reviews:{name}", args=[cast.project.pk])
    for member in (cast.lead, cast.contributor, cast.viewer, cast.auditor):
        assert page_as(member).get(url).status_code == 200, member
    for stranger in (cast.bystander, cast.outsider):
        assert page_as(stranger).get(url).status_code == 404, stranger
    assert Client().get(url).status_code == 302


@pytest.mark.parametrize("name", PROJECT_PAGES[:-1])
@pytest.mark.parametrize("language", ["en", "zh-hans"])
def test_pages_of_a_decided_project(
    cast: Cast, decision: Decision, page_as: SignIn, name: str, language: str
) -> None:
    walk.set_follow_through(cast)
    walk.set_observers(cast)
    client = page_as(cast.lead)
    client.cookies["django_language"] = language
    assert client.get(reverse(f"reviews:{name}", args=[cast.project.pk])).status_code == 200


def test_package_page_and_project_page(cast: Cast, package: Package, page_as: SignIn) -> None:
    page = page_as(cast.business).get(reverse("reviews:package", args=[package.pk]))
    text = page.content.decode()
    assert package.digest in text
    assert "The output satisfies the scenario." in text
    assert reverse("reviews:sign", args=[package.pk, "business"]) in text
    assert reverse("reviews:sign", args=[package.pk, "platform"]) not in text
    assert page_as(cast.outsider).get(reverse("reviews:package", args=[package.pk])).status_code == 404
    project_page = page_as(cast.lead).get(reverse("projects:detail", args=[cast.project.pk]))
    assert project_page.status_code == 200
    assert "Package 1" in project_page.content.decode()


def test_a_refused_signature_keeps_what_was_typed(cast: Cast, package: Package, page_as: SignIn) -> None:
    url = reverse("reviews:sign", args=[package.pk, "business"])
    client = page_as(cast.business)
    typed = {"business-verdict": "reject", "business-comment": "", "business-password": PASSWORD}
    page = client.post(url, typed)
    assert page.status_code == 400
    assert "A rejection needs its reason." in page.content.decode()
    typed = {"business-verdict": "approve", "business-comment": "Seen it all.", "business-password": "wrong"}
    page = client.post(url, typed)
    assert page.status_code == 400
    assert "Seen it all." in page.content.decode()
    assert "The password is not right" in page.content.decode()
    typed["business-password"] = PASSWORD
    assert client.post(url, typed).status_code == 302
    assert package.signoffs.get(slot="business").signer == cast.business
