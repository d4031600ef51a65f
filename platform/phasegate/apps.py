"""Start-up of the site: the Celery application and the live publisher take their places."""

from django.apps import AppConfig
from django.conf import settings
from django.utils.translation import gettext_lazy as _


class PhaseGateConfig(AppConfig):
    name = "phasegate"
    verbose_name = _("PhaseGate")

    def ready(self) -> None:
        from phasegate import celery, rights, worker_presence  # noqa: F401, PLC0415 both need the settings to be read
        from phasegate.live.publisher import LoopPublisher  # noqa: PLC0415
        from pocs.common import access, events  # noqa: PLC0415 models must be loaded first

        access.declare(rights.TABLE)
        if settings.PHASEGATE_LIVE_PUBLISH:
            events.set_publisher(LoopPublisher())
