"""Registration of the app `projects`: its gates, the guard of its live stream, names of its changes."""

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class ProjectsConfig(AppConfig):
    name = "pocs.projects"
    verbose_name = _("Projects")

    def ready(self) -> None:
        # models can be imported only now
        from pocs.common import access, audit, events  # noqa: PLC0415
        from pocs.projects import guards, rights, selectors, verbs  # noqa: PLC0415
        from pocs.projects.gates import register_gate  # noqa: PLC0415
        from pocs.projects.ui import own_sections  # noqa: PLC0415

        access.declare(rights.TABLE)
        for gate in guards.GATES:
            register_gate(gate)
        events.register_stream("project", selectors.may_follow_project)
        audit.name_verbs(verbs.NAMES)
        own_sections.register()
