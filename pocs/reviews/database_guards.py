"""Triggers that keep frozen and audited content as it is, whoever writes: the database itself refuses.

They are put in place after every `migrate`, and not by one migration: SQLite forgets a table's triggers
when a later migration rebuilds it. Content columns of frozen evidence, of packages, of given signatures
and of audit entries cannot be changed; states may move on as the services move them.
"""

from dataclasses import dataclass, field
from typing import Any

from django.db import connections

REVISION = "evidence_evidencerevision"
FROZEN = "{row}.state IN ('frozen', 'superseded')"
PARENT = (
    "EXISTS (SELECT 1 FROM evidence_evidencerevision r WHERE r.id = {row}.{column}"
    " AND r.state IN ('frozen', 'superseded'))"
)


@dataclass(frozen=True)
class Guard:
    """Refuses one kind of change of a table's rows while `when` holds for them."""

    name: str
    table: str
    event: str  # UPDATE, INSERT or DELETE
    when: str
    message: str
    columns: tuple[str, ...] = field(default=())


def _parent(event: str, table: str, column: str = "revision_id") -> Guard:
    row = "NEW" if event == "INSERT" else "OLD"
    when = PARENT.format(row=row, column=column)
    kind = event.lower()
    return Guard(
        f"guard_{table}_{kind}", table, event, when, "what belongs to frozen evidence does not change"
    )


GUARDS = [
    Guard(
        "guard_frozen_revision",
        REVISION,
        "UPDATE",
        FROZEN.format(row="OLD"),
        "frozen evidence does not change",
        ("evidence_id", "number", "title", "body", "content_sha256", "created_by_id", "token_id",
         "submitted_at", "submitted_by_id", "reviewed_by_id", "reviewed_at"),
    ),
    Guard(
        "guard_frozen_revision_state",
        REVISION,
        "UPDATE",
        f"{FROZEN.format(row='OLD')} AND NEW.state NOT IN ('frozen', 'superseded')",
        "frozen evidence stays frozen or is superseded",
        ("state",),
    ),
    Guard("guard_frozen_revision_delete", REVISION, "DELETE", FROZEN.format(row="OLD"), "it stays"),
    _parent("INSERT", "evidence_attachment"),
    _parent("UPDATE", "evidence_attachment"),
    _parent("DELETE", "evidence_attachment"),
    _parent("INSERT", "evidence_evidencerevision_runs", "evidencerevision_id"),
    _parent("UPDATE", "evidence_evidencerevision_runs", "evidencerevision_id"),
    _parent("DELETE", "evidence_evidencerevision_runs", "evidencerevision_id"),
    Guard(
        "guard_package_content",
        "reviews_package",
        "UPDATE",
        "1 = 1",
        "a frozen package does not change",
        ("project_id", "number", "manifest", "digest", "frozen_by_id", "frozen_at"),
    ),
    Guard(
        "guard_signature_content",
        "reviews_signoff",
        "UPDATE",
        "OLD.signed_at IS NOT NULL",
        "a signature does not change",
        ("package_id", "slot", "seat", "signer_id", "on_behalf_of_id", "digest", "comment", "meaning",
         "signed_at"),
    ),
    Guard(
        "guard_audit_entry",
        "common_auditentry",
        "UPDATE",
        "1 = 1",
        "audit entries are written once",
        ("organisation_id", "sequence", "at", "actor", "verb", "object_type", "object_id", "object_label",
         "project_id", "before", "after", "previous_hash", "hash"),
    ),
]  # fmt: skip


def install(using: str = "default") -> None:
    """Put every guard in place, replacing one that is there; of tables that do not exist yet, none."""
    connection = connections[using]
    tables = set(connection.introspection.table_names())
    with connection.cursor() as cursor:
        for guard in GUARDS:
            if guard.table in tables:
                for statement in _statements(connection.vendor, guard):
                    cursor.execute(statement)


def remove(using: str = "default") -> None:
    """Take every guard away: for a repair by hand, and for tests of what is found without them."""
    connection = connections[using]
    with connection.cursor() as cursor:
        for guard in GUARDS:
            on = f" ON {guard.table}" if connection.vendor == "postgresql" else ""
            cursor.execute(f"DROP TRIGGER IF EXISTS {guard.name}{on}")


def install_after_migrate(sender: Any, using: str, **kwargs: Any) -> None:
    """Receiver of `post_migrate`."""
    install(using)


def _statements(vendor: str, guard: Guard) -> list[str]:
    differs = "IS NOT" if vendor == "sqlite" else "IS DISTINCT FROM"
    changes = [f'OLD."{name}" {differs} NEW."{name}"' for name in guard.columns]
    when = f"({guard.when})" + (f" AND ({' OR '.join(changes)})" if changes else "")
    if vendor == "sqlite":
        return [
            f"DROP TRIGGER IF EXISTS {guard.name}",
            f"CREATE TRIGGER {guard.name} BEFORE {guard.event} ON {guard.table} FOR EACH ROW WHEN {when} "
            f"BEGIN SELECT RAISE(ABORT, '{guard.message}'); END",
        ]
    if vendor == "postgresql":
        row = "OLD" if guard.event == "DELETE" else "NEW"
        return [
            f"CREATE OR REPLACE FUNCTION {guard.name}() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
            f"IF {when} THEN RAISE EXCEPTION '{guard.message}' USING ERRCODE = 'check_violation'; END IF; "
            f"RETURN {row}; END $$",
            f"DROP TRIGGER IF EXISTS {guard.name} ON {guard.table}",
            f"CREATE TRIGGER {guard.name} BEFORE {guard.event} ON {guard.table} "
            f"FOR EACH ROW EXECUTE FUNCTION {guard.name}()",
        ]
    return []
