"""People: preferences are one's own, membership is the administrators'."""

import pytest

from pocs.common.errors import Conflict, InvalidInput, NotFound, NotPermitted
from pocs.common.models import AuditEntry
from pocs.people import policies, selectors, services
from pocs.people.models import User
from pocs.people.roles import CAPABILITIES, SCOPES, TOKEN_SCOPES, OrganisationRole
from tests.factories import Cast, make_ci_token, make_organisation, make_team, make_user


@pytest.fixture
def admin(cast: Cast) -> User:
    return make_user(cast.organisation, "admin", organisation_role=OrganisationRole.ADMIN)


def test_everybody_sets_their_own_preferences(cast: Cast) -> None:
    actor = cast.viewer.as_actor()
    services.user_preferences_set(
        actor=actor, user=cast.viewer, language="zh-hans", time_zone="Asia/Shanghai"
    )
    cast.viewer.refresh_from_db()
    assert (cast.viewer.language, cast.viewer.time_zone) == ("zh-hans", "Asia/Shanghai")
    entry = AuditEntry.objects.get(verb="user.preferences_set")
    assert entry.before == {"language": "", "time_zone": "UTC"}
    services.user_preferences_set(
        actor=actor, user=cast.viewer, language="zh-hans", time_zone="Asia/Shanghai"
    )
    assert AuditEntry.objects.count() == 1
    with pytest.raises(NotPermitted):
        services.user_preferences_set(actor=actor, user=cast.lead, language="en", time_zone="UTC")
    with pytest.raises(InvalidInput) as caught:
        services.user_preferences_set(actor=actor, user=cast.viewer, language="xx", time_zone="Mars/Base")
    assert [error.pointer for error in caught.value.errors] == ["/language", "/time_zone"]


def test_an_administrator_adds_places_and_deactivates(cast: Cast, admin: User) -> None:
    actor = admin.as_actor()
    team = services.team_create(actor=actor, name="Security", contact="#sec")
    user, password = services.user_add(actor=actor, username="new.person", first_name="New", team=team)
    assert user.organisation == cast.organisation
    assert user.check_password(password)
    assert password not in str(list(AuditEntry.objects.values()))
    services.user_place(actor=actor, user=user, role="auditor", team=None)
    user.refresh_from_db()
    assert (user.organisation_role, user.team) == ("auditor", None)
    services.user_activate(actor=actor, user=user, active=False)
    user.refresh_from_db()
    assert not user.is_active
    services.user_activate(actor=actor, user=user, active=True)
    assert [entry.verb for entry in AuditEntry.objects.filter(object_id=str(user.pk))] == [
        "user.added",
        "user.placed",
        "user.deactivated",
        "user.activated",
    ]


def test_nobody_else_does(cast: Cast, admin: User) -> None:
    foreign = make_user(make_organisation(), "foreign", organisation_role=OrganisationRole.ADMIN)
    for person in (cast.lead, cast.auditor):
        actor = person.as_actor()
        for call in (
            lambda actor=actor: services.user_add(actor=actor, username="x"),
            lambda actor=actor: services.user_place(actor=actor, user=cast.viewer, role="admin", team=None),
            lambda actor=actor: services.user_activate(actor=actor, user=cast.viewer, active=False),
            lambda actor=actor: services.team_create(actor=actor, name="x"),
        ):
            with pytest.raises(NotPermitted):
                call()
    with pytest.raises(NotFound):
        services.user_activate(actor=foreign.as_actor(), user=cast.viewer, active=False)
    with pytest.raises(NotFound):
        services.user_place(actor=admin.as_actor(), user=foreign, role="member", team=None)


def test_an_organisation_keeps_an_administrator(cast: Cast, admin: User) -> None:
    actor = admin.as_actor()
    with pytest.raises(Conflict, match="yourself"):
        services.user_activate(actor=actor, user=admin, active=False)
    with pytest.raises(Conflict, match="at least one"):
        services.user_place(actor=actor, user=admin, role="member", team=None)
    second = make_user(cast.organisation, "admin", organisation_role=OrganisationRole.ADMIN)
    services.user_activate(actor=second.as_actor(), user=admin, active=False)
    with pytest.raises(Conflict):
        services.user_place(actor=second.as_actor(), user=second, role="member", team=None)


@pytest.mark.parametrize("username", ["", "a b", "x" * 151, "né/e"])
def test_a_user_name_is_plain(admin: User, username: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        services.user_add(actor=admin.as_actor(), username=username)
    assert caught.value.errors[0].pointer == "/username"


def test_names_teams_and_roles_are_checked(cast: Cast, admin: User) -> None:
    actor = admin.as_actor()
    elsewhere = make_team(make_organisation())
    with pytest.raises(InvalidInput) as caught:
        services.user_add(actor=actor, username=cast.lead.username.upper(), role="king", team=elsewhere)
    assert [error.pointer for error in caught.value.errors] == ["/role", "/team", "/username"]
    with pytest.raises(InvalidInput):
        services.team_create(actor=actor, name=cast.team.name)
    with pytest.raises(InvalidInput):
        services.team_create(actor=actor, name=" ", contact="x" * 201)


def test_selectors_stay_in_the_organisation(cast: Cast) -> None:
    actor = cast.lead.as_actor()
    assert cast.bystander in selectors.people_of(actor)
    assert cast.outsider not in selectors.people_of(actor)
    assert list(selectors.teams_of(actor)) == [cast.team]
    with pytest.raises(NotFound):
        selectors.person_get(actor, cast.outsider.pk)
    cast.viewer.is_active = False
    cast.viewer.save()
    assert cast.viewer in selectors.people_of(actor)
    assert cast.viewer not in selectors.active_people_of(actor)


def test_the_short_list_of_rights_says_what_each_question_says(cast: Cast, admin: User) -> None:
    token, _plain = make_ci_token(cast.project, sponsor=cast.lead, scopes=SCOPES)
    people = (cast.lead, cast.viewer, cast.security, cast.auditor, cast.bystander, cast.outsider, admin)
    for actor in [person.as_actor() for person in people] + [token.as_actor()]:
        asked = {name for name in CAPABILITIES if policies.allowed(actor, name, cast.project)}
        assert policies.capabilities_of(actor, cast.project) == asked


def test_no_token_scope_signs_decides_or_reviews() -> None:
    forbidden = (
        "signoff.",
        "decision.",
        "waiver.",
        "evidence.review",
        "package.",
        "project.advance",
        "scenario.",
    )
    assert not [name for name in TOKEN_SCOPES if name.startswith(forbidden)]
