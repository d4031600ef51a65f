"""Choice sets of notices."""

from django.db import models
from django.utils.translation import gettext_lazy as _


class Channel(models.TextChoices):
    NOW = "now", _("E-mail at once")
    DIGEST = "digest", _("In the daily digest")
    OFF = "off", _("Only on the page")


class DeliveryState(models.TextChoices):
    WAITING = "waiting", _("Waiting")
    DELIVERED = "delivered", _("Delivered")
    FAILED = "failed", _("Failed")
