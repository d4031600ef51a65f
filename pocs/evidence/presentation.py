"""A body as people read it: labels beside values, names instead of ids."""

from dataclasses import dataclass
from typing import Any

from pocs.evidence.bodies import SCHEMAS, BodyField
from pocs.evidence.choices import EvidenceType, ResponsibilityKind
from pocs.evidence.models import EvidenceRevision
from pocs.people.models import Team, User
from pocs.projects.models import Project
from pocs.runs.models import Run


@dataclass(frozen=True)
class Names:
    """Names of the runs, teams and people that bodies of one project refer to by id."""

    run: dict[int, str]
    team: dict[int, str]
    user: dict[int, str]

    @classmethod
    def of(cls, *revisions: EvidenceRevision) -> "Names":
        """Names of everything these revisions' bodies refer to."""
        project = revisions[0].evidence.project
        return cls.in_bodies(project, *(revision.body for revision in revisions))

    @classmethod
    def in_bodies(cls, project: Project, *bodies: dict[str, Any]) -> "Names":
        wanted: dict[str, set[int]] = {"run": set(), "team": set(), "user": set()}
        for body in bodies:
            rows = body.get("rows") or []
            wanted["run"].add(body.get("source_run") or 0)
            wanted["user"].add(body.get("owner") or 0)
            wanted["user"].update(row.get("person") or 0 for row in rows)
            wanted["team"].update(row.get("team") or 0 for row in rows)
        organisation_id = project.organisation_id
        return cls(
            run=_names(Run.objects.filter(project=project), wanted["run"]),
            team=_names(Team.objects.filter(organisation_id=organisation_id), wanted["team"]),
            user=_names(User.objects.filter(organisation_id=organisation_id), wanted["user"]),
        )


def _names(rows: Any, wanted: set[int]) -> dict[int, str]:
    wanted = wanted - {0}
    return {row.pk: str(row) for row in rows.filter(pk__in=wanted)} if wanted else {}


def plain(field: BodyField, value: Any, names: Names) -> str:
    """One value of a body as text; empty for an unwritten one."""
    if value in (None, "", []):
        return ""
    if field.kind in ("run", "team", "user"):
        return getattr(names, field.kind).get(value, f"#{value}")
    if field.kind == "choice":
        return str(dict(ResponsibilityKind.choices).get(value, value))
    return ", ".join(value) if field.kind == "lines" else str(value)


def flatten(settings: dict[str, Any], prefix: str = "") -> list[tuple[str, str]]:
    """Nested settings as (dotted path, text) pairs, sorted by path."""
    found = []
    for key in sorted(settings):
        value, path = settings[key], f"{prefix}{key}"
        if isinstance(value, dict) and value:
            found += flatten(value, f"{path}.")
        else:
            found.append((path, _text(value)))
    return found


def _text(value: Any) -> str:
    if isinstance(value, bool) or value is None:
        return {True: "true", False: "false", None: "null"}[value]
    if isinstance(value, list):
        return ", ".join(_text(item) for item in value)
    return str(value)


@dataclass(frozen=True)
class ShownField:
    """One field of a body for a page: `text`, or the `settings` of a map, or the cells of `rows`."""

    name: str
    label: str
    kind: str
    text: str = ""
    settings: tuple[tuple[str, str], ...] = ()
    columns: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()


def shown_fields(revision: EvidenceRevision) -> list[ShownField]:
    """The revision's body in the order of its schema."""
    names = Names.of(revision)
    return [
        _shown(field, revision.body.get(field.name), names)
        for field in SCHEMAS[EvidenceType(revision.evidence.type)]
    ]


def _shown(field: BodyField, value: Any, names: Names) -> ShownField:
    label = str(field.label)
    if field.kind == "map":
        return ShownField(field.name, label, "map", settings=tuple(flatten(value or {})))
    if field.kind == "rows":
        columns = tuple(str(column.label) for column in field.columns)
        cells = tuple(
            tuple(plain(column, row.get(column.name), names) for column in field.columns)
            for row in value or []
        )
        return ShownField(field.name, label, "rows", columns=columns, rows=cells)
    return ShownField(field.name, label, field.kind, text=plain(field, value, names))
