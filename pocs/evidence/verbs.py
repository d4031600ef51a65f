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
    "review.requested": _("asked for a review"),
    "review.request_answered": _("answered the request for a review"),
    "review.request_withdrawn": _("took the request for a review back"),
    "thread.opened": _("commented on a line of the evidence"),
    "thread.commented": _("answered in a discussion"),
    "thread.resolved": _("resolved a discussion"),
    "thread.reopened": _("opened a discussion again"),
    "readiness.supported": _("named evidence for a readiness point"),
    "readiness.support_removed": _("took evidence off a readiness point"),
}
