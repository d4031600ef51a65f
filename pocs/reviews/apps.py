"""Registration of the app `reviews`: its gates, its ear for changes, its part of the project page."""

from django.apps import AppConfig
from django.db.models.signals import post_migrate
from django.utils.translation import gettext_lazy as _


class ReviewsConfig(AppConfig):
    name = "pocs.reviews"
    verbose_name = _("Reviews")

    def ready(self) -> None:
        from pocs.common import access, audit  # noqa: PLC0415 models are loaded only now
        from pocs.projects import changes, gates  # noqa: PLC0415
        from pocs.projects.ui import sections  # noqa: PLC0415
        from pocs.reviews import (  # noqa: PLC0415
            database_guards,
            guards,
            rights,
            selectors,
            staleness,
            verbs,
            wording,
        )
        from pocs.reviews.ui.sections import SECTIONS  # noqa: PLC0415

        access.declare(rights.TABLE)
        for gate in guards.GATES:
            gates.register_gate(gate)
        gates.set_waiver_lookup(selectors.waived_guards)
        changes.on_change(staleness.on_project_change)
        audit.name_verbs(verbs.NAMES)
        for object_type, label in wording.NAMES.items():
            audit.name_objects(object_type, label)
        for object_type, path in wording.WATCHED.items():
            audit.watch(object_type, path)
        post_migrate.connect(database_guards.install_after_migrate, sender=self)
        for section in SECTIONS:
            sections.register_section(section)
