"""Choice sets of evidence."""

from django.db import models
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy


class EvidenceType(models.TextChoices):
    CONFIGURATION = "configuration", _("Configuration evidence (E1)")
    RUNTIME = "runtime", _("Runtime evidence (E2)")
    RESPONSIBILITY = "responsibility", _("Responsibility evidence (E3)")
    RETROSPECTIVE = "retrospective", _("Retrospective evidence (E4)")


class RevisionState(models.TextChoices):
    DRAFT = "draft", _("Draft")
    SUBMITTED = "submitted", _("Submitted")
    REVIEWED = "reviewed", _("Reviewed")
    RETURNED = "returned", _("Returned")
    FROZEN = "frozen", _("Frozen")
    SUPERSEDED = "superseded", _("Superseded")


#: states in which a revision counts: somebody else has reviewed it
CURRENT_STATES = [RevisionState.REVIEWED, RevisionState.FROZEN]

#: code of the checklist, E1–E4
TYPE_CODES = {
    EvidenceType.CONFIGURATION: "E1",
    EvidenceType.RUNTIME: "E2",
    EvidenceType.RESPONSIBILITY: "E3",
    EvidenceType.RETROSPECTIVE: "E4",
}

#: what each type is checked for
CHECK_FOCUS = {
    EvidenceType.CONFIGURATION: _("Policy, permissions, model or service configuration"),
    EvidenceType.RUNTIME: _("Latency, errors, resources and call logs"),
    EvidenceType.RESPONSIBILITY: _("Approval, ownership, alerts and handlers"),
    EvidenceType.RETROSPECTIVE: _("Degradation, rollback and next optimisation"),
}

#: how each type is reviewed: what its query must return
REVIEW_METHOD = {
    EvidenceType.CONFIGURATION: _("Versions and change history are kept"),
    EvidenceType.RUNTIME: _("Can be queried by tenant or application"),
    EvidenceType.RESPONSIBILITY: _("Can be traced to a team"),
    EvidenceType.RETROSPECTIVE: _("Has a conclusion and an owner"),
}


class ContributionKind(models.TextChoices):
    WROTE = "wrote", _("wrote")
    SUBMITTED = "submitted", _("submitted")
    UPLOADED = "uploaded", _("uploaded a file to")


class ResponsibilityKind(models.TextChoices):
    APPROVAL = "approval", _("Approval")
    OWNERSHIP = "ownership", _("Ownership")
    ALERT = "alert", _("Alert")
    HANDLER = "handler", _("Handler")


class RequestState(models.TextChoices):
    WAITING = "waiting", _("Waiting")
    ANSWERED = "answered", _("Answered")
    WITHDRAWN = "withdrawn", _("Withdrawn")


class ThreadState(models.TextChoices):
    OPEN = "open", pgettext_lazy("discussion", "Open")
    RESOLVED = "resolved", pgettext_lazy("discussion", "Resolved")
