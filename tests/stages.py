"""Points of a project's way at which many tests begin: reached once through the services, then copied.

The first test of a process that needs a stage reaches it by the services and has the rows that changed
noted; later ones write these rows and get copies of the objects, which takes a tenth of the time. A test
that has changed anything before it asks for a stage reaches it through the services.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, TypeVar

from django.apps import apps
from django.conf import settings
from django.db import connection

from tests.factories import Cast

T = TypeVar("T")
Rows = dict[Any, tuple[Any, ...]]
CHANGES = ("INSERT", "UPDATE", "DELETE", "REPLACE")
#: tables of Django itself, which flushing a database fills again under other numbers
LEFT_OUT = {"django_content_type", "auth_permission", "django_session", "django_migrations"}


@dataclass(frozen=True)
class Table:
    name: str
    key: str
    columns: tuple[str, ...]

    def rows(self) -> Rows:
        # a plus keeps SQLite's converters away: values are written again as they are stored
        plus = "+" if connection.vendor == "sqlite" else ""
        quoted = [connection.ops.quote_name(column) for column in self.columns]
        listed = ", ".join(f"{plus}{column} AS {column}" for column in quoted)
        with connection.cursor() as cursor:
            cursor.execute(f"SELECT {listed} FROM {connection.ops.quote_name(self.name)}")
            place = self.columns.index(self.key)
            return {row[place]: row for row in cursor.fetchall()}

    def write(self, before: Rows, after: Rows) -> None:
        """Make `after` of `before`; both hold only rows that differ."""
        name = connection.ops.quote_name(self.name)
        quoted = [connection.ops.quote_name(column) for column in self.columns]
        key = connection.ops.quote_name(self.key)
        gone = [(pk,) for pk in before if pk not in after]
        changed = [(*row, pk) for pk, row in after.items() if pk in before]
        added = [row for pk, row in after.items() if pk not in before]
        marks = ", ".join(["%s"] * len(quoted))
        with connection.cursor() as cursor:
            if gone:
                cursor.executemany(f"DELETE FROM {name} WHERE {key} = %s", gone)
            if changed:
                assigned = ", ".join(f"{column} = %s" for column in quoted)
                cursor.executemany(f"UPDATE {name} SET {assigned} WHERE {key} = %s", changed)
            if added:
                cursor.executemany(f"INSERT INTO {name} ({', '.join(quoted)}) VALUES ({marks})", added)


@dataclass
class Recorded:
    """A stage: all rows, those that differ from the stage before, its files, and the objects it made."""

    rows: dict[Table, Rows]
    changes: list[tuple[Table, Rows, Rows]]
    checkpoints: dict[str, bytes]
    cast: Cast
    made: Any


_recorded: dict[tuple[str, ...], Recorded] = {}


class Stages:
    """The stages that one test has reached."""

    def __init__(self) -> None:
        self._reached: tuple[str, ...] = ()
        self._cast: Cast | None = None
        self._watching = True
        self._left = False  # the test has changed something of its own

    @contextmanager
    def watched(self) -> Iterator["Stages"]:
        with connection.execute_wrapper(self._watch):
            yield self

    def cast(self, make: Callable[[], Cast]) -> Cast:
        """The people and the project, to which all later stages belong."""
        self._cast = self.reach("cast", make)
        return self._cast

    def reach(self, name: str, build: Callable[[], T]) -> T:
        """What `build` makes, from the stage that was reached last."""
        stage = (*self._reached, name)
        # outside of a transaction rows are checked one by one, and committed: nothing to be copied in bulk
        if self._left or not connection.in_atomic_block:
            return build()
        self._watching = False
        try:
            made: T = self._copied(_recorded[stage]) if stage in _recorded else self._built(stage, build)
        finally:
            self._watching = True
        self._reached = stage
        return made

    def _built(self, stage: tuple[str, ...], build: Callable[[], T]) -> T:
        known = _recorded.get(stage[:-1])
        before = known.rows if known else _all_rows()
        made = build()
        after = _all_rows()
        changes = []
        for table, rows in after.items():
            old = before[table]
            differing = {pk for pk in {*rows, *old} if rows.get(pk) != old.get(pk)}
            if differing:
                parts = ({pk: part[pk] for pk in differing if pk in part} for part in (old, rows))
                changes.append((table, *parts))
        cast, copied = deepcopy((self._cast or made, made))
        assert isinstance(cast, Cast)
        _recorded[stage] = Recorded(after, changes, _checkpoints(), cast, copied)
        return made

    def _copied(self, recorded: Recorded) -> Any:
        # what belongs to a row comes before it: the database takes nothing new under one that is frozen
        for table, before, after in reversed(recorded.changes):
            table.write(before, after)
        folder = Path(settings.PHASEGATE_AUDIT_CHECKPOINTS)
        for name, content in recorded.checkpoints.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        if self._cast is None:
            return deepcopy(recorded.made)
        # the test holds its people and its project already: they stay the same objects
        memo: dict[int, Any] = {id(recorded.cast): self._cast}
        pairs = [(getattr(recorded.cast, part.name), getattr(self._cast, part.name)) for part in fields(Cast)]
        memo |= {id(there): here for there, here in pairs}
        for there, here in pairs:
            here.__dict__.update(deepcopy(there.__dict__, memo))
        return deepcopy(recorded.made, memo)

    def _watch(self, execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        if self._watching and sql.lstrip()[:7].upper().startswith(CHANGES):
            self._left = True
        return execute(sql, params, many, context)


def _all_rows() -> dict[Table, Rows]:
    return {table: table.rows() for table in _tables()}


def _tables() -> list[Table]:
    # a model's own rows before those of its many-to-many tables
    models = sorted(
        apps.get_models(include_auto_created=True), key=lambda model: model._meta.auto_created is not False
    )
    return [
        Table(meta.db_table, meta.pk.column, tuple(field.column for field in meta.concrete_fields))
        for meta in (model._meta for model in models)
        if meta.managed and not meta.proxy and meta.db_table not in LEFT_OUT
    ]


def _checkpoints() -> dict[str, bytes]:
    folder = Path(settings.PHASEGATE_AUDIT_CHECKPOINTS)
    if not folder.exists():
        return {}
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}
