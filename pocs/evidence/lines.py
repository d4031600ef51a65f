"""The lines of a revision: every value of it under a path that stays the same between revisions.

Paths are `title`, the name of a field (`seen`), a setting of a map (`engine_settings.max_batch`), a cell
of a responsibility (`alert/KV watermark/team`), `run:12` and `file:report.pdf`. Rows are told apart by
kind and subject, so that a moved row stays the same line.
"""

from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _

from pocs.evidence.bodies import SCHEMAS, BodyField
from pocs.evidence.choices import EvidenceType, ResponsibilityKind
from pocs.evidence.models import EvidenceRevision
from pocs.evidence.presentation import Names, flatten, plain

#: digits of a digest that tell two apart for a reader
DIGEST_SHOWN = 16
#: where lines that belong to no field of the body are shown
TITLE, RUNS, FILES = "title", "runs", "files"


@dataclass(frozen=True)
class Line:
    """One value: the field it belongs to, its name in words, and what stands there as text."""

    path: str
    field: str
    label: str
    text: str

    @property
    def parts(self) -> list[str]:
        """The lines of a longer text, for a comment on one of them; none for a single line."""
        parts = [part.strip() for part in self.text.splitlines() if part.strip()]
        return parts if len(parts) > 1 else []


Lines = dict[str, Line]


def lines_of(revision: EvidenceRevision, names: Names | None = None) -> Lines:
    """Every line of the revision by its path, in the order of the fields."""
    names = names or Names.of(revision)
    found = [Line(TITLE, TITLE, _("Title"), revision.title)]
    found += body_lines(revision.evidence.type, revision.body, names)
    found += [Line(f"run:{run.pk}", RUNS, _("Attached run"), str(run)) for run in revision.runs.all()]
    found += [
        Line(f"file:{item.name}", FILES, _("Attached file"), f"{item.name} · {item.sha256[:12]}")
        for item in revision.attachments.all()
    ]
    return {line.path: line for line in found}


def body_lines(type: EvidenceType | str, body: dict[str, Any], names: Names) -> list[Line]:
    """The lines of a body alone, also of one that is not stored."""
    found: list[Line] = []
    for field in SCHEMAS[EvidenceType(type)]:
        value = body.get(field.name)
        if field.kind == "map":
            found += [
                Line(f"{field.name}.{path}", field.name, f"{field.label} · {path}", text)
                for path, text in flatten(value or {})
            ]
        elif field.kind == "rows":
            found += _row_lines(field, value or [], names)
        else:
            text = plain(field, value, names)
            text = text[:DIGEST_SHOWN] if field.kind == "digest" else text
            found.append(Line(field.name, field.name, str(field.label), text))
    return found


def _row_lines(field: BodyField, rows: list[dict[str, Any]], names: Names) -> list[Line]:
    labels = dict(ResponsibilityKind.choices)
    found: list[Line] = []
    seen: set[str] = set()
    for row in rows:
        where = f"{labels.get(row['kind'], '—')} “{row['subject']}”"
        base = key = f"{row['kind']}/{row['subject']}"
        repeat = 1
        while key in seen:
            repeat += 1
            key = f"{base}#{repeat}"
        seen.add(key)
        found += [
            Line(
                f"{key}/{column.name}",
                field.name,
                f"{where} · {column.label}",
                plain(column, row[column.name], names),
            )
            for column in field.columns
            if column.name != "kind"
        ]
    return found
