"""Registration of the app `people` and the names of its changes."""

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class PeopleConfig(AppConfig):
    name = "pocs.people"
    verbose_name = _("People")

    def ready(self) -> None:
        # models can be imported only now
        from pocs.common import access, audit  # noqa: PLC0415
        from pocs.people import rights  # noqa: PLC0415

        access.declare(rights.TABLE)
        audit.name_verbs(
            {
                "user.preferences_set": _("set their preferences"),
                "user.added": _("added a person"),
                "user.placed": _("changed a person's role or team"),
                "user.activated": _("let a person in again"),
                "user.deactivated": _("deactivated a person"),
                "team.created": _("added a team"),
                "delegation.given": _("named a deputy"),
                "delegation.revoked": _("ended the delegation"),
            }
        )
