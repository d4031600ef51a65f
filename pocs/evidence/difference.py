"""What differs between two revisions, field by field, in words that a reader knows."""

from dataclasses import asdict, dataclass
from typing import Any, Literal

from django.utils.translation import gettext as _

from pocs.evidence.bodies import SCHEMAS, BodyField
from pocs.evidence.choices import EvidenceType, ResponsibilityKind
from pocs.evidence.models import EvidenceRevision
from pocs.evidence.presentation import Names, flatten, plain

#: digits of a digest that tell two apart for a reader
DIGEST_SHOWN = 16

Leaves = dict[str, tuple[str, str]]  # key -> (label, value as text)


@dataclass(frozen=True)
class Change:
    """One field or setting that was added, changed or removed; values as text."""

    kind: Literal["added", "changed", "removed"]
    label: str
    before: str
    after: str

    def as_json(self) -> dict[str, str]:
        return asdict(self)


def changes_between(older: EvidenceRevision, newer: EvidenceRevision) -> list[Change]:
    """From one revision to another of the same evidence, in the order of the fields."""
    names = Names.of(older, newer)
    return compare(_leaves_of(older, names), _leaves_of(newer, names))


def changes_of_body(
    type: EvidenceType | str, before: dict[str, Any], after: dict[str, Any], names: Names
) -> list[Change]:
    """From one body to another, where the second one is not stored (the text of a refused form)."""
    return compare(body_leaves(type, before, names), body_leaves(type, after, names))


def compare(before: Leaves, after: Leaves) -> list[Change]:
    """Differences of two sets of labelled values; an empty value counts as none."""
    found = []
    for key in [*before, *(key for key in after if key not in before)]:
        old, new = before.get(key, ("", ""))[1], after.get(key, ("", ""))[1]
        if old == new:
            continue
        label = (after.get(key) or before[key])[0]
        kind: Literal["added", "changed", "removed"] = (
            "changed" if old and new else "added" if new else "removed"
        )
        found.append(Change(kind, label, old, new))
    return found


def _leaves_of(revision: EvidenceRevision, names: Names) -> Leaves:
    leaves: Leaves = {"title": (_("Title"), revision.title)}
    leaves |= body_leaves(revision.evidence.type, revision.body, names)
    for run in revision.runs.all():
        leaves[f"run:{run.pk}"] = (_("Attached run"), str(run))
    for item in revision.attachments.all():
        leaves[f"file:{item.name}"] = (_("Attached file"), f"{item.name} · {item.sha256[:12]}")
    return leaves


def body_leaves(type: EvidenceType | str, body: dict[str, Any], names: Names) -> Leaves:
    """Every value of a body under a key that stays the same between revisions."""
    leaves: Leaves = {}
    for field in SCHEMAS[EvidenceType(type)]:
        value = body.get(field.name)
        if field.kind == "map":
            for path, text in flatten(value or {}):
                leaves[f"{field.name}.{path}"] = (f"{field.label} · {path}", text)
        elif field.kind == "rows":
            leaves |= _row_leaves(field, value or [], names)
        else:
            text = plain(field, value, names)
            leaves[field.name] = (str(field.label), text[:DIGEST_SHOWN] if field.kind == "digest" else text)
    return leaves


def _row_leaves(field: BodyField, rows: list[dict[str, Any]], names: Names) -> Leaves:
    """Rows are told apart by kind and subject, so that a moved row is no change."""
    labels = dict(ResponsibilityKind.choices)
    leaves: Leaves = {}
    for row in rows:
        where = f"{labels.get(row['kind'], '—')} “{row['subject']}”"
        base = key = f"{row['kind']}/{row['subject']}"
        repeat = 1
        while f"{key}/subject" in leaves:
            repeat += 1
            key = f"{base}#{repeat}"
        for column in field.columns:
            if column.name != "kind":
                text = plain(column, row[column.name], names)
                leaves[f"{key}/{column.name}"] = (f"{where} · {column.label}", text)
    return leaves
