"""Projects from templates and clones, and the POC plan that is six tick boxes."""

from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from rest_framework.test import APIClient

from pocs.common import audit
from pocs.common.errors import InvalidInput, NotFound, NotPermitted
from pocs.evidence.models import Evidence
from pocs.people.models import User
from pocs.people.roles import ProjectRole
from pocs.projects import services
from pocs.projects.blueprints import BLUEPRINTS
from pocs.projects.choices import ProjectState, ReadinessKind, ScenarioState
from pocs.projects.gates import gate_status, missing_before
from pocs.projects.models import Project
from tests.factories import Cast, complete_plan, make_ci_token, make_run, make_scenario_version

As = Callable[[User], Client]
ApiAs = Callable[..., APIClient]


@pytest.mark.parametrize("key", BLUEPRINTS)
def test_a_template_proposes_a_matrix_that_the_gate_would_accept(cast: Cast, key: str) -> None:
    project = services.project_start(actor=cast.lead.as_actor(), name="From a template", template=key)
    specs = [version.spec for scenario in project.scenarios.all() for version in scenario.versions.all()]
    for name in ("input_tokens", "output_tokens", "concurrency"):
        assert len({spec[name] for spec in specs}) >= 2, name
    assert any(spec["interruptions"] for spec in specs)
    assert min(spec["distinct_prompts"] for spec in specs) > 1
    assert project.goal
    assert audit.verify(cast.organisation.pk) == []


@pytest.mark.parametrize("key", BLUEPRINTS)
def test_nothing_that_a_template_fills_in_counts(cast: Cast, key: str) -> None:
    project = services.project_start(actor=cast.lead.as_actor(), name="From a template", template=key)
    empty = services.project_start(actor=cast.lead.as_actor(), name="Empty")
    for state in (ProjectState.PLANNED, ProjectState.RUNNING):
        codes = [[item.code for item in missing_before(row, state)] for row in (project, empty)]
        assert codes[0] == codes[1]
    assert {version.state for s in project.scenarios.all() for version in s.versions.all()} == {"draft"}


def test_an_unknown_template_is_refused(cast: Cast) -> None:
    with pytest.raises(InvalidInput) as refusal:
        services.project_start(actor=cast.lead.as_actor(), name="Odd", template="magic")
    assert refusal.value.errors[0].pointer == "/template"
    assert not Project.objects.filter(name="Odd").exists()


def test_a_template_on_the_page_and_over_the_api(cast: Cast, page_as: As, api_as: ApiAs) -> None:
    client = page_as(cast.bystander)
    assert "new hardware" in client.get(reverse("projects:create")).content.decode().lower()
    assert (
        client.post(reverse("projects:create"), {"name": "By page", "template": "new_model"}).status_code
        == 302
    )
    project = Project.objects.get(name="By page")
    assert project.scenarios.count() == 5
    page = client.get(reverse("projects:detail", args=[project.pk])).content.decode()
    assert "A new model" in page
    api = api_as(cast.bystander)
    keys = [row["key"] for row in api.get(reverse("api-project-templates")).json()]
    assert keys == ["new_model", "new_engine", "new_hardware", "optimisation", "long_context"]
    made = api.post(reverse("api-projects"), {"name": "By API", "template": "long_context"})
    assert (made.status_code, made.json()["template"]) == (201, "long_context")
    assert api.post(reverse("api-projects"), {"name": "Bad", "template": "magic"}).status_code == 400
    patched = api.patch(
        reverse("api-project", args=[made.json()["id"]]), {"template": "new_model"}, headers={"If-Match": "*"}
    )
    assert patched.status_code == 400


def clonable(cast: Cast) -> Project:
    project = complete_plan(cast.project, cast.team)
    project.supplier = "GPU nodes: Example Cloud, which answers for their delivery."
    project.save()
    approved = make_scenario_version(project, "short", created_by=cast.contributor)
    make_scenario_version(project, "short", created_by=cast.contributor, input_tokens=128)
    make_scenario_version(project, "gone", state=ScenarioState.RETIRED)
    make_run(project, scenario_version=approved)
    Evidence.objects.create(project=project, type="runtime", title="Runs of March")
    return project


def test_a_clone_carries_what_is_declared_and_nothing_that_was_proved(cast: Cast) -> None:
    source = clonable(cast)
    clone = services.project_clone(actor=cast.viewer.as_actor(), source=source, name="Second try")
    assert (clone.state, clone.cloned_from_id, clone.supplier) == ("draft", source.pk, source.supplier)
    assert [item.name for item in clone.affected.all()] == [item.name for item in source.affected.all()]
    assert {point.ready for point in clone.readiness.all()} == {False}
    assert {point.basis for point in clone.readiness.all()} == {"Runbook 7"}
    assert clone.declarations.count() == 3
    (scenario,) = clone.scenarios.all()
    (version,) = scenario.versions.all()
    assert (scenario.slug, version.number, version.state, version.spec["input_tokens"]) == (
        "short",
        1,
        "draft",
        128,
    )
    assert (clone.runs.count(), clone.evidence.count(), clone.packages.count(), clone.ci_tokens.count()) == (
        0,
        0,
        0,
        0,
    )
    assert [(row.user_id, row.role) for row in clone.members.all()] == [(cast.viewer.pk, "lead")]
    missing = {item.code for item in missing_before(clone, ProjectState.PLANNED)}
    assert missing == {f"readiness.{kind.value}" for kind in ReadinessKind}
    assert audit.verify(cast.organisation.pk) == []


def test_the_roles_come_along_when_asked_for(cast: Cast) -> None:
    User.objects.filter(pk=cast.observer.pk).update(is_active=False)
    clone = services.project_clone(
        actor=cast.lead.as_actor(), source=cast.project, name="With people", with_members=True
    )
    roles = {(row.user_id, row.role) for row in clone.members.all()}
    assert (cast.business.pk, ProjectRole.SIGNER_BUSINESS) in roles
    assert cast.observer.pk not in {user for user, _role in roles}


def test_who_clones(cast: Cast, page_as: As, api_as: ApiAs) -> None:
    url = reverse("projects:clone", args=[cast.project.pk])
    api = reverse("api-clone", args=[cast.project.pk])
    for person, status in ((cast.outsider, 404), (cast.bystander, 404), (cast.auditor, 403)):
        assert page_as(person).post(url, {"name": "Copy"}).status_code == status
        assert api_as(person).post(api, {"name": "Copy"}).status_code == status
    token = make_ci_token(cast.project, sponsor=cast.lead)[1]
    assert api_as(token=token).post(api, {"name": "Copy"}).status_code == 403
    page = page_as(cast.viewer)
    assert "packages, signatures" in page.get(url).content.decode()
    assert page.post(url, {"name": cast.project.name}).status_code == 400
    assert page.post(url, {"name": "Copy"}).status_code == 302
    assert api_as(cast.viewer).post(api, {"name": "Copy two", "with_members": True}).status_code == 201
    with pytest.raises((NotFound, NotPermitted)):
        services.project_clone(actor=cast.outsider.as_actor(), source=cast.project, name="Copy three")


TICK_BOXES = [
    "accuracy over 95 %",
    "latency under 100 ms",
    "false positives under 2 %",
    "return on investment",
    "stakeholder approval",
    "compliance sign-off",
]


def test_case_14_six_tick_boxes_make_no_plan(cast: Cast, api_as: ApiAs) -> None:
    """A whole POC plan in six tick boxes stays in draft, and everything that is missing is listed."""
    client = api_as(cast.bystander)
    made = client.post(reverse("api-projects"), {"name": "Tick boxes", "goal": "\n".join(TICK_BOXES)}).json()
    scenario: dict[str, Any] = {
        "slug": "acceptance",
        "name": "Acceptance",
        "kind": "short_request",
        "spec": {"limits": ["latency < 100 ms"]},
    }
    refused = client.post(reverse("api-scenarios", args=[made["id"]]), scenario)
    assert refused.status_code == 400
    errors = {error["pointer"]: error for error in refused.json()["errors"]}
    assert errors["/spec/limits/0"]["code"] == "limit_incomplete"
    for word in ("percentile", "phase", "length", "load"):
        assert word in errors["/spec/limits/0"]["detail"]
    assert {"/spec/input_tokens", "/spec/output_tokens", "/spec/concurrency"} <= set(errors)
    advanced = client.post(reverse("api-advance", args=[made["id"]]), {"to": "planned"})
    assert (advanced.status_code, advanced.json()["type"]) == (409, "/problems/gate-not-met")
    project = Project.objects.get(pk=made["id"])
    assert project.state == ProjectState.DRAFT
    every = {item.code for status in gate_status(project) for item in status.missing}
    guards = {item.guard for status in gate_status(project) for item in status.missing}
    assert {"affected.application", "readiness.rollback", "where_not", "S8", "S9", "S10", "S11"} <= every
    # named signers, owners and dates of the tasks, the observer
    assert {"G9", "G10", "G11", "G12"} <= guards


def test_case_14_on_the_page(cast: Cast, page_as: As) -> None:
    client = page_as(cast.bystander)
    client.post(reverse("projects:create"), {"name": "Tick boxes", "goal": "\n".join(TICK_BOXES)})
    project = Project.objects.get(name="Tick boxes")
    refused = client.post(
        reverse("projects:scenario_create", args=[project.pk]),
        {"slug": "acceptance", "name": "Acceptance", "kind": "short_request", "limits": "latency < 100 ms"},
    )
    assert refused.status_code == 400
    assert "names no percentile, phase, length and load" in refused.content.decode()
    moved = client.post(reverse("projects:advance", args=[project.pk]), {"to": "planned"})
    assert moved.status_code == 409
    assert "rollback plan" in moved.content.decode()


def test_suppliers_take_several_lines(cast: Cast, page_as: As) -> None:
    lines = "Nodes: Example Cloud\n模型服务：示例公司，负责交付"
    project = cast.project
    services.project_update(
        actor=cast.lead.as_actor(), project=project, version=project.version, supplier=lines
    )
    page = page_as(cast.viewer).get(reverse("projects:detail", args=[project.pk])).content.decode()
    assert "Nodes: Example Cloud<br>模型服务" in page
