"""Audit entries in a form for readers: who, what, and what became of which field."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.utils.translation import gettext as _

from pocs.common.audit import verb_name
from pocs.common.models import AuditEntry

LONGEST_VALUE = 300


@dataclass(frozen=True)
class Change:
    """One field before and after; None where the entry has no such side."""

    field: str
    before: str | None
    after: str | None


@dataclass(frozen=True)
class ReadableEntry:
    sequence: int
    at: datetime
    who: str
    what: str
    object: str
    changes: list[Change]
    hash: str


def readable(entries: list[AuditEntry]) -> list[ReadableEntry]:
    """The entries for a page, in the order given."""
    return [
        ReadableEntry(
            sequence=entry.sequence,
            at=entry.at,
            who=_who(entry.actor),
            what=verb_name(entry.verb),
            object=entry.object_label,
            changes=_changes(entry.before or {}, entry.after or {}),
            hash=entry.hash,
        )
        for entry in entries
    ]


def _who(actor: dict[str, Any]) -> str:
    if actor.get("kind") == "token":
        return _("CI token %(label)s") % {"label": actor.get("label", "")}
    if actor.get("kind") == "system":
        return _("the system")
    return str(actor.get("label", ""))


def _changes(before: dict[str, Any], after: dict[str, Any]) -> list[Change]:
    names = list(dict.fromkeys([*before, *after]))
    return [
        Change(name.replace("_", " "), _value(before, name), _value(after, name))
        for name in names
        if before.get(name) != after.get(name)
    ]


def _value(side: dict[str, Any], name: str) -> str | None:
    if name not in side or side[name] is None:
        return None
    text = ", ".join(map(str, side[name])) if isinstance(side[name], list) else str(side[name])
    return text if len(text) <= LONGEST_VALUE else text[:LONGEST_VALUE] + "…"
