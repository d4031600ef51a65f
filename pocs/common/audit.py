"""The audit chain: one append-only, hash-linked list per organisation, written with the change.

Every service calls `record` inside the transaction of the change it describes; `verify` recomputes
the chain and compares it with the signed checkpoints that lie outside the database.
"""

from dataclasses import asdict
from typing import Any

from django.db import models, transaction
from django.utils import timezone

from pocs.common.actors import Actor
from pocs.common.canonical import digest
from pocs.common.models import AuditEntry, AuditHead

GENESIS = "0" * 64


def entry_payload(entry: AuditEntry) -> dict[str, Any]:
    """The fields that `entry.hash` covers, in the form they are hashed."""
    return {
        "organisation": entry.organisation_id,
        "sequence": entry.sequence,
        "at": entry.at.isoformat(),
        "actor": entry.actor,
        "verb": entry.verb,
        "object_type": entry.object_type,
        "object_id": entry.object_id,
        "object_label": entry.object_label,
        "project": entry.project_id,
        "before": entry.before,
        "after": entry.after,
        "previous": entry.previous_hash,
    }


def record(
    *,
    actor: Actor,
    verb: str,
    obj: models.Model,
    project_id: int | None = None,
    before: dict[str, Any] | None = None,
    after: dict[str, Any] | None = None,
) -> AuditEntry:
    """Append one entry (`verb` such as `run.completed`) to the chain of the actor's organisation.

    Must run inside the transaction of the change; raises TransactionManagementError outside one.
    """
    connection = transaction.get_connection()
    if not connection.in_atomic_block:
        raise transaction.TransactionManagementError("an audit entry belongs into its change's transaction")
    AuditHead.objects.get_or_create(organisation_id=actor.organisation_id)
    head = AuditHead.objects.select_for_update().get(organisation_id=actor.organisation_id)
    who = {key: value for key, value in asdict(actor).items() if value not in (None, ())}
    who.pop("token_scopes", None)
    entry = AuditEntry(
        organisation_id=actor.organisation_id,
        sequence=head.length + 1,
        at=timezone.now(),
        actor=who,
        verb=verb,
        object_type=obj._meta.label_lower,
        object_id=str(obj.pk),
        object_label=str(obj)[:300],
        project_id=project_id,
        before=before,
        after=after,
        previous_hash=head.hash,
    )
    entry.hash = digest(entry_payload(entry))
    entry.save(force_insert=True)
    head.length, head.hash = entry.sequence, entry.hash
    head.save(update_fields=["length", "hash"])
    return entry
