"""Projects, their plan, members and scenarios: rights, conflicts and what the history keeps."""

from collections.abc import Callable
from typing import Any

import pytest

from pocs.common.actors import Actor, system_actor
from pocs.common.errors import (
    Conflict,
    DomainError,
    GateNotMet,
    InvalidInput,
    NotFound,
    NotPermitted,
    StaleVersion,
)
from pocs.common.models import AuditEntry
from pocs.people.roles import OrganisationRole, ProjectRole
from pocs.projects import changes, selectors, services
from pocs.projects.models import Project, ProjectMember, ScenarioVersion
from tests.factories import (
    Cast,
    complete_plan,
    make_ci_token,
    make_scenario_version,
    make_spec,
    make_team,
    make_user,
)


def last_entry(project: Project) -> AuditEntry:
    entry = AuditEntry.objects.filter(project_id=project.pk).last()
    assert entry is not None
    return entry


@pytest.fixture
def heard(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What listeners of changes are told, instead of the reviews app."""
    told: list[str] = []
    monkeypatch.setattr(changes, "_listeners", [lambda project, actor, obj, what: told.append(what)])
    return told


def test_a_creator_leads_the_new_project(cast: Cast) -> None:
    project = services.project_create(actor=cast.bystander.as_actor(), name=" Assistant ", goal="Decide.")
    assert (project.name, project.state, project.version) == ("Assistant", "draft", 1)
    assert project.members.get().role == ProjectRole.LEAD
    entry = last_entry(project)
    assert (entry.verb, entry.actor["user_id"]) == ("project.created", cast.bystander.pk)


def test_auditors_tokens_and_the_system_create_no_project(cast: Cast) -> None:
    token, _plain = make_ci_token(cast.project, sponsor=cast.lead, scopes=("read", "runs:write"))
    for actor in (cast.auditor.as_actor(), token.as_actor(), system_actor(cast.organisation.pk)):
        with pytest.raises(NotPermitted):
            services.project_create(actor=actor, name="Refused")


@pytest.mark.parametrize(
    ("fields", "pointer"),
    [
        ({"name": " "}, "/name"),
        ({"name": "x" * 161}, "/name"),
        ({"name": "a\x00b"}, "/name"),
        ({"goal": 7}, "/goal"),
        ({"demo_environment_only": "yes"}, "/demo_environment_only"),
        ({"state": "decided"}, "/state"),
        ({"version": 7}, "/version"),
        ({"organisation": 1}, "/organisation"),
    ],
)
def test_wrong_fields_of_a_project_are_named(cast: Cast, fields: dict[str, Any], pointer: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        services.project_create(actor=cast.lead.as_actor(), **({"name": "Fine"} | fields))
    assert [error.pointer for error in caught.value.errors] == [pointer]


def test_a_name_is_taken_only_inside_its_organisation(cast: Cast) -> None:
    with pytest.raises(InvalidInput, match="already a project"):
        services.project_create(actor=cast.lead.as_actor(), name=cast.project.name)
    assert services.project_create(actor=cast.outsider.as_actor(), name=cast.project.name).pk


def test_an_update_stores_what_differs_and_tells_the_listeners(cast: Cast, heard: list[str]) -> None:
    changed = services.project_update(
        actor=cast.contributor.as_actor(), project=cast.project, version=1, goal="New", name=cast.project.name
    )
    assert (changed.version, changed.goal) == (2, "New")
    assert last_entry(cast.project).after == {"goal": "New"}
    assert len(heard) == 1
    same = services.project_update(actor=cast.lead.as_actor(), project=cast.project, version=2, goal="New")
    assert same.version == 2
    assert len(heard) == 1


def test_the_second_of_two_tabs_is_told(cast: Cast) -> None:
    services.project_update(actor=cast.lead.as_actor(), project=cast.project, version=1, goal="First tab")
    with pytest.raises(StaleVersion) as caught:
        services.project_update(
            actor=cast.lead.as_actor(), project=cast.project, version=1, goal="Second tab"
        )
    assert caught.value.extra["current"] == 2
    cast.project.refresh_from_db()
    assert cast.project.goal == "First tab"


def test_steps_go_one_at_a_time_and_through_the_gates(cast: Cast) -> None:
    lead = cast.lead.as_actor()
    with pytest.raises(GateNotMet) as caught:
        services.project_advance(actor=lead, project=cast.project, to="planned")
    assert {item.guard for item in caught.value.missing} == {"G1"}
    complete_plan(cast.project, cast.team)
    with pytest.raises(Conflict, match="next state is “Planned”"):
        services.project_advance(actor=lead, project=cast.project, to="running")
    services.project_advance(actor=lead, project=cast.project, to="planned")
    services.project_advance(actor=lead, project=cast.project, to="running")
    assert cast.project.state == "running"
    for backwards in ("draft", "planned", "running"):
        with pytest.raises(Conflict):
            services.project_advance(actor=lead, project=cast.project, to=backwards)
    with pytest.raises(InvalidInput):
        services.project_advance(actor=lead, project=cast.project, to="no-such-state")


def test_two_callers_with_the_same_view_move_a_project_once(cast: Cast) -> None:
    complete_plan(cast.project, cast.team)
    mine, theirs = Project.objects.get(pk=cast.project.pk), Project.objects.get(pk=cast.project.pk)
    services.project_advance(actor=cast.lead.as_actor(), project=mine, to="planned")
    with pytest.raises(Conflict):
        services.project_advance(actor=cast.lead.as_actor(), project=theirs, to="planned")
    assert AuditEntry.objects.filter(verb="project.state_changed").count() == 1


def test_only_other_apps_take_a_project_back(cast: Cast) -> None:
    Project.objects.filter(pk=cast.project.pk).update(state="decided")
    with pytest.raises(Conflict):
        services.project_advance(actor=cast.lead.as_actor(), project=cast.project, to="in_review")
    services.project_state_set(actor=cast.decision_maker.as_actor(), project=cast.project, to="in_review")
    assert cast.project.state == "in_review"
    with pytest.raises(Conflict):
        services.project_state_set(actor=cast.lead.as_actor(), project=cast.project, to="running")


def test_cancelling_needs_a_reason_and_ends_all_changes(cast: Cast) -> None:
    lead = cast.lead.as_actor()
    with pytest.raises(Conflict, match="with a reason"):
        services.project_advance(actor=lead, project=cast.project, to="cancelled")
    with pytest.raises(InvalidInput):
        services.project_cancel(actor=lead, project=cast.project, reason=" ")
    services.project_cancel(actor=lead, project=cast.project, reason="No budget")
    assert last_entry(cast.project).after == {"state": "cancelled", "reason": "No budget"}
    with pytest.raises(Conflict, match="nothing in it can be changed"):
        services.project_update(actor=lead, project=cast.project, version=2, goal="Late")
    with pytest.raises(Conflict):
        services.project_cancel(actor=lead, project=cast.project, reason="Again")


Call = Callable[[Cast, Actor], object]
CALLS: dict[str, tuple[Call, set[str]]] = {
    "update": (
        lambda c, a: services.project_update(actor=a, project=c.project, version=1, goal="x"),
        {"contributor"},
    ),
    "advance": (lambda c, a: services.project_advance(actor=a, project=c.project, to="planned"), set()),
    "cancel": (lambda c, a: services.project_cancel(actor=a, project=c.project, reason="x"), set()),
    "member": (
        lambda c, a: services.member_add(actor=a, project=c.project, user=c.viewer, role="reviewer"),
        set(),
    ),
    "affected": (
        lambda c, a: services.affected_add(actor=a, project=c.project, kind="data", name="x"),
        {"contributor"},
    ),
    "readiness": (
        lambda c, a: services.readiness_set(actor=a, project=c.project, kind="logs", ready=True, basis="x"),
        {"contributor"},
    ),
    "declaration": (
        lambda c, a: services.declaration_set(
            actor=a, project=c.project, kind="real_roles", statement="x", source="y"
        ),
        {"contributor"},
    ),
    "scenario": (
        lambda c, a: services.scenario_create(
            actor=a, project=c.project, slug="s", name="S", kind="short_request", spec=make_spec()
        ),
        {"contributor"},
    ),
    "approve": (
        lambda c, a: services.scenario_version_approve(
            actor=a, version=make_scenario_version(c.project, state="draft")
        ),
        set(),
    ),
    "token": (
        lambda c, a: services.token_issue(
            actor=a, project=c.project, name="x", scopes=["read"], expires_at=None
        ),
        set(),
    ),
}


@pytest.mark.parametrize("name", CALLS)
def test_who_may_do_what(cast: Cast, name: str) -> None:
    call, also = CALLS[name]
    complete_plan(cast.project, cast.team) if name == "advance" else None
    token, _plain = make_ci_token(
        cast.project, sponsor=cast.lead, scopes=("evidence:write", "read", "runs:write")
    )
    refused = {
        "viewer",
        "reviewer",
        "business",
        "security",
        "decision_maker",
        "observer",
        "contributor",
    } - also
    for who in sorted(refused):
        with pytest.raises(NotPermitted):
            call(cast, getattr(cast, who).as_actor())
    with pytest.raises(NotPermitted):
        call(cast, token.as_actor())
    with pytest.raises(NotPermitted):
        call(cast, cast.auditor.as_actor())
    for stranger in (cast.bystander, cast.outsider):
        with pytest.raises(NotFound):
            call(cast, stranger.as_actor())
    for who in sorted(also | {"lead"}):
        try:
            call(cast, getattr(cast, who).as_actor())
        except (NotPermitted, NotFound):
            raise
        except DomainError:
            assert name in {"token", "update", "scenario", "affected", "readiness", "declaration"}


def test_a_superuser_gets_no_right_from_it(cast: Cast) -> None:
    root = make_user(cast.organisation, "root", is_superuser=True, is_staff=True)
    with pytest.raises(NotFound):
        services.project_update(actor=root.as_actor(), project=cast.project, version=1, goal="x")


def test_a_deactivated_lead_may_nothing(cast: Cast) -> None:
    actor = cast.lead.as_actor()
    cast.lead.is_active = False
    cast.lead.save()
    with pytest.raises(NotFound):
        services.project_update(actor=actor, project=cast.project, version=1, goal="x")


def test_members_come_from_the_same_organisation_and_the_last_lead_stays(cast: Cast) -> None:
    lead = cast.lead.as_actor()
    with pytest.raises(InvalidInput, match="no such person"):
        services.member_add(actor=lead, project=cast.project, user=cast.outsider, role="viewer")
    with pytest.raises(InvalidInput, match="already"):
        services.member_add(actor=lead, project=cast.project, user=cast.viewer, role="viewer")
    with pytest.raises(InvalidInput, match="no role"):
        services.member_add(actor=lead, project=cast.project, user=cast.viewer, role="king")
    gone = make_user(cast.organisation, "gone", is_active=False)
    with pytest.raises(InvalidInput, match="deactivated"):
        services.member_add(actor=lead, project=cast.project, user=gone, role="viewer")
    with pytest.raises(Conflict, match="at least one technical lead"):
        services.member_remove(actor=lead, project=cast.project, user=cast.lead, role="lead")
    services.member_add(actor=lead, project=cast.project, user=cast.bystander, role="lead")
    services.member_remove(actor=lead, project=cast.project, user=cast.lead, role="lead")
    with pytest.raises(NotFound):
        services.member_remove(
            actor=cast.bystander.as_actor(), project=cast.project, user=cast.lead, role="lead"
        )


def test_an_administrator_manages_members_but_sees_nothing_and_lets_nobody_in_by_themselves(
    cast: Cast,
) -> None:
    admin = make_user(cast.organisation, "admin", organisation_role=OrganisationRole.ADMIN)
    actor = admin.as_actor()
    services.member_add(actor=actor, project=cast.project, user=cast.bystander, role="viewer")
    with pytest.raises(NotPermitted, match="themselves"):
        services.member_add(actor=actor, project=cast.project, user=admin, role="lead")
    with pytest.raises(NotFound):
        selectors.project_get(actor, cast.project.pk)
    assert list(selectors.projects_administered_by(actor)) == [cast.project]


def test_what_is_affected_is_listed_once_and_completely(cast: Cast, heard: list[str]) -> None:
    lead = cast.lead.as_actor()
    item = services.affected_add(
        actor=lead, project=cast.project, kind="data", name="Tickets", owner="Support"
    )
    for kind, name in (("data", "Tickets"), ("data", " "), ("person", "Anna"), ("data", "x" * 201)):
        with pytest.raises(InvalidInput):
            services.affected_add(actor=lead, project=cast.project, kind=kind, name=name)
    foreign = services.project_create(actor=lead, name="Other")
    with pytest.raises(NotFound):
        services.affected_remove(actor=lead, project=foreign, item=item)
    services.affected_remove(actor=lead, project=cast.project, item=item)
    assert last_entry(cast.project).before == {
        "kind": "data",
        "name": "Tickets",
        "owner": "Support",
        "note": "",
    }
    assert len(heard) == 2


def test_readiness_needs_what_shows_it_and_the_version_seen(cast: Cast) -> None:
    call: dict[str, Any] = {"actor": cast.lead.as_actor(), "project": cast.project, "kind": "logs"}
    with pytest.raises(InvalidInput, match="not complete"):
        services.readiness_set(**call, ready=True, basis=" ")
    row = services.readiness_set(**call, ready=True, basis="Loki", team=cast.team, version=0)
    assert row.version == 1
    assert services.readiness_set(**call, ready=True, basis="Loki", team=cast.team, version=1).version == 1
    assert services.readiness_set(**call, ready=False, basis="Loki", version=1).version == 2
    with pytest.raises(StaleVersion):
        services.readiness_set(**call, ready=True, basis="Elastic", version=1)
    with pytest.raises(InvalidInput):
        services.readiness_set(**(call | {"kind": "moon"}), ready=False)
    assert cast.outsider.organisation is not None
    with pytest.raises(InvalidInput):
        services.readiness_set(**call, ready=False, team=make_team(cast.outsider.organisation))


def test_a_declaration_says_what_and_where_from(cast: Cast) -> None:
    call: dict[str, Any] = {"actor": cast.lead.as_actor(), "project": cast.project, "kind": "real_requests"}
    with pytest.raises(InvalidInput) as caught:
        services.declaration_set(**call, statement="500 tickets", source="")
    assert caught.value.errors[0].pointer == "/source"
    assert services.declaration_set(**call, statement="500 tickets", source="Export 7").version == 1
    with pytest.raises(StaleVersion):
        services.declaration_set(**call, statement="600", source="Export 8", version=0)


def test_versions_of_a_scenario_are_written_once(cast: Cast, heard: list[str]) -> None:
    lead = cast.lead.as_actor()
    first = services.scenario_create(
        actor=lead, project=cast.project, slug="short", name="Short", kind="short_request", spec=make_spec()
    )
    services.scenario_version_approve(actor=lead, version=first)
    second = services.scenario_version_add(
        actor=lead, scenario=first.scenario, spec=make_spec(output_tokens=32).as_json()
    )
    assert (str(first), first.state, str(second), second.state) == ("short@1", "approved", "short@2", "draft")
    assert first.digest != second.digest
    services.scenario_version_approve(actor=lead, version=second)
    first.refresh_from_db()
    assert first.state == "approved"
    assert [str(version) for version in selectors.approved_versions(cast.project)] == ["short@1", "short@2"]
    with pytest.raises(InvalidInput, match="Nothing differs"):
        services.scenario_version_add(actor=lead, scenario=first.scenario, spec=make_spec(output_tokens=32))
    services.scenario_version_retire(actor=lead, version=first)
    for change in (services.scenario_version_retire, services.scenario_version_approve):
        with pytest.raises(Conflict, match="short@1 is Retired"):
            change(actor=lead, version=first)
    assert len(heard) == 3


@pytest.mark.parametrize("slug", ["", "Short", "a b", "a--b", "-a", "短", "x" * 61])
def test_a_short_name_is_plain(cast: Cast, slug: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        services.scenario_create(
            actor=cast.lead.as_actor(),
            project=cast.project,
            slug=slug,
            name="S",
            kind="short_request",
            spec={},
        )
    pointers = [error.pointer for error in caught.value.errors]
    assert pointers[0] == "/slug"
    assert "/spec/input_tokens" in pointers
    assert not ScenarioVersion.objects.exists()


def test_an_interruption_scenario_interrupts(cast: Cast) -> None:
    with pytest.raises(InvalidInput) as caught:
        services.scenario_create(
            actor=cast.lead.as_actor(),
            project=cast.project,
            slug="cut",
            name="Cut",
            kind="interruption",
            spec=make_spec(),
        )
    assert caught.value.errors[0].pointer == "/spec/interruptions"


def test_a_version_is_found_by_its_written_name(cast: Cast) -> None:
    version = make_scenario_version(cast.project, "short")
    assert selectors.scenario_version_find(cast.project, "short@1") == version
    for unknown in ("short@2", "long@1", "short", "short@x", "@", "short@99999999999", "short@²"):
        with pytest.raises(InvalidInput, match="Approved are: short@1"):
            selectors.scenario_version_find(cast.project, unknown)


def test_history_names_people_and_stays_in_the_organisation(cast: Cast) -> None:
    services.affected_add(actor=cast.lead.as_actor(), project=cast.project, kind="team", name="Support")
    assert [entry.verb for entry in selectors.history(cast.viewer.as_actor(), cast.project)] == [
        "affected.added"
    ]
    for stranger in (cast.bystander, cast.outsider):
        with pytest.raises(NotFound):
            selectors.history(stranger.as_actor(), cast.project)


def test_visible_projects_by_person(cast: Cast) -> None:
    token, _plain = make_ci_token(cast.project, sponsor=cast.lead)
    blind, _plain = make_ci_token(cast.project, sponsor=cast.lead, scopes=("runs:write",))
    seen = {
        who: list(selectors.projects_visible_to(actor))
        for who, actor in {
            "viewer": cast.viewer.as_actor(),
            "auditor": cast.auditor.as_actor(),
            "token": token.as_actor(),
            "blind": blind.as_actor(),
            "bystander": cast.bystander.as_actor(),
        }.items()
    }
    assert seen == {
        "viewer": [cast.project],
        "auditor": [cast.project],
        "token": [cast.project],
        "blind": [],
        "bystander": [],
    }
    assert cast.project not in selectors.projects_visible_to(cast.outsider.as_actor())
    assert ProjectMember.objects.filter(user=cast.outsider).count() == 1


def test_what_is_affected_is_edited_in_the_version_one_has_seen(cast: Cast) -> None:
    actor = cast.contributor.as_actor()
    given = {"actor": actor, "project": cast.project}
    item = services.affected_add(**given, kind="team", name="Help desk")
    other = services.affected_add(**given, kind="team", name="Sales")
    changed = services.affected_update(**given, item=item, version=1, owner=" Li ", name="Desk")
    assert (changed.name, changed.owner, changed.kind, changed.version) == ("Desk", "Li", "team", 2)
    entry = AuditEntry.objects.get(verb="affected.changed")
    assert (entry.before, entry.after) == (
        {"name": "Help desk", "owner": ""},
        {"name": "Desk", "owner": "Li"},
    )
    with pytest.raises(StaleVersion):
        services.affected_update(**given, item=item, version=1, note="late")
    for wrong in ({"name": "Sales"}, {"name": " "}, {"kind": "city"}, {"owner": "x" * 201}):
        with pytest.raises(InvalidInput):
            services.affected_update(**given, item=changed, version=2, **wrong)
    assert services.affected_update(**given, item=other, version=1, name="Sales").version == 1
    with pytest.raises(NotPermitted):
        services.affected_update(
            actor=cast.viewer.as_actor(), project=cast.project, item=item, version=2, name="x"
        )
