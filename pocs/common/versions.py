"""Optimistic saving: a row changes only in the version that its editor has seen."""

from typing import Any, TypeVar

from django.db import models
from django.utils import timezone
from django.utils.translation import gettext as _

from pocs.common.errors import StaleVersion
from pocs.common.models import VersionedModel

Row = TypeVar("Row", bound=VersionedModel)


def save_version(row: Row, *, version: int | None = None, **changes: Any) -> Row:
    """Write `changes` in one conditional update, raise the row's version by one and return the row.

    `version` is what the editor has seen; None means the one in `row`, which was just read. Raises
    StaleVersion, with nothing written, when another one is stored.
    """
    seen = row.version if version is None else version
    manager: models.Manager[Any] = type(row)._default_manager
    now = timezone.now()
    done = manager.filter(pk=row.pk, version=seen).update(version=seen + 1, updated_at=now, **changes)
    if not done:
        raise stale(row)
    for name, value in changes.items():
        setattr(row, name, value)
    row.version, row.updated_at = seen + 1, now
    return row


def stale(row: VersionedModel) -> StaleVersion:
    """The error for a row that was saved by someone else in between."""
    manager: models.Manager[Any] = type(row)._default_manager
    current = manager.filter(pk=row.pk).values_list("version", flat=True).first()
    text = _("Someone else saved in between: version %(current)s is stored, you changed version %(seen)s.")
    return StaleVersion(text % {"current": current, "seen": row.version}, current=current)


def changed(row: models.Model, fields: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """What of `fields` differs from the row, before and after: what the audit entry says."""
    before = {name: getattr(row, name) for name in fields if getattr(row, name) != fields[name]}
    return before, {name: fields[name] for name in before}
