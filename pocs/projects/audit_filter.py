"""Narrowing the audit: by project, person, kind of change, object and day."""

from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta

from django.db.models import QuerySet

from pocs.common.models import AuditEntry


@dataclass(frozen=True, kw_only=True)
class AuditFilter:
    """What entries must match; None and empty match everything. Days are UTC, both included."""

    project: int | None = None
    person: int | None = None
    verb: str = ""  # a verb, or its first part: `signoff` finds `signoff.approved`
    object_type: str = ""
    object_id: str = ""
    since: date | None = None
    until: date | None = None

    def apply(self, entries: QuerySet[AuditEntry]) -> QuerySet[AuditEntry]:
        """The entries that match."""
        if self.project is not None:
            entries = entries.filter(project_id=self.project)
        if self.person is not None:
            entries = entries.filter(actor__user_id=self.person)
        if self.verb:
            exact = "." in self.verb
            entries = entries.filter(
                **{"verb" if exact else "verb__startswith": self.verb if exact else f"{self.verb}."}
            )
        if self.object_type:
            entries = entries.filter(object_type=self.object_type)
        if self.object_id:
            entries = entries.filter(object_id=self.object_id)
        if self.since is not None:
            entries = entries.filter(at__gte=_start_of(self.since))
        if self.until is not None:
            entries = entries.filter(at__lt=_start_of(self.until + timedelta(days=1)))
        return entries


def _start_of(day: date) -> datetime:
    return datetime.combine(day, time.min, tzinfo=UTC)
