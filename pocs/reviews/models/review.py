"""What a review is made of: conclusion, frozen packages, sign-offs, waivers, objections, decision."""

from django.db import models
from django.utils import timezone
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from pocs.common.models import VersionedModel
from pocs.common.phrases import read_said
from pocs.evidence.models import EvidenceRevision
from pocs.people.models import Organisation, User
from pocs.projects.models import Project
from pocs.reviews.choices import (
    ACCEPTING,
    CURRENT_APPROVALS,
    UNDECIDED_OBJECTIONS,
    DecisionOutcome,
    DecisionState,
    NextStep,
    ObjectionState,
    PackageState,
    SignOffState,
    Slot,
    WaiverState,
)


def _for(deputy: User, principal: User) -> str:
    return gettext("%(deputy)s for %(principal)s") % {"deputy": deputy, "principal": principal}


class ReviewPolicy(VersionedModel):
    """What an organisation asks of a review; each package is signed under the one it was frozen with."""

    organisation = models.OneToOneField(Organisation, models.PROTECT, related_name="review_policy")
    quorum_business = models.PositiveSmallIntegerField(_("signatures of business"), default=1)
    quorum_platform = models.PositiveSmallIntegerField(_("signatures of platform"), default=1)
    quorum_security = models.PositiveSmallIntegerField(_("signatures of security"), default=1)
    request_days = models.PositiveSmallIntegerField(_("days in which a signature is given"), default=30)
    signature_days = models.PositiveSmallIntegerField(
        _("days in which an approval is decided upon"), default=90
    )
    objection_days = models.PositiveSmallIntegerField(
        _("days for objections before a decision is confirmed"), default=0
    )
    updated_by = models.ForeignKey(User, models.PROTECT, related_name="+", null=True)

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=models.Q(
                    quorum_business__gte=1,
                    quorum_platform__gte=1,
                    quorum_security__gte=1,
                    request_days__gte=1,
                    signature_days__gte=1,
                ),
                name="review_policy_asks_for_something",
            )
        ]

    def __str__(self) -> str:
        return str(self.organisation)


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
    stale_reason = models.CharField(max_length=300, blank=True)  # in English
    stale_said = models.JSONField(null=True)  # the same to be read in any language; see `pocs.common.phrases`

    class Meta:
        ordering = ["project_id", "-number"]
        constraints = [models.UniqueConstraint(fields=["project", "number"], name="package_number_once")]

    def __str__(self) -> str:
        return f"P{self.number}"

    @property
    def stale_text(self) -> str:
        """Why it became stale, in the reader's language; as written, for one from before that was kept."""
        return read_said(self.stale_said) if self.stale_said else self.stale_reason


class SignOff(VersionedModel):
    """One signature, or the request for it, in one slot of one package."""

    package = models.ForeignKey(Package, models.CASCADE, related_name="signoffs")
    slot = models.CharField(max_length=10, choices=Slot.choices)
    seat = models.PositiveSmallIntegerField(default=1)  # 1 to the slot's quorum
    state = models.CharField(max_length=26, choices=SignOffState.choices, default=SignOffState.REQUESTED)
    meaning = models.CharField(max_length=200)
    signer = models.ForeignKey(User, models.PROTECT, related_name="signoffs", null=True)
    on_behalf_of = models.ForeignKey(User, models.PROTECT, related_name="+", null=True)
    digest = models.CharField(max_length=64)
    comment = models.TextField(blank=True)  # the reason, when rejected; the conditions, when conditional
    signed_at = models.DateTimeField(null=True)
    # of a request: when it is asked no longer; of an approval: when it counts no longer; null: never
    expires_at = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True)
    ended_reason = models.CharField(max_length=300, blank=True)
    ended_said = models.JSONField(null=True)  # the same where the system gave the reason

    class Meta:
        ordering = ["package_id", "slot", "seat", "id"]
        constraints = [
            models.UniqueConstraint(
                fields=["package", "slot", "seat"],
                condition=models.Q(state__in=["requested", *CURRENT_APPROVALS, "rejected"]),
                name="one_current_signoff_per_seat",
            ),
            models.UniqueConstraint(
                fields=["package", "on_behalf_of"],
                condition=models.Q(state__in=[*CURRENT_APPROVALS, "rejected"]),
                name="one_slot_per_principal",
            ),
            models.UniqueConstraint(
                fields=["package", "signer"],
                condition=models.Q(state__in=[*CURRENT_APPROVALS, "rejected"]),
                name="one_slot_per_person",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.package} {self.slot}"

    @property
    def ended_text(self) -> str:
        """Why it ended, in the reader's language where the system gave the reason."""
        return read_said(self.ended_said) if self.ended_said else self.ended_reason

    @property
    def lapsed(self) -> bool:
        """Whether its time is over, although nothing has ended it yet."""
        waits = self.state in (SignOffState.REQUESTED, *CURRENT_APPROVALS)
        return waits and self.expires_at is not None and self.expires_at <= timezone.now()

    @property
    def signed_as(self) -> str:
        """Who signed, and for whom: "B for A"; empty while nobody has."""
        if self.signer is None:
            return ""
        if self.on_behalf_of is None:
            return str(self.signer)
        return _for(self.signer, self.on_behalf_of)


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
    ended_said = models.JSONField(null=True)  # the same where the system gave the reason

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
    def ended_text(self) -> str:
        """Why it ended, in the reader's language where the system gave the reason."""
        return read_said(self.ended_said) if self.ended_said else self.ended_reason

    @property
    def accepts(self) -> bool:
        """Whether the outcome accepts the POC, with or without conditions."""
        return self.outcome in ACCEPTING


class Objection(VersionedModel):
    """Somebody of the project says which line breaks which rule; nothing is approved until it is decided."""

    package = models.ForeignKey(Package, models.CASCADE, related_name="objections")
    revision = models.ForeignKey(EvidenceRevision, models.PROTECT, related_name="+", null=True)
    key = models.CharField(max_length=800)  # see `pocs.reviews.citations`
    line = models.CharField(_("line"), max_length=800)  # its name in words, as it was when cited
    quote = models.TextField(_("what it says"), blank=True)
    rule = models.CharField(_("rule"), max_length=8)
    statement = models.TextField(_("what is wrong with it"))
    state = models.CharField(max_length=10, choices=ObjectionState.choices, default=ObjectionState.OPEN)
    raised_by = models.ForeignKey(User, models.PROTECT, related_name="+")
    answer = models.TextField(_("answer"), blank=True)
    answered_by = models.ForeignKey(User, models.PROTECT, related_name="+", null=True)
    answered_at = models.DateTimeField(null=True)
    ruling = models.TextField(_("ruling"), blank=True)
    ruled_by = models.ForeignKey(User, models.PROTECT, related_name="+", null=True)
    ended_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["-created_at", "-id"]

    def __str__(self) -> str:
        return f"{self.rule}: {self.line}"[:300]

    @property
    def undecided(self) -> bool:
        return self.state in UNDECIDED_OBJECTIONS
