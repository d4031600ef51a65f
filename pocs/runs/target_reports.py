"""What is known of an endpoint: its newest check and its newest look at stream habits."""

from datetime import timedelta
from typing import Any

from django.utils import timezone

from pocs.runs.choices import ReportKind, ReportState, TargetKind
from pocs.runs.models import Target, TargetReport

#: a task that says nothing for so long was lost with its worker
LOST_AFTER = timedelta(minutes=10)


def newest(target: Target, kind: str) -> TargetReport | None:
    """The newest report of a kind; None where there was none."""
    return target.reports.filter(kind=kind).select_related("requested_by").order_by("-id").first()


def under_way(target: Target) -> bool:
    """Whether stream habits are being looked at now."""
    since = timezone.now() - LOST_AFTER
    unfinished = (ReportState.QUEUED, ReportState.RUNNING)
    return target.reports.filter(
        kind=ReportKind.CONFORMANCE, state__in=unfinished, created_at__gt=since
    ).exists()


def check_state(target: Target) -> dict[str, Any] | None:
    """What is known of an endpoint now, for a run that starts: `{"state", "report", "at"}`.

    `state` is `passed`, `failed`, `changed` (checked before it was changed) or `unchecked`; None for the
    embedded engine.
    """
    if target.kind != TargetKind.HTTP:
        return None
    found = newest(target, ReportKind.CHECK)
    if found is None:
        return {"state": "unchecked", "report": None, "at": None}
    state = "passed" if found.ok else "failed"
    if found.target_version != target.version:
        state = "changed"
    return {"state": state, "report": found.pk, "at": found.created_at.isoformat()}
