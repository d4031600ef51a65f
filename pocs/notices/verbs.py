"""What the history calls the changes of this app."""

from django.utils.translation import gettext_lazy as _

NAMES = {
    "webhook.created": _("added a webhook"),
    "webhook.changed": _("changed a webhook"),
    "webhook.secret_renewed": _("renewed the secret of a webhook"),
    "webhook.disabled": _("switched a webhook off after failures"),
    "webhook.deleted": _("took a webhook away"),
}
