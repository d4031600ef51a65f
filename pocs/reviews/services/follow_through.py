"""Services of what follows a decision: the three tasks (G11) and the observation (G12)."""

from datetime import date, datetime
from decimal import Decimal

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from pocs.common import audit
from pocs.common.actors import Actor
from pocs.common.errors import Conflict, FieldError, GateNotMet, InvalidInput, Missing
from pocs.people import policies
from pocs.people.models import User
from pocs.projects.choices import ProjectState
from pocs.projects.models import Project
from pocs.reviews.choices import ObservationKind, ObservationState, TaskKind, TaskState
from pocs.reviews.models import FollowThroughTask, Observation, ObservationReading
from pocs.reviews.selectors import open_conditions
from pocs.reviews.services.support import (
    require_choice,
    require_date,
    require_member,
    require_open,
    require_person,
    require_reached,
    require_text,
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
    user_id = require_person(actor)
    project = task.project
    may = "project.view" if task.owner_id == user_id else "followthrough.edit"
    policies.require(actor, may, project)
    require_reached(project, ProjectState.DECIDED)
    row = FollowThroughTask.objects.select_for_update().filter(pk=task.pk).first()
    if row is None:
        raise Conflict(_("Nobody has been named for this task yet."))
    if row.state == TaskState.DONE:
        raise Conflict(_("The task is done already."))
    if row.kind == TaskKind.LAUNCH:
        missing = [
            Missing(
                guard="G11",
                text=_("open condition: %(text)s (%(owner)s, due %(due)s)")
                % {"text": condition.text, "owner": condition.owner, "due": condition.due_on.isoformat()},
                code="condition.open",
                object=f"condition:{condition.pk}",
            )
            for condition in open_conditions(project)
        ]
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


@transaction.atomic
def observation_set(
    *,
    actor: Actor,
    project: Project,
    kind: str,
    observer: User | None,
    next_reading_on: date | None = None,
    version: int | None = None,
) -> Observation:
    """Name who watches capacity, cost or stability after the launch, and when they look next."""
    require_person(actor)
    policies.require(actor, "observation.edit", project)
    require_open(project)
    require_choice("/kind", kind, ObservationKind)
    observer = require_member("/observer", project, observer)
    row = Observation.objects.select_for_update().filter(project=project, kind=kind).first()
    if row is None:
        row = Observation(project=project, kind=kind, version=0)
    require_version(row, version)
    if row.state == ObservationState.CLOSED:
        raise Conflict(_("This observation is closed."))
    if next_reading_on is not None and next_reading_on != row.next_reading_on:
        next_reading_on = require_date("/next_reading_on", next_reading_on)
    before = _observation(row) if row.pk else None
    if row.state == ObservationState.ACTIVE and row.observer_id not in (None, observer.pk):
        row.state = ObservationState.HANDED_OVER
    row.observer, row.next_reading_on = observer, next_reading_on
    row.version += 1
    row.save()
    audit.record(
        actor=actor,
        verb="observation.set",
        obj=row,
        project_id=project.pk,
        before=before,
        after=_observation(row),
    )
    tell(project, "observation", observation=kind, state=row.state)
    return row


@transaction.atomic
def observation_read(
    *,
    actor: Actor,
    observation: Observation,
    value: Decimal,
    unit: str,
    note: str = "",
    at: datetime | None = None,
    next_reading_on: date | None = None,
) -> ObservationReading:
    """Enter a reading (`value` in `unit`, taken `at`, now by default) and when the next one is due.

    By the named observer or whoever reads in; from follow-through on. The first reading makes the
    observation active. Raises InvalidInput for a time to come and for a value without unit.
    """
    user_id = require_person(actor)
    project = observation.project
    may = "project.view" if observation.observer_id == user_id else "observation.read_in"
    policies.require(actor, may, project)
    require_reached(project, ProjectState.FOLLOW_THROUGH)
    unit = require_text("/unit", unit, _("Give the unit of the reading."))
    at = at or timezone.now()
    if at > timezone.now():
        detail = _("A reading cannot lie in the future.")
        raise InvalidInput(detail, [FieldError("/at", "future", detail)])
    if not value.is_finite() or abs(value) >= Decimal(10) ** 14:
        detail = _("The value is no number that can be stored.")
        raise InvalidInput(detail, [FieldError("/value", "invalid", detail)])
    if len(unit) > 40:
        detail = _("The unit has at most 40 characters.")
        raise InvalidInput(detail, [FieldError("/unit", "too-long", detail)])
    row = _named(observation)
    if row.state == ObservationState.CLOSED:
        raise Conflict(_("This observation is closed."))
    if next_reading_on is not None:
        next_reading_on = require_date("/next_reading_on", next_reading_on)
    reading = ObservationReading.objects.create(
        observation=row, at=at, value=value, unit=unit, note=note.strip(), entered_by_id=user_id
    )
    row.state, row.next_reading_on = ObservationState.ACTIVE, next_reading_on
    row.version += 1
    row.save()
    audit.record(
        actor=actor,
        verb="observation.read",
        obj=row,
        project_id=project.pk,
        after={
            "kind": row.kind,
            "value": str(value),
            "unit": unit,
            "at": at.isoformat(),
            "note": note.strip(),
            "state": row.state,
        },
    )
    tell(project, "observation", observation=row.kind, state=row.state)
    return reading


@transaction.atomic
def observation_close(*, actor: Actor, observation: Observation) -> Observation:
    """End an observation that has at least one reading (Conflict without)."""
    require_person(actor)
    policies.require(actor, "observation.edit", observation.project)
    require_reached(observation.project, ProjectState.OBSERVING)
    row = _named(observation)
    if row.state == ObservationState.CLOSED:
        raise Conflict(_("This observation is closed."))
    if not row.readings.exists():
        raise Conflict(_("Nothing was read yet; an observation ends with a figure."))
    row.state, row.next_reading_on = ObservationState.CLOSED, None
    row.version += 1
    row.save()
    audit.record(
        actor=actor, verb="observation.closed", obj=row, project_id=row.project_id, after=_observation(row)
    )
    tell(row.project, "observation", observation=row.kind, state=row.state)
    return row


def _named(observation: Observation) -> Observation:
    """The stored observation under its lock; Conflict while nobody is named for it."""
    row = Observation.objects.select_for_update().filter(pk=observation.pk).first()
    if row is None:
        raise Conflict(_("Nobody has been named for this observation yet."))
    return row


def _task(row: FollowThroughTask) -> dict[str, str | None]:
    return {
        "kind": row.kind,
        "owner": str(row.owner) if row.owner else None,
        "due_on": row.due_on.isoformat() if row.due_on else None,
        "note": row.note,
        "state": row.state,
    }


def _observation(row: Observation) -> dict[str, str | None]:
    return {
        "kind": row.kind,
        "observer": str(row.observer) if row.observer else None,
        "state": row.state,
        "next_reading_on": row.next_reading_on.isoformat() if row.next_reading_on else None,
    }
