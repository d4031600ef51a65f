"""Reading the audit chain for what people are to be told: nothing is lost, and no change waits for it.

Each organisation's chain is read from where the last reading ended. A rule that fails is logged and
passed over: one odd entry never stops the rest.
"""

import logging
from datetime import timedelta

from django.db import transaction
from django.utils import timezone

from pocs.common.models import AuditEntry, AuditHead
from pocs.notices.models import AuditCursor
from pocs.notices.rules import tellings_of
from pocs.notices.services.telling import tell

log = logging.getLogger(__name__)
BATCH = 500
#: an organisation that was never read begins with what just happened, not with its whole past
FIRST_LOOK_BACK = timedelta(minutes=10)


def entries_read() -> int:
    """Read every chain that has grown; returns how many notices came of it."""
    told = 0
    for head in AuditHead.objects.order_by("organisation_id"):
        cursor = AuditCursor.objects.filter(organisation_id=head.organisation_id).first()
        if cursor is None:
            cursor, _made = AuditCursor.objects.get_or_create(
                organisation_id=head.organisation_id, defaults={"sequence": _first_sequence(head)}
            )
        while cursor.sequence < head.length:
            read, count = _batch_read(head.organisation_id)
            told += count
            if read < BATCH:
                break
    return told


@transaction.atomic
def _batch_read(organisation_id: int) -> tuple[int, int]:
    """Read the next entries; how many there were, and how many notices they gave."""
    cursor = AuditCursor.objects.select_for_update().get(organisation_id=organisation_id)
    rows = AuditEntry.objects.filter(organisation_id=organisation_id, sequence__gt=cursor.sequence)
    entries = list(rows.order_by("sequence")[:BATCH])
    count = sum(_entry_tell(entry) for entry in entries)
    if entries:
        cursor.sequence = entries[-1].sequence
        cursor.save(update_fields=["sequence"])
    return len(entries), count


def _entry_tell(entry: AuditEntry) -> int:
    try:
        with transaction.atomic():
            return sum(len(tell(telling)) for telling in tellings_of(entry))
    except Exception:
        log.exception("no notice of audit entry %s/%s", entry.organisation_id, entry.sequence)
        return 0


def _first_sequence(head: AuditHead) -> int:
    """The number before the first entry that is to be read."""
    since = timezone.now() - FIRST_LOOK_BACK
    recent = AuditEntry.objects.filter(organisation_id=head.organisation_id, at__gt=since)
    first = recent.order_by("sequence").values_list("sequence", flat=True).first()
    return head.length if first is None else first - 1
