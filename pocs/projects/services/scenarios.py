"""Scenarios: their versions are written once, approved, and retired; an edit makes the next one."""

import re
from collections.abc import Collection
from typing import Any

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from pocs.common import audit
from pocs.common.actors import Actor
from pocs.common.canonical import digest
from pocs.common.errors import Conflict, FieldError, InvalidInput
from pocs.common.phrases import said
from pocs.common.versions import save_version
from pocs.people import policies
from pocs.projects.changes import notify_change
from pocs.projects.choices import ScenarioKind, ScenarioState
from pocs.projects.matrix_builder import plan_of
from pocs.projects.models import Project, Scenario, ScenarioVersion
from pocs.projects.scenario_kinds import options_wrong
from pocs.projects.scenario_spec import ScenarioSpec
from pocs.projects.services.projects import require_open

_SLUG = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")


def scenario_create(
    *, actor: Actor, project: Project, slug: str, name: str, kind: str, spec: ScenarioSpec | dict[str, Any]
) -> ScenarioVersion:
    """Create a scenario and return its first version, in draft."""
    policies.require(actor, "scenario.edit", project)
    require_open(project)
    slug, name = slug.strip(), name.strip()
    wrong: list[FieldError] = []
    if not _SLUG.fullmatch(slug) or len(slug) > 60:
        text = _("Use small letters, digits and single hyphens, at most 60 characters.")
        wrong.append(FieldError("/slug", "invalid", text))
    elif project.scenarios.filter(slug=slug).exists():
        text = _("There is already a scenario “%(slug)s”; edit it to make a new version.") % {"slug": slug}
        wrong.append(FieldError("/slug", "taken", text))
    if not name or len(name) > 160:
        wrong.append(FieldError("/name", "required", _("A scenario needs a name of at most 160 characters.")))
    if kind not in ScenarioKind.values:
        wrong.append(FieldError("/kind", "unknown", _("There is no such kind of scenario.")))
    body, spec_errors = _read_spec(spec, kind, project)
    if wrong or spec_errors:
        raise InvalidInput(_("Some of the scenario's input is wrong."), wrong + spec_errors)
    with transaction.atomic():
        Project.objects.select_for_update().get(pk=project.pk)
        scenario = Scenario.objects.create(project=project, slug=slug, name=name, kind=kind)
        return _store_version(actor, scenario, body, verb="scenario.created")


def scenario_version_add(
    *, actor: Actor, scenario: Scenario, spec: ScenarioSpec | dict[str, Any]
) -> ScenarioVersion:
    """Add the next version, in draft; earlier ones, and the runs made with them, stay as they are."""
    project = scenario.project
    policies.require(actor, "scenario.edit", project)
    require_open(project)
    body, wrong = _read_spec(spec, scenario.kind, project)
    if wrong:
        raise InvalidInput(_("Some of the scenario's input is wrong."), wrong)
    with transaction.atomic():
        Scenario.objects.select_for_update().get(pk=scenario.pk)
        last = scenario.versions.first()
        if last is not None and last.digest == digest(body):
            raise InvalidInput(_("Nothing differs from %(version)s.") % {"version": last})
        return _store_version(actor, scenario, body, verb="scenario.version_added")


def scenario_version_approve(*, actor: Actor, version: ScenarioVersion) -> ScenarioVersion:
    """Approve a draft version for runs; older approved versions stay approved."""
    approver = {"approved_by_id": actor.user_id, "approved_at": timezone.now()}
    return _set_state(actor, version, ScenarioState.APPROVED, {ScenarioState.DRAFT}, approver)


def scenario_version_retire(*, actor: Actor, version: ScenarioVersion) -> ScenarioVersion:
    """Take a version out of use; runs made with it keep it."""
    return _set_state(
        actor, version, ScenarioState.RETIRED, {ScenarioState.DRAFT, ScenarioState.APPROVED}, {}
    )


def _set_state(
    actor: Actor,
    version: ScenarioVersion,
    to: ScenarioState,
    allowed_from: set[ScenarioState],
    fields: dict[str, Any],
) -> ScenarioVersion:
    project = version.scenario.project
    policies.require(actor, "scenario.approve", project)
    require_open(project)
    with transaction.atomic():
        stored = ScenarioVersion.objects.select_for_update().select_related("scenario").get(pk=version.pk)
        before = ScenarioState(stored.state)
        if before not in allowed_from:
            text = _("%(version)s is %(state)s and cannot become %(to)s.")
            raise Conflict(text % {"version": stored, "state": before.label, "to": to.label})
        save_version(stored, state=to.value, **fields)
        audit.record(
            actor=actor,
            verb=f"scenario.{to.value}",
            obj=stored,
            project_id=project.pk,
            before={"state": before.value},
            after={"state": to.value},
        )
        what = said(gettext_lazy("%(version)s became %(to)s"), version=str(stored), to=to.label)
        notify_change(project=project, actor=actor, obj=stored, what=what)
    version.state, version.version = stored.state, stored.version
    return stored


def _read_spec(
    spec: ScenarioSpec | dict[str, Any], kind: str, project: Project
) -> tuple[dict[str, Any], list[FieldError]]:
    """The stored form of a spec, and what is wrong with it, with pointers below `/spec`."""
    data = spec.as_json() if isinstance(spec, ScenarioSpec) else spec
    try:
        checked = ScenarioSpec.from_json(data, pointer="/spec")
    except InvalidInput as error:
        return {}, error.errors
    if kind == ScenarioKind.INTERRUPTION and not checked.interruptions:
        text = _("An interruption scenario needs at least one interruption (S5, S11).")
        return {}, [FieldError("/spec/interruptions", "required", text)]
    body = checked.as_json()
    wrong = options_wrong(kind, body) + _workload_wrong(checked, project)
    return ({}, wrong) if wrong else (body, [])


def _workload_wrong(spec: ScenarioSpec, project: Project) -> list[FieldError]:
    """What is wrong with the file a spec rests on: the project's, looked at, with what is asked of it."""
    if not spec.workload:
        return []
    file = project.workloads.filter(digest=spec.workload).defer("content").first()
    if file is None:
        text = _("The project has no request set or trace of this digest.")
        return [FieldError("/spec/workload", "unknown", text)]
    if file.confirmed_at is None:
        text = _("Look at what was read of “%(name)s” and confirm it first.") % {"name": file.name}
        return [FieldError("/spec/workload", "unconfirmed", text)]
    if spec.arrival.startswith("trace") and file.report["arrivals"] is None:
        text = _("“%(name)s” has no times of arrival to replay.") % {"name": file.name}
        return [FieldError("/spec/arrival", "contradicts", text)]
    return []


def _store_version(actor: Actor, scenario: Scenario, body: dict[str, Any], *, verb: str) -> ScenarioVersion:
    last = scenario.versions.first()
    version = ScenarioVersion.objects.create(
        scenario=scenario,
        number=last.number + 1 if last else 1,
        spec=body,
        digest=digest(body),
        created_by_id=actor.answers_with,
    )
    after = {"state": version.state, "number": version.number, "digest": version.digest, "spec": body}
    audit.record(actor=actor, verb=verb, obj=version, project_id=scenario.project_id, after=after)
    return version


def scenarios_add_missing(*, actor: Actor, project: Project, slugs: Collection[str]) -> list[ScenarioVersion]:
    """Create those of the proposals for the matrix that are named, each as a draft to be approved."""
    policies.require(actor, "scenario.edit", project)
    require_open(project)
    with transaction.atomic():
        Project.objects.select_for_update().get(pk=project.pk)
        chosen = [one.draft for one in plan_of(project).proposals if one.draft.slug in slugs]
        if not chosen:
            raise InvalidInput(_("Choose at least one scenario that is proposed."))
        return [
            scenario_create(
                actor=actor,
                project=project,
                slug=draft.slug,
                name=str(draft.name),
                kind=draft.kind,
                spec=draft.spec,
            )
            for draft in chosen
        ]
