"""Services of the observation (G12): who watches, what was read by hand, by a token or in a run, the end."""

from datetime import date, datetime
from decimal import Decimal

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from pocs.common import audit
from pocs.common.actors import Actor
from pocs.common.errors import Conflict, FieldError, InvalidInput, NotPermitted
from pocs.people import policies
from pocs.people.models import User
from pocs.projects.choices import ProjectState
from pocs.projects.models import Project
from pocs.reviews.choices import ObservationKind, ObservationState, ReadingSource
from pocs.reviews.models import Observation, ObservationReading
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
from pocs.runs.models import Run


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
    run: Run | None = None,
) -> ObservationReading:
    """Enter a reading (`value` in `unit`, taken `at`, now by default) and when the next one is due.

    By the named observer, by whoever reads in, or by a CI token with the scope for it; `run` is the one
    whose figure it is. From follow-through on. The first reading makes the observation active. Raises
    InvalidInput for a time to come and for a value without unit.
    """
    user_id = reading_require(actor=actor, observation=observation)
    project = observation.project
    require_reached(project, ProjectState.FOLLOW_THROUGH)
    unit, at = _checked_reading(value, unit, at)
    row = _named(observation)
    if row.state == ObservationState.CLOSED:
        raise Conflict(_("This observation is closed."))
    if next_reading_on is not None:
        next_reading_on = require_date("/next_reading_on", next_reading_on)
    source = ReadingSource.RUN if run else ReadingSource.TOKEN if actor.token_id else ReadingSource.HAND
    reading = ObservationReading.objects.create(
        observation=row,
        at=at,
        value=value,
        unit=unit,
        note=note.strip(),
        source=source,
        entered_by_id=user_id,
        token_id=actor.token_id,
        run=run,
    )
    row.state, row.next_reading_on = ObservationState.ACTIVE, next_reading_on
    row.version += 1
    row.save()
    after = {
        "kind": row.kind,
        "value": str(value),
        "unit": unit,
        "at": at.isoformat(),
        "note": note.strip(),
        "source": str(source),
        "run": str(run) if run else "",
        "state": row.state,
    }
    audit.record(actor=actor, verb="observation.read", obj=row, project_id=project.pk, after=after)
    tell(project, "observation", observation=row.kind, state=row.state)
    return reading


def reading_require(*, actor: Actor, observation: Observation) -> int:
    """The id of whoever answers for a reading: the observer, who reads in, or a token's sponsor."""
    named = actor.is_person and observation.observer_id == actor.user_id
    policies.require(actor, "project.view" if named else "observation.read_in", observation.project)
    if actor.user_id is None:
        raise NotPermitted(_("Only a signed-in person can do this; a token or the system cannot."))
    return actor.user_id


def _checked_reading(value: Decimal, unit: str, at: datetime | None) -> tuple[str, datetime]:
    """Unit and time of a reading that can be stored; InvalidInput otherwise."""
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
    return unit, at


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


def _observation(row: Observation) -> dict[str, str | None]:
    return {
        "kind": row.kind,
        "observer": str(row.observer) if row.observer else None,
        "state": row.state,
        "next_reading_on": row.next_reading_on.isoformat() if row.next_reading_on else None,
    }
