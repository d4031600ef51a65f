"""The pages and endpoints of people: everybody looks, administrators change, foreigners see nothing."""

from collections.abc import Callable

import pytest
from django.test import Client
from django.urls import reverse
from rest_framework.test import APIClient

from pocs.people.models import User
from pocs.people.roles import OrganisationRole
from tests.factories import Cast, make_user

PageAs = Callable[[User], Client]
ApiAs = Callable[..., APIClient]


@pytest.fixture
def admin(cast: Cast) -> User:
    return make_user(cast.organisation, "admin", organisation_role=OrganisationRole.ADMIN)


def test_everybody_sees_their_own_organisation(cast: Cast, page_as: PageAs) -> None:
    people = reverse("people:people")
    assert Client().get(people).status_code == 302
    shown = page_as(cast.viewer).get(people).content.decode()
    assert cast.lead.username in shown
    assert cast.outsider.username not in shown
    assert "Add a person" not in shown
    assert page_as(cast.viewer).get(reverse("people:person", args=[cast.lead.pk])).status_code == 200
    assert page_as(cast.outsider).get(reverse("people:person", args=[cast.lead.pk])).status_code == 404


@pytest.mark.parametrize("name", ["person_add", "team_add"])
def test_only_administrators_add(cast: Cast, admin: User, page_as: PageAs, name: str) -> None:
    target = reverse(f"people:{name}")
    assert page_as(cast.lead).get(target).status_code == 403
    assert page_as(cast.lead).post(target, {"username": "x", "name": "x"}).status_code == 403
    assert page_as(admin).get(target).status_code == 200


def test_a_person_is_added_with_a_password_shown_once(admin: User, page_as: PageAs) -> None:
    browser = page_as(admin)
    half = browser.post(reverse("people:person_add"), {"username": "", "first_name": "Kept"})
    assert half.status_code == 400
    assert "Kept" in half.content.decode()
    taken = browser.post(reverse("people:person_add"), {"username": admin.username, "role": "member"})
    assert "This user name is taken." in taken.content.decode()
    added = browser.post(reverse("people:person_add"), {"username": "fresh", "role": "member"})
    user = User.objects.get(username="fresh")
    assert user.check_password(added.context["password"])
    assert added.context["password"] in added.content.decode()


def test_a_person_is_placed_and_deactivated(cast: Cast, admin: User, page_as: PageAs) -> None:
    browser = page_as(admin)
    page = reverse("people:person", args=[cast.viewer.pk])
    assert browser.post(page, {"role": "auditor", "team": ""}).status_code == 302
    assert browser.post(page, {"role": "king"}).status_code == 400
    active = reverse("people:person_active", args=[cast.viewer.pk])
    browser.post(active, {"active": "no"})
    cast.viewer.refresh_from_db()
    assert (cast.viewer.organisation_role, cast.viewer.is_active) == ("auditor", False)
    own = browser.post(reverse("people:person_active", args=[admin.pk]), {"active": "no"}, follow=True)
    assert "You cannot deactivate yourself." in own.content.decode()
    assert page_as(cast.lead).post(active, {"active": "yes"}).status_code == 403
    browser.post(reverse("people:team_add"), {"name": "Security", "contact": "#sec"})
    assert "Security" in browser.get(reverse("people:people")).content.decode()
    assert browser.post(reverse("people:team_add"), {"name": "Security"}).status_code == 400


def test_the_api_lists_people_and_teams_of_the_own_organisation(cast: Cast, api_as: ApiAs) -> None:
    api = api_as(cast.viewer)
    names = {row["username"] for row in api.get("/api/v1/people/").json()["results"]}
    assert cast.lead.username in names
    assert cast.outsider.username not in names
    assert [row["name"] for row in api.get("/api/v1/teams/").json()["results"]] == [cast.team.name]
    me = api.get("/api/v1/me/").json()
    assert (me["kind"], me["user"], me["token"]) == ("user", cast.viewer.pk, None)
    assert api_as().get("/api/v1/people/").status_code == 401


def test_an_account_without_organisation_gets_a_page_that_says_so(db: None, page_as: PageAs) -> None:
    answer = page_as(User.objects.create_user("loner")).get(reverse("people:people"))
    assert answer.status_code == 403
    assert "belongs to no organisation yet" in answer.content.decode()
