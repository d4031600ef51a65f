"""Registration of the app `common`."""

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class CommonConfig(AppConfig):
    name = "pocs.common"
    verbose_name = _("Common")
