"""Registration of the app `runs`: its tasks, gates, live streams and sections."""

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class RunsConfig(AppConfig):
    name = "pocs.runs"
    verbose_name = _("Runs")

    def ready(self) -> None:
        # models must be loaded first; `tasks` registers the names under which runs are enqueued
        from pocs.common.access import declare  # noqa: PLC0415
        from pocs.common.audit import name_verbs  # noqa: PLC0415
        from pocs.common.events import register_stream  # noqa: PLC0415
        from pocs.projects.gates import register_gate  # noqa: PLC0415
        from pocs.projects.workload_port import register_reader  # noqa: PLC0415
        from pocs.runs import gates, rights, streams, tasks, wording  # noqa: F401, PLC0415
        from pocs.runs.ui import sections  # noqa: PLC0415
        from pocs.runs.workload_reader import CoreReader  # noqa: PLC0415

        declare(rights.TABLE)
        register_gate(gates.MATRIX_GATE)
        register_gate(gates.METRIC_GATE)
        register_stream("run", streams.may_follow_run)
        register_stream("matrix", streams.may_follow_matrix)
        name_verbs(wording.VERBS)
        register_reader(CoreReader())
        sections.register()
