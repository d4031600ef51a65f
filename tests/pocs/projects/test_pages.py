"""The pages of projects: who may open them, and that nothing typed is lost."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from pocs.common.models import AuditEntry
from pocs.people.models import User
from pocs.people.roles import OrganisationRole
from pocs.projects import services
from pocs.projects.models import CIToken, Project, ScenarioVersion
from pocs.projects.scenario_kinds import KIND_FORMS
from pocs.projects.ui.scenario_form import ScenarioForm
from tests.factories import Cast, complete_plan, make_scenario_version, make_user

PageAs = Callable[[User], Client]

#: pages below a project by who may open them beside the lead
READ_PAGES = ["detail", "members", "affected", "readiness", "declarations", "scenarios", "history"]
EDIT_PAGES = ["edit", "scenario_create"]
LEAD_PAGES = ["tokens", "cancel"]
SPEC = {
    "input_tokens": "64",
    "output_tokens": "16",
    "concurrency": "2",
    "requests": "8",
    "warmup_requests": "1",
    "distinct_prompts": "8",
    "shared_prefix_tokens": "0",
    "language": "en",
    "temperature": "0",
    "seed": "0",
    "timeout_s": "60",
}


def url(name: str, cast: Cast, *args: Any) -> str:
    return reverse(f"projects:{name}", args=[cast.project.pk, *args])


@pytest.mark.parametrize("name", READ_PAGES + EDIT_PAGES + LEAD_PAGES)
def test_who_may_open_a_page(cast: Cast, page_as: PageAs, name: str) -> None:
    target = url(name, cast)
    assert Client().get(target).status_code == 302
    assert page_as(cast.lead).get(target).status_code == 200
    assert page_as(cast.contributor).get(target).status_code == (403 if name in LEAD_PAGES else 200)
    for reader in (cast.viewer, cast.auditor):
        assert page_as(reader).get(target).status_code == (200 if name in READ_PAGES else 403)
    for stranger in (cast.bystander, cast.outsider):
        assert page_as(stranger).get(target).status_code == 404


@pytest.mark.parametrize(
    "name", ["advance", "cancel", "members", "member_remove", "affected", "tokens", "edit"]
)
def test_a_post_without_csrf_token_is_refused(cast: Cast, name: str) -> None:
    browser = Client(enforce_csrf_checks=True)
    browser.force_login(cast.lead)
    assert browser.post(url(name, cast), {"to": "planned", "reason": "x"}).status_code == 403


def test_posts_of_strangers_and_readers_change_nothing(cast: Cast, page_as: PageAs) -> None:
    complete_plan(cast.project, cast.team)
    version = make_scenario_version(cast.project, "short", state="draft")
    attempts = [
        (url("advance", cast), {"to": "planned"}),
        (url("edit", cast), {"name": "Taken over", "version": "1"}),
        (url("cancel", cast), {"reason": "x"}),
        (url("affected", cast), {"kind": "data", "name": "x"}),
        (url("members", cast), {"user": cast.viewer.pk, "role": "lead"}),
        (url("member_remove", cast), {"user": cast.reviewer.pk, "role": "reviewer"}),
        (url("readiness", cast), {"kind": "logs", "logs-version": "1", "logs-basis": ""}),
        (url("tokens", cast), {"name": "x", "scopes": ["read"], "expires_at": "2030-01-01T00:00"}),
        (url("scenario_version_state", cast, "short", 1), {"to": "approve"}),
        (url("scenario_create", cast), SPEC | {"slug": "s", "name": "S", "kind": "streaming"}),
    ]
    for target, data in attempts:
        for person, expected in ((cast.viewer, 403), (cast.outsider, 404), (cast.bystander, 404)):
            assert page_as(person).post(target, data).status_code == expected, target
    version.refresh_from_db()
    cast.project.refresh_from_db()
    assert (version.state, cast.project.state) == ("draft", "draft")
    assert not AuditEntry.objects.filter(organisation_id=cast.organisation.pk).exists()


def test_the_list_shows_own_projects_with_what_is_missing(cast: Cast, page_as: PageAs) -> None:
    shown = page_as(cast.viewer).get(reverse("projects:list")).content.decode()
    assert cast.project.name in shown
    assert ">10<" in shown
    for stranger in (cast.bystander, cast.outsider):
        assert cast.project.name not in page_as(stranger).get(reverse("projects:list")).content.decode()


def test_creating_leads_to_the_project_and_half_empty_forms_keep_what_was_typed(
    cast: Cast, page_as: PageAs
) -> None:
    browser = page_as(cast.bystander)
    refused = browser.post(reverse("projects:create"), {"name": "", "goal": "Typed with care"})
    assert refused.status_code == 400
    assert "Typed with care" in refused.content.decode()
    taken = browser.post(reverse("projects:create"), {"name": cast.project.name, "goal": "Typed with care"})
    assert taken.status_code == 400
    assert "already a project" in taken.content.decode()
    made = browser.post(reverse("projects:create"), {"name": "New one", "goal": "Decide"}, follow=True)
    assert "New one" in made.content.decode()


def test_the_project_page_names_what_is_missing_and_a_refused_step_does_too(
    cast: Cast, page_as: PageAs
) -> None:
    browser = page_as(cast.lead)
    shown = browser.get(url("detail", cast)).content.decode()
    assert "missing: the affected data (E8, Q11)" in shown
    assert url("affected", cast) in shown
    refused = browser.post(url("advance", cast), {"to": "planned"})
    assert refused.status_code == 409
    assert "cannot become “Planned” yet" in refused.content.decode()
    complete_plan(cast.project, cast.team)
    moved = browser.post(url("advance", cast), {"to": "planned"}, follow=True).content.decode()
    assert "The project is now “Planned”." in moved


def test_a_viewer_sees_no_button_that_is_refused(cast: Cast, page_as: PageAs) -> None:
    shown = page_as(cast.viewer).get(url("detail", cast)).content.decode()
    assert "Move on to" not in shown
    assert url("edit", cast) not in shown
    assert url("tokens", cast) not in shown
    for person, offered in ((cast.viewer, True), (cast.auditor, False)):
        listed = page_as(person).get(reverse("projects:list")).content.decode()
        assert (reverse("projects:create") in listed) is offered


def test_the_second_tab_sees_both_versions_and_may_then_save(cast: Cast, page_as: PageAs) -> None:
    browser = page_as(cast.lead)
    services.project_update(actor=cast.contributor.as_actor(), project=cast.project, version=1, goal="Theirs")
    data = {"name": cast.project.name, "goal": "Mine", "version": "1"}
    conflict = browser.post(url("edit", cast), data)
    assert conflict.status_code == 412
    text = conflict.content.decode()
    assert "Theirs" in text
    assert "Mine" in text
    assert 'name="version" value="2"' in text
    assert browser.post(url("edit", cast), data | {"version": "2"}).status_code == 302
    cast.project.refresh_from_db()
    assert cast.project.goal == "Mine"


def test_readiness_points_are_saved_one_by_one(cast: Cast, page_as: PageAs) -> None:
    browser = page_as(cast.contributor)
    half = {"kind": "logs", "logs-ready": "on", "logs-basis": "", "logs-version": "0"}
    refused = browser.post(url("readiness", cast), half)
    assert refused.status_code == 400
    assert "Say what shows that it is ready." in refused.content.decode()
    full = half | {"logs-basis": "Loki", "logs-team": str(cast.team.pk)}
    assert browser.post(url("readiness", cast), full).status_code == 302
    stale = browser.post(url("readiness", cast), full | {"logs-basis": "Elastic"})
    assert stale.status_code == 412
    text = stale.content.decode()
    assert "Loki" in text
    assert "Elastic" in text
    assert browser.post(url("readiness", cast), full | {"logs-version": "x"}).status_code == 400


def test_declarations_and_affected_are_saved(cast: Cast, page_as: PageAs) -> None:
    browser = page_as(cast.contributor)
    half = {"kind": "real_roles", "real_roles-statement": "Three roles", "real_roles-version": "0"}
    assert "Say where it comes from." in browser.post(url("declarations", cast), half).content.decode()
    assert browser.post(url("declarations", cast), half | {"real_roles-source": "IAM"}).status_code == 302
    assert browser.post(url("affected", cast), {"kind": "data", "name": "Tickets"}).status_code == 302
    refused = browser.post(url("affected", cast), {"kind": "data", "name": "Tickets", "note": "Kept text"})
    assert refused.status_code == 400
    assert "Kept text" in refused.content.decode()
    item = cast.project.affected.get()
    assert browser.post(url("affected_remove", cast, item.pk)).status_code == 302
    assert not cast.project.affected.exists()


def test_a_scenario_from_form_to_approved_version(cast: Cast, page_as: PageAs) -> None:
    browser = page_as(cast.lead)
    data = SPEC | {
        "slug": "cut",
        "name": "Cut off",
        "kind": "interruption",
        "interruptions": "decode every 3 after 8 tokens\nqueue",
        "limits": "p95 ttft_ms <= 800",
        "prompts": "First\nprompt\n---\nSecond",
        "tenants": "a，b, c",
    }
    made = browser.post(url("scenario_create", cast), data, follow=True)
    assert "cut@1" in made.content.decode()
    version = ScenarioVersion.objects.get()
    assert version.spec["interruptions"] == [
        {"phase": "decode", "every": 3, "after_tokens": 8},
        {"phase": "queue", "every": 4, "after_tokens": 4},
    ]
    assert version.spec["limits"] == [{"metric": "ttft_ms", "percentile": "p95", "max": 800.0}]
    assert version.spec["prompts"] == ["First\nprompt", "Second"]
    assert version.spec["tenants"] == ["a", "b", "c"]
    assert version.digest in made.content.decode()
    browser.post(url("scenario_version_state", cast, "cut", 1), {"to": "approve"})
    form = browser.get(url("scenario_edit", cast, "cut")).context["form"]
    same = browser.post(url("scenario_edit", cast, "cut"), form.initial | {"rate": ""})
    assert "Nothing differs from cut@1" in same.content.decode()
    edited = browser.post(url("scenario_edit", cast, "cut"), form.initial | {"rate": "", "requests": "12"})
    assert edited.status_code == 302
    assert [row.state for row in ScenarioVersion.objects.order_by("number")] == ["approved", "draft"]
    newest = browser.get(url("scenario", cast, "cut"))
    assert newest["Location"] == url("scenario_version", cast, "cut", 2)


def test_no_field_of_a_kind_takes_the_place_of_a_field_of_every_scenario() -> None:
    for kind, form in KIND_FORMS.items():
        assert not {option.name for option in form.fields} & set(ScenarioForm.base_fields), kind


@pytest.mark.parametrize("kind", ["capacity_search", "throttling"])
def test_a_search_in_steps_is_created_and_edited(cast: Cast, page_as: PageAs, kind: str) -> None:
    browser = page_as(cast.lead)
    data = SPEC | {"slug": "limit", "name": "Limit", "kind": kind, "load_shape": "poisson", "rate": "4"}
    data |= {"rate_low": "1", "rate_high": "8", "steps": "4", "limits": "p95 ttft_ms <= 800"}
    made = browser.post(url("scenario_create", cast), data)
    assert made.status_code == 302, made.content.decode()
    assert ScenarioVersion.objects.get().spec["options"]["steps"] == 4
    form = browser.get(url("scenario_edit", cast, "limit")).context["form"]
    assert form.initial["steps"] == 4


def test_a_wish_is_no_limit_and_the_form_keeps_it(cast: Cast, page_as: PageAs) -> None:
    data = SPEC | {"slug": "plan", "name": "Plan", "kind": "short_request", "limits": "latency < 100 ms"}
    refused = page_as(cast.lead).post(url("scenario_create", cast), data)
    assert refused.status_code == 400
    form = refused.context["form"]
    assert "names no percentile, phase, length and load" in str(form.errors["limits"])
    assert "latency &lt; 100 ms" in refused.content.decode()


def test_a_half_empty_scenario_shows_every_error_at_once(cast: Cast, page_as: PageAs) -> None:
    data = {"slug": "plan", "limits": "latency < 100 ms", "kind": "short_request", "seed": "-1"}
    refused = page_as(cast.lead).post(url("scenario_create", cast), data)
    errors = refused.context["form"].errors
    assert {"name", "input_tokens", "output_tokens", "concurrency", "requests", "limits", "seed"} <= set(
        errors
    )
    assert [len(errors[name]) for name in ("input_tokens", "limits")] == [1, 1]


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"input_tokens": ""}, "input_tokens"),
        ({"requests": "1"}, "requests"),
        ({"interruptions": "decode every often"}, "interruptions"),
        ({"interruptions": "network every 2"}, "interruptions"),
        ({"limits": "mean ttft_ms <= 5"}, "limits"),
        ({"slug": "Big Name"}, "slug"),
    ],
)
def test_wrong_fields_of_a_scenario_are_marked(
    cast: Cast, page_as: PageAs, change: dict[str, str], field: str
) -> None:
    data = SPEC | {"slug": "s", "name": "S", "kind": "short_request"} | change
    refused = page_as(cast.lead).post(url("scenario_create", cast), data)
    assert refused.status_code == 400
    assert list(refused.context["form"].errors) == [field]


def test_unknown_scenarios_and_versions_are_404(cast: Cast, page_as: PageAs) -> None:
    make_scenario_version(cast.project, "short")
    browser = page_as(cast.viewer)
    for name, args in (("scenario", ["long"]), ("scenario_version", ["short", 2])):
        assert browser.get(url(name, cast, *args)).status_code == 404


def test_a_token_is_shown_once(cast: Cast, page_as: PageAs) -> None:
    browser = page_as(cast.lead)
    expires = (timezone.now() + timedelta(days=3)).strftime("%Y-%m-%dT%H:%M")
    half = browser.post(url("tokens", cast), {"name": "CI", "expires_at": expires})
    assert half.status_code == 400
    data = {
        "name": "CI",
        "scopes": ["read"],
        "expires_at": expires,
        "allowed_addresses": "10.0.0.1, 10.1.0.0/16",
    }
    made = browser.post(url("tokens", cast), data)
    plaintext = made.context["plaintext"]
    assert plaintext in made.content.decode()
    assert made["Cache-Control"] == "no-store"
    assert plaintext not in browser.get(url("tokens", cast)).content.decode()
    token = CIToken.objects.get()
    assert token.sponsor == cast.lead
    offered = set(browser.get(url("tokens", cast)).context["form"].fields["sponsor"].queryset)
    assert offered == {cast.lead, cast.contributor}
    assert token.allowed_addresses == ["10.0.0.1/32", "10.1.0.0/16"]
    browser.post(url("token_revoke", cast, token.pk))
    token.refresh_from_db()
    assert token.revoked_at is not None


def test_members_page_gives_and_takes_roles_and_admins_reach_it(cast: Cast, page_as: PageAs) -> None:
    admin = make_user(cast.organisation, "admin", organisation_role=OrganisationRole.ADMIN)
    browser = page_as(admin)
    assert cast.project.name in browser.get(reverse("projects:list")).content.decode()
    assert browser.get(url("detail", cast)).status_code == 404
    given = browser.post(url("members", cast), {"user": cast.bystander.pk, "role": "reviewer"})
    assert given.status_code == 302
    again = browser.post(url("members", cast), {"user": cast.bystander.pk, "role": "reviewer"})
    assert "has this role already" in again.content.decode()
    foreign = browser.post(url("members", cast), {"user": cast.outsider.pk, "role": "reviewer"})
    assert foreign.status_code == 400
    last = browser.post(url("member_remove", cast), {"user": cast.lead.pk, "role": "lead"}, follow=True)
    assert "at least one technical lead" in last.content.decode()
    for wrong in ("", "x", "0", str(cast.outsider.pk)):
        assert browser.post(url("member_remove", cast), {"user": wrong, "role": "lead"}).status_code == 404


def test_cancelling_asks_for_a_reason(cast: Cast, page_as: PageAs) -> None:
    browser = page_as(cast.lead)
    assert browser.post(url("cancel", cast), {"reason": ""}).status_code == 400
    assert browser.post(url("cancel", cast), {"reason": "No budget"}).status_code == 302
    shown = browser.get(url("detail", cast)).content.decode()
    assert "Cancelled" in shown
    assert "Move on to" not in shown


def test_history_reads_as_sentences(cast: Cast, page_as: PageAs) -> None:
    services.project_update(actor=cast.lead.as_actor(), project=cast.project, version=1, goal="Other goal")
    shown = page_as(cast.viewer).get(url("history", cast)).content.decode()
    assert str(cast.lead) in shown
    assert "changed the project&#x27;s description" in shown
    assert "Decide about the assistant." in shown
    assert "Other goal" in shown


def test_the_audit_page_verifies_for_auditors_and_leads(cast: Cast, page_as: PageAs) -> None:
    secret = services.project_create(actor=cast.bystander.as_actor(), name="Led by another")
    services.affected_add(actor=cast.lead.as_actor(), project=cast.project, kind="data", name="Tickets")
    audit = reverse("projects:audit")
    for refused in (cast.viewer, cast.contributor):
        assert page_as(refused).get(audit).status_code == 403
    assert "Led by another" in page_as(cast.auditor).get(audit).content.decode()
    assert "Led by another" not in page_as(cast.lead).get(audit).content.decode()
    assert 'data-verified="yes"' in page_as(cast.lead).post(audit).content.decode()
    Project.objects.filter(pk=secret.pk).update(state="closed")
    assert 'data-verified="no"' in page_as(cast.auditor).post(audit).content.decode()


def test_the_project_page_needs_few_queries(
    cast: Cast, page_as: PageAs, django_assert_max_num_queries: Any
) -> None:
    complete_plan(cast.project, cast.team)
    for number in range(6):
        make_scenario_version(cast.project, f"scenario-{number}")
    browser = page_as(cast.lead)
    browser.get(url("detail", cast))
    with django_assert_max_num_queries(120):
        browser.get(url("detail", cast))


@pytest.mark.parametrize("path", ["projects/999999999999999999999/", "projects/0/"])
def test_odd_numbers_are_404(cast: Cast, page_as: PageAs, path: str) -> None:
    assert page_as(cast.lead).get(f"/{path}").status_code == 404


def test_an_affected_entry_is_edited_and_a_conflict_keeps_what_was_typed(cast: Cast, page_as: PageAs) -> None:
    item = services.affected_add(
        actor=cast.lead.as_actor(), project=cast.project, kind="data", name="Tickets", owner="Li"
    )
    browser, place = page_as(cast.contributor), url("affected_item", cast, item.pk)
    assert 'value="Tickets"' in browser.get(place).content.decode()
    form = {"kind": "data", "name": "Cases", "owner": "Li", "note": "", "version": "1"}
    assert browser.post(place, form).status_code == 302
    late = browser.post(place, form | {"name": "Typed late"})
    shown = late.content.decode()
    assert late.status_code == 412
    assert "Typed late" in shown
    assert "Cases" in shown
    assert browser.post(place, form | {"name": "Typed late", "version": "2"}).status_code == 302
    assert cast.project.affected.get().name == "Typed late"
