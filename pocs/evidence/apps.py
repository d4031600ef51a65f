"""Registration of the app `evidence`: its gates, its section of the project page, names of its changes."""

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class EvidenceConfig(AppConfig):
    name = "pocs.evidence"
    verbose_name = _("Evidence")

    def ready(self) -> None:
        # models can be imported only now
        from pocs.common import access, audit  # noqa: PLC0415
        from pocs.evidence import gates, readiness, rights, verbs  # noqa: PLC0415
        from pocs.evidence.ui import section  # noqa: PLC0415

        access.declare(rights.TABLE)
        gates.register()
        readiness.register()
        section.register()
        audit.name_verbs(verbs.NAMES)
