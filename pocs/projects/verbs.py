"""What the history calls the changes of this app."""

from django.utils.translation import gettext_lazy as _

NAMES = {
    "project.created": _("created the project"),
    "project.changed": _("changed the project's description"),
    "project.state_changed": _("moved the project on"),
    "project.exported": _("exported the project's whole file"),
    "project.cancelled": _("cancelled the project"),
    "member.added": _("gave a role"),
    "member.removed": _("took a role back"),
    "affected.changed": _("changed what is affected"),
    "affected.added": _("listed as affected"),
    "affected.removed": _("took off the list of what is affected"),
    "readiness.set": _("stated readiness"),
    "declaration.set": _("declared"),
    "scenario.created": _("created the scenario"),
    "scenario.version_added": _("added the scenario version"),
    "scenario.approved": _("approved the scenario version"),
    "scenario.retired": _("retired the scenario version"),
    "workload.uploaded": _("uploaded a request set or trace"),
    "workload.confirmed": _("confirmed a request set or trace"),
    "workload.discarded": _("discarded a request set or trace"),
    "token.issued": _("issued a CI token"),
    "token.revoked": _("revoked a CI token"),
}
