"""Registration of the app `projects`."""

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class ProjectsConfig(AppConfig):
    name = "pocs.projects"
    verbose_name = _("Projects")
