"""What the history calls the changes of this app."""

from django.utils.translation import gettext_lazy as _

NAMES = {
    "conclusion.saved": _("saved the conclusion"),
    "business_result.saved": _("saved the business result"),
    "package.frozen": _("froze the package"),
    "package.approved": _("completed the signatures of the package"),
    "package.rejected": _("rejected the package"),
    "package.stale": _("made the package stale"),
    "signoff.approved": _("signed"),
    "signoff.approved_with_conditions": _("signed with conditions"),
    "signoff.rejected": _("refused to sign"),
    "signoff.withdrawn": _("withdrew the signature"),
    "signoff.stale": _("made the signature stale"),
    "signoff.expired": _("ended the request to sign"),
    "signoff.password_refused": _("entered a wrong password when signing"),
    "waiver.requested": _("asked for a waiver"),
    "waiver.granted": _("granted the waiver"),
    "waiver.refused": _("refused the waiver"),
    "waiver.revoked": _("revoked the waiver"),
    "waiver.expired": _("ended the waiver: it expired"),
    "decision.proposed": _("proposed the decision"),
    "decision.confirmed": _("confirmed the decision"),
    "decision.revoked": _("revoked the decision"),
    "decision.superseded": _("superseded the decision"),
    "condition.closed": _("closed a condition"),
    "task.set": _("set the task"),
    "task.done": _("finished the task"),
    "observation.set": _("set the observation"),
    "observation.read": _("entered a reading"),
    "observation.closed": _("closed the observation"),
}
