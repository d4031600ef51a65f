"""What the history calls the changes of this app."""

from django.utils.translation import gettext_lazy as _

NAMES = {
    "evidence.created": _("wrote new evidence"),
    "evidence.edited": _("edited the evidence"),
    "evidence.submitted": _("submitted the evidence for review"),
    "evidence.reviewed": _("reviewed the evidence"),
    "evidence.returned": _("returned the evidence"),
    "evidence.superseded": _("superseded the older revision"),
    "evidence.frozen": _("froze the evidence into a package"),
    "evidence.file_added": _("attached a file to the evidence"),
    "evidence.file_removed": _("took a file off the evidence"),
}
