"""Duties with an owner and a date: conditions, follow-through tasks, readings; which of them are overdue."""

from dataclasses import dataclass
from datetime import date

from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from pocs.common.errors import Text
from pocs.common.phrases import Said, said
from pocs.people.models import User
from pocs.projects.choices import ProjectState
from pocs.projects.models import Project
from pocs.reviews.choices import DecisionState, ObservationKind, ObservationState, TaskKind, TaskState
from pocs.reviews.models import Condition, FollowThroughTask, Observation

#: route of the page on which a duty is done, by the kind of its row
ROUTES = {
    "condition": "reviews:decision",
    "task": "reviews:follow_through",
    "observation": "reviews:observation",
}
ENDED_STATES = (ProjectState.CLOSED, ProjectState.CANCELLED)
OBSERVED_STATES = (ProjectState.FOLLOW_THROUGH, ProjectState.OBSERVING)


@dataclass(frozen=True)
class Duty:
    """One open duty: its row, what it is in words, and whose."""

    kind: str  # condition, task or observation
    row: Condition | FollowThroughTask | Observation
    project: Project
    title: Text | Said
    owner: User | None
    due_on: date | None
    detail: str = ""

    @property
    def key(self) -> str:
        """`task:7`: how forms and the API name it."""
        return f"{self.kind}:{self.row.pk}"

    @property
    def route(self) -> str:
        return ROUTES[self.kind]


def open_duties(
    *, projects: list[Project] | None = None, owner_id: int | None = None, overdue: bool = False
) -> list[Duty]:
    """Open duties of projects that are not closed: in these projects, of this person, only the overdue."""
    conditions = Condition.objects.filter(decision__state=DecisionState.CONFIRMED, closed_at__isnull=True)
    conditions = conditions.exclude(decision__project__state__in=ENDED_STATES)
    tasks = FollowThroughTask.objects.filter(state=TaskState.OPEN).exclude(project__state__in=ENDED_STATES)
    observations = Observation.objects.filter(project__state__in=OBSERVED_STATES)
    observations = observations.exclude(state=ObservationState.CLOSED)
    if projects is not None:
        conditions = conditions.filter(decision__project__in=projects)
        tasks, observations = tasks.filter(project__in=projects), observations.filter(project__in=projects)
    if owner_id is not None:
        conditions, tasks = conditions.filter(owner_id=owner_id), tasks.filter(owner_id=owner_id)
        observations = observations.filter(observer_id=owner_id)
    if overdue:
        past = timezone.now().date()
        conditions, tasks = conditions.filter(due_on__lt=past), tasks.filter(due_on__lt=past)
        observations = observations.filter(next_reading_on__lt=past)
    found = [_of_condition(row) for row in conditions.select_related("decision__project", "owner")]
    found += [_of_task(row) for row in tasks.select_related("project", "owner")]
    found += [_of_observation(row) for row in observations.select_related("project", "observer")]
    return sorted(found, key=lambda duty: (duty.due_on is None, duty.due_on or date.max, str(duty.title)))


def _of_condition(row: Condition) -> Duty:
    title = said(_("Close the condition “%(text)s”"), text=row.text[:100])
    return Duty("condition", row, row.decision.project, title, row.owner, row.due_on)


def _of_task(row: FollowThroughTask) -> Duty:
    title = said(_("Follow-through: %(task)s"), task=TaskKind(row.kind).label)
    return Duty("task", row, row.project, title, row.owner, row.due_on, row.note[:140])


def _of_observation(row: Observation) -> Duty:
    title = said(_("Observe: %(what)s"), what=ObservationKind(row.kind).label)
    return Duty("observation", row, row.project, title, row.observer, row.next_reading_on)
