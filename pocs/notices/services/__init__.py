"""Everything that tells people something, and what they choose about it."""

from pocs.notices.services.delivering import deliveries_send
from pocs.notices.services.mailing import digests_mail, notices_mail
from pocs.notices.services.preferences import notice_settings_set
from pocs.notices.services.reading import entries_read
from pocs.notices.services.reminding import waivers_remind
from pocs.notices.services.webhooks import (
    delivery_repeat,
    webhook_create,
    webhook_delete,
    webhook_secret_renew,
    webhook_try,
    webhook_update,
)

__all__ = [
    "deliveries_send",
    "delivery_repeat",
    "digests_mail",
    "entries_read",
    "notice_settings_set",
    "notices_mail",
    "waivers_remind",
    "webhook_create",
    "webhook_delete",
    "webhook_secret_renew",
    "webhook_try",
    "webhook_update",
]
