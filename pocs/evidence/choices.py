"""Choice sets of evidence."""

from django.db import models
from django.utils.translation import gettext_lazy as _


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
