"""Choice sets of reviews: packages, sign-offs, decisions and what follows them."""

from django.db import models
from django.utils.translation import gettext_lazy as _


class PackageState(models.TextChoices):
    FROZEN = "frozen", _("Frozen, waiting for signatures")
    APPROVED = "approved", _("Approved by all three")
    REJECTED = "rejected", _("Rejected")
    STALE = "stale", _("Stale: something changed")


#: states in which a package stands for its project
STANDING_STATES = (PackageState.FROZEN, PackageState.APPROVED)


class Slot(models.TextChoices):
    BUSINESS = "business", _("Business")
    PLATFORM = "platform", _("Platform")
    SECURITY = "security", _("Security")


#: what a signature in each slot says (R1–R3, Q14–Q16)
SLOT_MEANING = {
    Slot.BUSINESS: _("The output satisfies the scenario."),
    Slot.PLATFORM: _("Resources and scheduling are stable."),
    Slot.SECURITY: _("Permissions, logs and audit leave traces."),
}


class SignOffState(models.TextChoices):
    REQUESTED = "requested", _("Requested")
    APPROVED = "approved", _("Approved")
    APPROVED_WITH_CONDITIONS = "approved_with_conditions", _("Approved with conditions")
    REJECTED = "rejected", _("Rejected")
    WITHDRAWN = "withdrawn", _("Withdrawn")
    STALE = "stale", _("Stale")
    EXPIRED = "expired", _("Expired")


class Verdict(models.TextChoices):
    APPROVE = "approve", _("Approve")
    APPROVE_WITH_CONDITIONS = "approve_with_conditions", _("Approve with conditions")
    REJECT = "reject", _("Reject")


CURRENT_APPROVALS = [SignOffState.APPROVED, SignOffState.APPROVED_WITH_CONDITIONS]


class WaiverState(models.TextChoices):
    REQUESTED = "requested", _("Requested")
    GRANTED = "granted", _("Granted")
    REFUSED = "refused", _("Refused")
    EXPIRED = "expired", _("Expired")
    REVOKED = "revoked", _("Revoked")


class DecisionState(models.TextChoices):
    PROPOSED = "proposed", _("Proposed")
    CONFIRMED = "confirmed", _("Confirmed")
    REVOKED = "revoked", _("Revoked")
    SUPERSEDED = "superseded", _("Superseded")


class DecisionOutcome(models.TextChoices):
    ACCEPTED = "accepted", _("Accepted")
    ACCEPTED_WITH_CONDITIONS = "accepted_with_conditions", _("Accepted with conditions")
    REJECTED = "rejected", _("Rejected")
    EXTENDED_PILOT = "extended_pilot", _("Extended pilot")


ACCEPTING = [DecisionOutcome.ACCEPTED, DecisionOutcome.ACCEPTED_WITH_CONDITIONS]


class NextStep(models.TextChoices):
    WIDER_PILOT = "wider_pilot", _("Wider pilot")
    PROCUREMENT = "procurement", _("Procurement")
    STOP = "stop", _("No further step")


class TaskKind(models.TextChoices):
    BUDGET = "budget", _("Budget")
    PROCUREMENT = "procurement", _("Procurement")
    LAUNCH = "launch", _("Launch")


class TaskState(models.TextChoices):
    OPEN = "open", _("To do")
    DONE = "done", _("Done")


class ObservationKind(models.TextChoices):
    CAPACITY = "capacity", _("Capacity")
    COST = "cost", _("Cost")
    STABILITY = "stability", _("Stability")


class ObservationState(models.TextChoices):
    PLANNED = "planned", _("Planned")
    ACTIVE = "active", _("Active")
    HANDED_OVER = "handed_over", _("Handed over")
    CLOSED = "closed", _("Closed")


class ReadingSource(models.TextChoices):
    HAND = "hand", _("By hand")
    TOKEN = "token", _("By a CI token")
    RUN = "run", _("From a scheduled run")


class ObjectionState(models.TextChoices):
    OPEN = "open", _("Raised")
    ANSWERED = "answered", _("Answered")
    UPHELD = "upheld", _("Upheld")
    DISMISSED = "dismissed", _("Dismissed")
    WITHDRAWN = "withdrawn", _("Withdrawn")
    OVERTAKEN = "overtaken", _("Overtaken")


#: states in which nobody has decided about an objection yet: nothing is approved meanwhile
UNDECIDED_OBJECTIONS = [ObjectionState.OPEN, ObjectionState.ANSWERED]


class EscalationLevel(models.IntegerChoices):
    TEAM = 1, _("the owner and the owner's team")
    LEADS = 2, _("the technical leads and decision makers")
