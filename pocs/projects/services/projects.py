"""The project itself: creating, editing, and its way from draft to closed."""

from typing import Any

from django.db import transaction
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from pocs.common import audit, events
from pocs.common.actors import Actor
from pocs.common.errors import Conflict, FieldError, GateNotMet, InvalidInput
from pocs.common.versions import changed, save_version
from pocs.people import policies
from pocs.people.models import Organisation
from pocs.people.roles import ProjectRole
from pocs.projects.changes import notify_change
from pocs.projects.choices import ProjectState
from pocs.projects.gates import missing_before
from pocs.projects.models import Project, ProjectMember
from pocs.projects.states import CLOSED_STATES, REOPENINGS, next_state

#: what people write about a project; state and version have their own ways
EDITABLE_FIELDS = (
    "name",
    "goal",
    "optimisation_goal",
    "optimisation_goal",
    "where_applies",
    "where_not",
    "demo_environment_only",
    "environment_note",
    "supplier",
    "budget_basis",
    "responsibility_boundary",
)


def require_open(project: Project) -> None:
    """Raise Conflict for a project that is closed or cancelled: its record stays as it is."""
    if project.state in CLOSED_STATES:
        text = _("The project is %(state)s; nothing in it can be changed any more.")
        raise Conflict(text % {"state": project.get_state_display()})


def project_create(
    *, actor: Actor, name: str, goal: str = "", origin: dict[str, Any] | None = None, **fields: Any
) -> Project:
    """Create a project in draft, with its creator as lead; `fields` are among EDITABLE_FIELDS.

    Any person of the organisation may, auditors and CI tokens may not. `origin` says what it was
    made from: `template` or `cloned_from_id`.
    """
    creator = policies.creating_require(actor)
    values = _checked({"name": name, "goal": goal} | fields)
    with transaction.atomic():
        Organisation.objects.select_for_update().get(pk=actor.organisation_id)
        _require_free_name(actor.organisation_id, values["name"])
        made_from = {key: value for key, value in (origin or {}).items() if value}
        project = Project.objects.create(
            organisation_id=actor.organisation_id, created_by=creator, **values, **made_from
        )
        ProjectMember.objects.create(project=project, user=creator, role=ProjectRole.LEAD)
        after = values | made_from | {"state": project.state, "lead": creator.pk}
        audit.record(actor=actor, verb="project.created", obj=project, project_id=project.pk, after=after)
    return project


def project_update(*, actor: Actor, project: Project, version: int, **fields: Any) -> Project:
    """Change fields of a project in the version its editor has seen; only what differs is stored."""
    policies.require(actor, "project.edit", project)
    require_open(project)
    values = _checked(fields)
    with transaction.atomic():
        stored = Project.objects.select_for_update().get(pk=project.pk)
        before, after = changed(stored, values)
        if "name" in after:
            _require_free_name(project.organisation_id, after["name"])
        if version != stored.version or after:
            save_version(stored, version=version, **after)
        if after:
            audit.record(
                actor=actor,
                verb="project.changed",
                obj=stored,
                project_id=project.pk,
                before=before,
                after=after,
            )
            what = gettext_lazy("The project's description changed")
            notify_change(project=stored, actor=actor, obj=stored, what=what)
    return stored


def project_advance(*, actor: Actor, project: Project, to: str) -> Project:
    """Take the project to its next state; GateNotMet says what is missing, Conflict what is out of order."""
    policies.require(actor, "project.advance", project)
    _require_next(Project.objects.get(pk=project.pk), _state(to))
    return project_state_set(actor=actor, project=project, to=to)


def project_state_set(*, actor: Actor, project: Project, to: str) -> Project:
    """Set the state, with the same gates and without a question of rights: for transitions of other apps.

    Forward one step at a time; backward only when a decision was revoked. The row is locked while
    the gates are asked, so two callers cannot both move it.
    """
    target = _state(to)
    with transaction.atomic():
        stored = Project.objects.select_for_update().get(pk=project.pk)
        current = ProjectState(stored.state)
        if (current, target) not in REOPENINGS:
            _require_next(stored, target)
            missing = missing_before(stored, target)
            if missing:
                text = _("The project cannot become “%(state)s” yet: %(count)s points are missing.")
                raise GateNotMet(text % {"state": target.label, "count": len(missing)}, missing)
        _move(actor, stored, target, verb="project.state_changed")
    project.state, project.version = stored.state, stored.version
    return stored


def project_cancel(*, actor: Actor, project: Project, reason: str) -> Project:
    """Give the project up, from any open state, with a reason that the history keeps."""
    policies.require(actor, "project.advance", project)
    if not reason.strip():
        text = _("Say why the project is given up.")
        raise InvalidInput(text, [FieldError("/reason", "required", text)])
    with transaction.atomic():
        stored = Project.objects.select_for_update().get(pk=project.pk)
        require_open(stored)
        _move(actor, stored, ProjectState.CANCELLED, verb="project.cancelled", reason=reason.strip())
    project.state, project.version = stored.state, stored.version
    return stored


def _move(actor: Actor, project: Project, to: ProjectState, *, verb: str, **extra: Any) -> None:
    before = project.state
    save_version(project, state=to.value)
    audit.record(
        actor=actor,
        verb=verb,
        obj=project,
        project_id=project.pk,
        before={"state": before},
        after={"state": to.value} | extra,
    )
    events.emit(f"project:{project.pk}", "state", {"state": to.value, "before": before, "by": actor.label})


def _state(value: str) -> ProjectState:
    try:
        return ProjectState(value)
    except ValueError:
        text = _("“%(value)s” is no state of a project.") % {"value": value}
        raise InvalidInput(text, [FieldError("/to", "unknown", text)]) from None


def _require_next(project: Project, target: ProjectState) -> None:
    require_open(project)
    if target == ProjectState.CANCELLED:
        raise Conflict(_("A project is cancelled with a reason, not advanced."))
    following = next_state(project)
    if target != following:
        text = _("The project is “%(now)s”; the next state is “%(next)s”, not “%(asked)s”.")
        names = {
            "now": project.get_state_display(),
            "next": following and following.label,
            "asked": target.label,
        }
        raise Conflict(text % names)


def _checked(fields: dict[str, Any]) -> dict[str, Any]:
    """The fields with white space trimmed; InvalidInput for unknown ones, wrong types and bad lengths."""
    wrong: list[FieldError] = []
    values: dict[str, Any] = {}
    for name, value in fields.items():
        if name not in EDITABLE_FIELDS:
            wrong.append(FieldError(f"/{name}", "unknown", _("There is no such field.")))
            continue
        if name == "demo_environment_only":
            if not isinstance(value, bool):
                wrong.append(FieldError(f"/{name}", "type", _("Say yes or no.")))
            values[name] = value
            continue
        text = value.strip() if isinstance(value, str) else value
        limit = getattr(Project._meta.get_field(name), "max_length", None)
        if not isinstance(text, str) or "\x00" in text:
            wrong.append(FieldError(f"/{name}", "type", _("This must be text.")))
        elif limit and len(text) > limit:
            message = _("At most %(limit)s characters; there are %(count)s.") % {
                "limit": limit,
                "count": len(text),
            }
            wrong.append(FieldError(f"/{name}", "max_length", message))
        elif name == "name" and not text:
            wrong.append(FieldError("/name", "required", _("A project needs a name.")))
        values[name] = text
    if wrong:
        raise InvalidInput(_("Some fields of the project are wrong."), wrong)
    return values


def _require_free_name(organisation_id: int, name: str) -> None:
    if Project.objects.filter(organisation_id=organisation_id, name=name).exists():
        text = _("There is already a project named “%(name)s”.") % {"name": name}
        raise InvalidInput(text, [FieldError("/name", "taken", text)])
