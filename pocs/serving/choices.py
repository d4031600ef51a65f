"""Choice sets of live inference."""

from django.db import models
from django.utils.translation import gettext_lazy as _


class SwitchOutcome(models.TextChoices):
    SWITCHED = "switched", _("Switched")
    KEPT = "kept", _("Kept the model before")
    ROLLED_BACK = "rolled_back", _("Rolled back")
    LOST = "lost", _("No model left")
