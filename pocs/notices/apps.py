"""Registration of the app `notices`: its ear for what services tell, names of its changes."""

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class NoticesConfig(AppConfig):
    name = "pocs.notices"
    verbose_name = _("Notices")

    def ready(self) -> None:
        # models can be imported only now
        from pocs.common import access, audit, notices  # noqa: PLC0415
        from pocs.notices import rights, verbs  # noqa: PLC0415
        from pocs.notices.services import telling  # noqa: PLC0415

        access.declare(rights.TABLE)
        notices.on_notice(telling.on_port_notice)
        audit.name_verbs(verbs.NAMES)
