"""Reviews: conclusion, frozen packages, sign-offs, waivers, decision, follow-through, observation."""

from datetime import date

from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from pocs.common.models import VersionedModel
from pocs.people.models import User
from pocs.projects.models import Project
from pocs.reviews.choices import (
    ACCEPTING,
    CURRENT_APPROVALS,
    DecisionOutcome,
    DecisionState,
    NextStep,
    ObservationKind,
    ObservationState,
    PackageState,
    SignOffState,
    Slot,
    TaskKind,
    TaskState,
    WaiverState,
)


def is_past(day: date | None) -> bool:
    """Whether a due date lies before today (UTC)."""
    return day is not None and day < timezone.now().date()


class Conclusion(VersionedModel):
    """What the POC found, about performance *and* operability (G7)."""

    project = models.OneToOneField(Project, models.CASCADE, related_name="conclusion")
    performance = models.TextField(_("performance: where the time goes (Q1, Q2)"), blank=True)
    release_in_time = models.TextField(_("are caches released in time? (Q6)"), blank=True)
    batching_and_tail = models.TextField(_("does batching hurt the tail? (Q7)"), blank=True)
    rollback_of_switch = models.TextField(_("can a model switch be rolled back? (Q8)"), blank=True)
    logs_locate_errors = models.TextField(_("do the logs locate the error? (Q9)"), blank=True)
    updated_by = models.ForeignKey(User, models.PROTECT, related_name="+", null=True)

    def __str__(self) -> str:
        return str(self.project)


class BusinessResult(VersionedModel):
    """The business result before and after (G8, M29–M31): at least one figure with both sides."""

    project = models.OneToOneField(Project, models.CASCADE, related_name="business_result")
    experience_before = models.CharField(_("experience before (M29)"), max_length=300, blank=True)
    experience_after = models.CharField(_("experience after (M29)"), max_length=300, blank=True)
    delivery_before = models.CharField(_("delivery efficiency before (M30)"), max_length=300, blank=True)
    delivery_after = models.CharField(_("delivery efficiency after (M30)"), max_length=300, blank=True)
    cost_before = models.CharField(_("operating cost before (M31)"), max_length=300, blank=True)
    cost_after = models.CharField(_("operating cost after (M31)"), max_length=300, blank=True)
    statement = models.TextField(_("what it means for the business"), blank=True)
    updated_by = models.ForeignKey(User, models.PROTECT, related_name="+", null=True)

    def __str__(self) -> str:
        return str(self.project)


class Package(VersionedModel):
    """A numbered, frozen manifest with one digest; signatures bind to the digest."""

    project = models.ForeignKey(Project, models.CASCADE, related_name="packages")
    number = models.PositiveIntegerField()
    state = models.CharField(max_length=10, choices=PackageState.choices, default=PackageState.FROZEN)
    manifest = models.JSONField()
    digest = models.CharField(max_length=64)
    frozen_by = models.ForeignKey(User, models.PROTECT, related_name="+")
    frozen_at = models.DateTimeField()
    stale_at = models.DateTimeField(null=True)
    stale_by = models.JSONField(null=True)  # the actor whose change made it stale
    stale_reason = models.CharField(max_length=300, blank=True)

    class Meta:
        ordering = ["project_id", "-number"]
        constraints = [models.UniqueConstraint(fields=["project", "number"], name="package_number_once")]

    def __str__(self) -> str:
        return f"P{self.number}"


class SignOff(VersionedModel):
    """One signature, or the request for it, in one slot of one package."""

    package = models.ForeignKey(Package, models.CASCADE, related_name="signoffs")
    slot = models.CharField(max_length=10, choices=Slot.choices)
    state = models.CharField(max_length=26, choices=SignOffState.choices, default=SignOffState.REQUESTED)
    meaning = models.CharField(max_length=200)
    signer = models.ForeignKey(User, models.PROTECT, related_name="signoffs", null=True)
    on_behalf_of = models.ForeignKey(User, models.PROTECT, related_name="+", null=True)
    digest = models.CharField(max_length=64)
    comment = models.TextField(blank=True)  # the reason, when rejected; the conditions, when conditional
    signed_at = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True)
    ended_reason = models.CharField(max_length=300, blank=True)

    class Meta:
        ordering = ["package_id", "slot", "id"]
        constraints = [
            models.UniqueConstraint(
                fields=["package", "slot"],
                condition=models.Q(state__in=["requested", *CURRENT_APPROVALS, "rejected"]),
                name="one_current_signoff_per_slot",
            ),
            models.UniqueConstraint(
                fields=["package", "signer"],
                condition=models.Q(state__in=[*CURRENT_APPROVALS, "rejected"]),
                name="one_slot_per_person",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.package} {self.slot}"


class Waiver(VersionedModel):
    """A dated exception from one guard, granted by someone other than who asked."""

    project = models.ForeignKey(Project, models.CASCADE, related_name="waivers")
    guard = models.CharField(max_length=4)
    reason = models.TextField(_("reason"))
    scope = models.TextField(_("scope"))
    state = models.CharField(max_length=10, choices=WaiverState.choices, default=WaiverState.REQUESTED)
    requested_by = models.ForeignKey(User, models.PROTECT, related_name="+")
    decided_by = models.ForeignKey(User, models.PROTECT, related_name="+", null=True)
    decided_at = models.DateTimeField(null=True)
    decision_note = models.TextField(blank=True)  # why it was refused or revoked
    expires_at = models.DateTimeField(_("expires"))

    class Meta:
        ordering = ["-created_at", "-id"]

    def __str__(self) -> str:
        return f"{self.guard}: {self.reason[:60]}"


class Decision(VersionedModel):
    """The decision about a package: proposed by one, confirmed by another who is named (G10)."""

    project = models.ForeignKey(Project, models.CASCADE, related_name="decisions")
    package = models.ForeignKey(Package, models.PROTECT, related_name="decisions")
    outcome = models.CharField(_("outcome"), max_length=26, choices=DecisionOutcome.choices)
    next_step = models.CharField(_("next step (O2)"), max_length=14, choices=NextStep.choices)
    rationale = models.TextField(_("rationale"))
    state = models.CharField(max_length=12, choices=DecisionState.choices, default=DecisionState.PROPOSED)
    proposed_by = models.ForeignKey(User, models.PROTECT, related_name="+")
    confirmed_by = models.ForeignKey(User, models.PROTECT, related_name="+", null=True)
    confirmed_at = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True)
    ended_reason = models.CharField(max_length=300, blank=True)

    class Meta:
        ordering = ["-created_at", "-id"]
        constraints = [
            models.UniqueConstraint(
                fields=["project"],
                condition=models.Q(state__in=["proposed", "confirmed"]),
                name="one_current_decision",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.get_outcome_display()}"

    @property
    def accepts(self) -> bool:
        """Whether the outcome accepts the POC, with or without conditions."""
        return self.outcome in ACCEPTING


class Condition(VersionedModel):
    """A condition of a decision: owner, date, and the evidence that closes it; open ones block launch."""

    decision = models.ForeignKey(Decision, models.CASCADE, related_name="conditions")
    text = models.TextField(_("condition"))
    owner = models.ForeignKey(User, models.PROTECT, related_name="+")
    due_on = models.DateField(_("due"))
    closed_at = models.DateTimeField(null=True)
    closed_by = models.ForeignKey(User, models.PROTECT, related_name="+", null=True)
    closing_evidence = models.TextField(_("what closes it"), blank=True)

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
    """One reading: value with unit, when, by whom."""

    observation = models.ForeignKey(Observation, models.CASCADE, related_name="readings")
    at = models.DateTimeField()
    value = models.DecimalField(max_digits=18, decimal_places=4)
    unit = models.CharField(_("unit"), max_length=40)
    note = models.TextField(_("note"), blank=True)
    entered_by = models.ForeignKey(User, models.PROTECT, related_name="+")

    class Meta:
        ordering = ["-at", "-id"]

    def __str__(self) -> str:
        return f"{self.value} {self.unit}"
