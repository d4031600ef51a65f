"""What follows a decision: conditions, tasks, observation with its readings, and what is overdue."""

from datetime import date

from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from pocs.common.models import VersionedModel
from pocs.evidence.models import EvidenceRevision
from pocs.people.models import User
from pocs.projects.models import CIToken, Project, ScenarioVersion
from pocs.reviews.choices import (
    EscalationLevel,
    ObservationKind,
    ObservationState,
    ReadingSource,
    TaskKind,
    TaskState,
)
from pocs.reviews.models.review import Decision
from pocs.runs.models import Run, Target


def is_past(day: date | None) -> bool:
    """Whether a due date lies before today (UTC)."""
    return day is not None and day < timezone.now().date()


class Condition(VersionedModel):
    """A condition of a decision: owner, date, and the evidence that closes it; open ones block launch."""

    decision = models.ForeignKey(Decision, models.CASCADE, related_name="conditions")
    text = models.TextField(_("condition"))
    owner = models.ForeignKey(User, models.PROTECT, related_name="+")
    due_on = models.DateField(_("due"))
    closed_at = models.DateTimeField(null=True)
    closed_by = models.ForeignKey(User, models.PROTECT, related_name="+", null=True)
    closing_evidence = models.TextField(_("what closes it"), blank=True)
    closing_revision = models.ForeignKey(EvidenceRevision, models.PROTECT, related_name="+", null=True)

    class Meta:
        ordering = ["due_on", "id"]

    def __str__(self) -> str:
        return self.text[:80]

    @property
    def overdue(self) -> bool:
        """Open although its date has passed (UTC)."""
        return self.closed_at is None and is_past(self.due_on)


class FollowThroughTask(VersionedModel):
    """Budget, procurement or launch: who does it by when (G11, Q19)."""

    project = models.ForeignKey(Project, models.CASCADE, related_name="follow_through")
    kind = models.CharField(max_length=12, choices=TaskKind.choices)
    owner = models.ForeignKey(User, models.PROTECT, related_name="+", null=True)
    due_on = models.DateField(_("due"), null=True)
    note = models.TextField(_("note"), blank=True)
    state = models.CharField(max_length=6, choices=TaskState.choices, default=TaskState.OPEN)
    done_at = models.DateTimeField(null=True)
    done_by = models.ForeignKey(User, models.PROTECT, related_name="+", null=True)

    class Meta:
        ordering = ["kind"]
        constraints = [models.UniqueConstraint(fields=["project", "kind"], name="follow_through_kind_once")]

    def __str__(self) -> str:
        return self.get_kind_display()

    @property
    def overdue(self) -> bool:
        """Open although its date has passed (UTC)."""
        return self.state == TaskState.OPEN and is_past(self.due_on)


class Observation(VersionedModel):
    """Who watches capacity, cost or stability after the launch (G12, Q20)."""

    project = models.ForeignKey(Project, models.CASCADE, related_name="observations")
    kind = models.CharField(max_length=12, choices=ObservationKind.choices)
    observer = models.ForeignKey(User, models.PROTECT, related_name="+", null=True)
    state = models.CharField(
        max_length=12, choices=ObservationState.choices, default=ObservationState.PLANNED
    )
    next_reading_on = models.DateField(_("next reading"), null=True)

    class Meta:
        ordering = ["kind"]
        constraints = [models.UniqueConstraint(fields=["project", "kind"], name="observation_kind_once")]

    def __str__(self) -> str:
        return self.get_kind_display()

    @property
    def overdue(self) -> bool:
        """Whether the next reading's date has passed (UTC)."""
        return is_past(self.next_reading_on)


class ObservationReading(models.Model):
    """One reading: value with unit, when, by whom, and where it comes from."""

    observation = models.ForeignKey(Observation, models.CASCADE, related_name="readings")
    at = models.DateTimeField()
    value = models.DecimalField(max_digits=18, decimal_places=4)
    unit = models.CharField(_("unit"), max_length=40)
    note = models.TextField(_("note"), blank=True)
    source = models.CharField(max_length=6, choices=ReadingSource.choices, default=ReadingSource.HAND)
    entered_by = models.ForeignKey(User, models.PROTECT, related_name="+")  # a token's sponsor counts
    token = models.ForeignKey(CIToken, models.PROTECT, related_name="+", null=True)
    run = models.ForeignKey(Run, models.PROTECT, related_name="+", null=True)

    class Meta:
        ordering = ["-at", "-id"]
        constraints = [
            models.UniqueConstraint(
                fields=["observation", "run"],
                condition=models.Q(run__isnull=False),
                name="reading_once_a_run",
            )
        ]

    def __str__(self) -> str:
        return f"{self.value} {self.unit}"


class ObservationSchedule(VersionedModel):
    """A run that is repeated while the project is observed; its figures become readings."""

    project = models.OneToOneField(Project, models.CASCADE, related_name="observation_schedule")
    scenario_version = models.ForeignKey(ScenarioVersion, models.PROTECT, related_name="+")
    target = models.ForeignKey(Target, models.PROTECT, related_name="+")
    every_days = models.PositiveSmallIntegerField(_("every … days"))
    cost_per_hour = models.DecimalField(
        _("cost of the target per hour"), max_digits=12, decimal_places=4, null=True, blank=True
    )
    currency = models.CharField(_("currency"), max_length=8, blank=True)
    active = models.BooleanField(_("active"), default=True)
    next_on = models.DateField(_("next run"))
    last_run = models.ForeignKey(Run, models.PROTECT, related_name="+", null=True)
    last_problem = models.CharField(max_length=300, blank=True)
    set_by = models.ForeignKey(User, models.PROTECT, related_name="+")  # in whose name it runs

    def __str__(self) -> str:
        return f"{self.scenario_version} · {self.target}"


class Escalation(models.Model):
    """Somebody was told that a duty is overdue; once per duty, date and level."""

    project = models.ForeignKey(Project, models.CASCADE, related_name="escalations")
    object_type = models.CharField(max_length=80)
    object_id = models.PositiveBigIntegerField()
    title = models.CharField(max_length=300)
    due_on = models.DateField()
    level = models.PositiveSmallIntegerField(choices=EscalationLevel.choices)
    told = models.ManyToManyField(User, related_name="+")
    at = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering = ["-at", "-id"]
        constraints = [
            models.UniqueConstraint(
                fields=["object_type", "object_id", "due_on", "level"], name="escalation_once"
            )
        ]

    def __str__(self) -> str:
        return self.title
