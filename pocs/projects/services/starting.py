"""Beginning a project: empty, from a template, or as the clone of another."""

from typing import Any

from django.db import transaction
from django.utils.translation import gettext as _

from pocs.common import audit
from pocs.common.actors import Actor
from pocs.common.errors import FieldError, InvalidInput
from pocs.people import policies
from pocs.people.roles import ProjectRole
from pocs.projects.blueprints import BLUEPRINTS, Blueprint
from pocs.projects.choices import ScenarioState
from pocs.projects.models import (
    AffectedItem,
    Declaration,
    Project,
    ProjectMember,
    ReadinessItem,
    ScenarioVersion,
)
from pocs.projects.services.projects import EDITABLE_FIELDS, project_create
from pocs.projects.services.scenarios import scenario_create
from pocs.projects.services.workloads import workloads_copy

#: of a project, what its clone begins with; the name is the clone's own
CLONED_FIELDS = tuple(name for name in EDITABLE_FIELDS if name != "name")


@transaction.atomic
def project_start(*, actor: Actor, name: str, template: str = "", goal: str = "", **fields: Any) -> Project:
    """Create a project in draft, filled by a template of `pocs.projects.blueprints` where one is named.

    What the template fills in is a proposal: no gate counts it before a person states it.
    """
    if template and template not in BLUEPRINTS:
        text = _("There is no such template; choose one of %(known)s.") % {"known": ", ".join(BLUEPRINTS)}
        raise InvalidInput(text, [FieldError("/template", "unknown", text)])
    blueprint = BLUEPRINTS.get(template)
    if blueprint is not None and not goal.strip():
        goal = str(blueprint.goal)
    project = project_create(actor=actor, name=name, goal=goal, origin={"template": template}, **fields)
    if blueprint is not None:
        _fill(actor, project, blueprint)
    return project


@transaction.atomic
def project_clone(*, actor: Actor, source: Project, name: str, with_members: bool = False) -> Project:
    """A new project in draft with what another one declares; the actor leads it.

    Carried over: the description, what is affected, readiness points (not ready, their basis kept),
    declarations, the newest version of each scenario (as a draft), and the roles when asked for.
    Never: runs, evidence, packages, signatures, waivers, decisions, tokens.
    """
    policies.require(actor, "project.view", source)
    fields = {field: getattr(source, field) for field in CLONED_FIELDS}
    project = project_create(actor=actor, name=name, origin={"cloned_from_id": source.pk}, **fields)
    for item in source.affected.all():
        kept = {"kind": item.kind, "name": item.name, "owner": item.owner, "note": item.note}
        _record(actor, "affected.added", AffectedItem.objects.create(project=project, **kept), kept)
    for point in source.readiness.all():
        _propose_readiness(actor, project, point.kind, point.basis, point.team_id)
    for row in source.declarations.all():
        _propose_declaration(actor, project, row.kind, row.statement, row.source)
    rested_on = ScenarioVersion.objects.filter(scenario__project=source).values_list(
        "spec__workload", flat=True
    )
    workloads_copy(
        actor=actor, source=source, project=project, digests={digest for digest in rested_on if digest}
    )
    for scenario in source.scenarios.all():
        version = scenario.versions.exclude(state=ScenarioState.RETIRED).order_by("-number").first()
        if version is not None:
            scenario_create(
                actor=actor,
                project=project,
                slug=scenario.slug,
                name=scenario.name,
                kind=scenario.kind,
                spec=version.spec,
            )
    if with_members:
        _copy_members(actor, source, project)
    return project


def _fill(actor: Actor, project: Project, blueprint: Blueprint) -> None:
    for kind, basis in blueprint.readiness.items():
        _propose_readiness(actor, project, kind.value, str(basis), None)
    for declared, statement in blueprint.declarations.items():
        _propose_declaration(actor, project, declared.value, str(statement), "")
    for draft in blueprint.scenarios:
        scenario_create(
            actor=actor,
            project=project,
            slug=draft.slug,
            name=str(draft.name),
            kind=draft.kind.value,
            spec=draft.spec,
        )


def _propose_readiness(actor: Actor, project: Project, kind: str, basis: str, team_id: int | None) -> None:
    values = {"ready": False, "basis": basis, "team_id": team_id}
    row = ReadinessItem.objects.create(project=project, kind=kind, **values)
    _record(actor, "readiness.set", row, {"kind": kind} | values)


def _propose_declaration(actor: Actor, project: Project, kind: str, statement: str, source: str) -> None:
    values = {"statement": statement, "source": source}
    row = Declaration.objects.create(project=project, kind=kind, **values)
    _record(actor, "declaration.set", row, {"kind": kind} | values)


def _copy_members(actor: Actor, source: Project, project: Project) -> None:
    """Roles of people who are still active; the actor leads the new project already."""
    rows = source.members.filter(user__is_active=True).select_related("user")
    for row in rows.exclude(user_id=actor.answers_with, role=ProjectRole.LEAD):
        member = ProjectMember.objects.create(project=project, user=row.user, role=row.role)
        _record(
            actor, "member.added", member, {"user": row.user_id, "person": str(row.user), "role": row.role}
        )


def _record(actor: Actor, verb: str, row: Any, after: dict[str, Any]) -> None:
    audit.record(actor=actor, verb=verb, obj=row, project_id=row.project_id, after=after)
