"""Sign-in, sign-out, preferences and the language switch."""

from collections.abc import Callable

import pytest
from django.core.cache import cache
from django.test import Client

from pocs.people.models import User
from tests.factories import PASSWORD, Cast


@pytest.fixture(autouse=True)
def _no_failures_yet() -> None:
    cache.clear()


def sign_in(client: Client, username: str, password: str, **more: str) -> object:
    return client.post("/sign-in/", {"username": username, "password": password} | more)


def test_sign_in_leads_to_the_page_asked_for(cast: Cast) -> None:
    client = Client()
    response = sign_in(client, cast.lead.username, PASSWORD, next="/projects/")
    assert (response.status_code, response["Location"]) == (302, "/projects/")
    assert client.session["_auth_user_id"] == str(cast.lead.pk)


def test_sign_in_never_leads_to_another_site(cast: Cast) -> None:
    response = sign_in(Client(), cast.lead.username, PASSWORD, next="https://evil.example/")
    assert response.status_code == 302
    assert "evil" not in response["Location"]


def test_wrong_password_keeps_the_name(cast: Cast) -> None:
    response = sign_in(Client(), cast.lead.username, "wrong")
    assert response.status_code == 200
    assert cast.lead.username in response.content.decode()


def test_guessing_is_slowed_down_for_the_guesser_only(cast: Cast) -> None:
    guesser, owner = Client(REMOTE_ADDR="198.51.100.7"), Client(REMOTE_ADDR="198.51.100.8")
    for _ in range(5):
        sign_in(guesser, cast.lead.username, "wrong")
    blocked = sign_in(guesser, cast.lead.username, PASSWORD)
    assert blocked.status_code == 200
    assert "Wait five minutes" in blocked.content.decode()
    assert sign_in(owner, cast.lead.username, PASSWORD).status_code == 302


def test_a_right_password_starts_the_count_anew(cast: Cast) -> None:
    client = Client()
    for _ in range(2):
        for _ in range(4):
            sign_in(client, cast.lead.username, "wrong")
        assert sign_in(client, cast.lead.username, PASSWORD).status_code == 302
        client.post("/sign-out/")


def test_deactivated_people_cannot_sign_in(cast: Cast) -> None:
    User.objects.filter(pk=cast.lead.pk).update(is_active=False)
    assert sign_in(Client(), cast.lead.username, PASSWORD).status_code == 200


def test_sign_out_needs_a_post(cast: Cast, page_as: Callable[[User], Client]) -> None:
    client = page_as(cast.lead)
    assert client.get("/sign-out/").status_code == 405
    client.post("/sign-out/")
    assert "_auth_user_id" not in client.session


def test_preferences_need_sign_in() -> None:
    response = Client().get("/preferences/")
    assert (response.status_code, response["Location"]) == (302, "/sign-in/?next=/preferences/")


def test_preferences_change_language_and_zone(cast: Cast, page_as: Callable[[User], Client]) -> None:
    client = page_as(cast.lead)
    response = client.post(
        "/preferences/", {"language": "zh-hans", "time_zone": "Asia/Shanghai"}, follow=True
    )
    cast.lead.refresh_from_db()
    assert (cast.lead.language, cast.lead.time_zone) == ("zh-hans", "Asia/Shanghai")
    assert 'lang="zh-Hans"' in response.content.decode()


def test_a_wrong_zone_keeps_what_was_typed(cast: Cast, page_as: Callable[[User], Client]) -> None:
    response = page_as(cast.lead).post("/preferences/", {"language": "zh-hans", "time_zone": "Mars/Base"})
    assert response.status_code == 200
    assert '<option value="zh-hans" selected>' in response.content.decode()
    cast.lead.refresh_from_db()
    assert cast.lead.time_zone == "UTC"


def test_language_switch_for_strangers_is_a_cookie(db: None) -> None:
    client = Client()
    client.post("/i18n/setlang/", {"language": "zh-hans", "next": "/sign-in/"})
    assert 'lang="zh-Hans"' in client.get("/sign-in/").content.decode()


def test_language_switch_wins_over_a_stored_preference(cast: Cast, page_as: Callable[[User], Client]) -> None:
    User.objects.filter(pk=cast.lead.pk).update(language="en")
    client = page_as(cast.lead)
    client.post("/i18n/setlang/", {"language": "zh-hans", "next": "/preferences/"})
    assert 'lang="zh-Hans"' in client.get("/preferences/").content.decode()
    cast.lead.refresh_from_db()
    assert cast.lead.language == "zh-hans"


def test_an_unknown_language_changes_nothing(cast: Cast, page_as: Callable[[User], Client]) -> None:
    page_as(cast.lead).post("/i18n/setlang/", {"language": "xx", "next": "/"})
    cast.lead.refresh_from_db()
    assert cast.lead.language == ""


def test_a_browser_that_asks_for_chinese_gets_it(db: None) -> None:
    page = Client().get("/sign-in/", headers={"accept-language": "zh-CN,zh;q=0.9,en;q=0.5"})
    assert 'lang="zh-Hans"' in page.content.decode()
