"""Registration of the app `serving`: its desk beside the engine worker, its section of the project page."""

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class ServingConfig(AppConfig):
    name = "pocs.serving"
    verbose_name = _("Live inference")

    def ready(self) -> None:
        # models must be loaded first; `worker` listens for the start of an engine worker
        from pocs.common.access import declare  # noqa: PLC0415
        from pocs.runs.seat import seat  # noqa: PLC0415
        from pocs.serving import rights, services, worker  # noqa: F401, PLC0415
        from pocs.serving.ui import sections  # noqa: PLC0415

        declare(rights.TABLE)
        seat.record_switches(services.switch_record)
        sections.register()
