"""Registration of the app `runs`."""

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class RunsConfig(AppConfig):
    name = "pocs.runs"
    verbose_name = _("Runs")
