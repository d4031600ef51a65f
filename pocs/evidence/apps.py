"""Registration of the app `evidence`."""

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class EvidenceConfig(AppConfig):
    name = "pocs.evidence"
    verbose_name = _("Evidence")
