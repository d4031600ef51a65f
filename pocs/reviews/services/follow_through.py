"""Services of what follows a decision: the three tasks, each with an owner and a date (G11)."""

from datetime import date

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from pocs.common import audit
from pocs.common.actors import Actor
from pocs.common.errors import Conflict, GateNotMet
from pocs.people import policies
from pocs.people.models import User
from pocs.projects.choices import ProjectState
from pocs.projects.models import Project
from pocs.reviews.choices import TaskKind, TaskState
from pocs.reviews.guards import check_conditions
from pocs.reviews.models import FollowThroughTask
from pocs.reviews.services.support import (
    require_choice,
    require_date,
    require_member,
    require_open,
    require_person,
    require_reached,
    require_version,
    tell,
)


@transaction.atomic
def task_set(
    *,
    actor: Actor,
    project: Project,
    kind: str,
    owner: User | None,
    due_on: date | None,
    note: str = "",
    version: int | None = None,
) -> FollowThroughTask:
    """Say who sees to budget, procurement or launch, and by when; a done task is not changed (Conflict)."""
    require_person(actor)
    policies.require(actor, "followthrough.edit", project)
    require_open(project)
    require_choice("/kind", kind, TaskKind)
    owner = require_member("/owner", project, owner)
    row = FollowThroughTask.objects.select_for_update().filter(project=project, kind=kind).first()
    if row is None:
        row = FollowThroughTask(project=project, kind=kind, version=0)
    require_version(row, version)
    if row.state == TaskState.DONE:
        raise Conflict(_("The task is done already."))
    if row.due_on is None or row.due_on != due_on:  # a task that is late keeps its date until it gets another
        due_on = require_date("/due_on", due_on)
    before = _task(row) if row.pk else None
    row.owner, row.due_on, row.note = owner, due_on, note.strip()
    row.version += 1
    row.save()
    audit.record(
        actor=actor, verb="task.set", obj=row, project_id=project.pk, before=before, after=_task(row)
    )
    tell(project, "follow_through", task=kind, state=row.state)
    return row


@transaction.atomic
def task_done(*, actor: Actor, task: FollowThroughTask, note: str = "") -> FollowThroughTask:
    """Report a task as done, by its owner or whoever may edit it; an open condition blocks the launch."""
    project = task.project
    user_id = finishing_require(actor=actor, task=task)
    require_reached(project, ProjectState.DECIDED)
    row = FollowThroughTask.objects.select_for_update().filter(pk=task.pk).first()
    if row is None:
        raise Conflict(_("Nobody has been named for this task yet."))
    if row.state == TaskState.DONE:
        raise Conflict(_("The task is done already."))
    if row.kind == TaskKind.LAUNCH:
        missing = check_conditions(project)
        if missing:
            raise GateNotMet(_("The launch is blocked by open conditions."), missing)
    row.state, row.done_at, row.done_by_id = TaskState.DONE, timezone.now(), user_id
    if note.strip():
        row.note = note.strip()
    row.version += 1
    row.save()
    audit.record(actor=actor, verb="task.done", obj=row, project_id=project.pk, after=_task(row))
    tell(project, "follow_through", task=row.kind, state=row.state)
    return row


def finishing_require(*, actor: Actor, task: FollowThroughTask) -> int:
    """The id of the person who may report the task as done: its owner, or whoever may edit it."""
    user_id = require_person(actor)
    may = "project.view" if task.owner_id == user_id else "followthrough.edit"
    policies.require(actor, may, task.project)
    return user_id


def _task(row: FollowThroughTask) -> dict[str, str | None]:
    return {
        "kind": row.kind,
        "owner": str(row.owner) if row.owner else None,
        "due_on": row.due_on.isoformat() if row.due_on else None,
        "note": row.note,
        "state": row.state,
    }
