"""State changes of a run: each is one transaction with its audit entry and its live events."""

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from django.db import transaction
from django.utils import timezone

from pocs.common import audit, events
from pocs.common.actors import Actor
from pocs.runs.choices import FINAL_STATES, RunState, Validity
from pocs.runs.models import Run


class TransitionRefused(Exception):
    """The run was not in a state from which it may go there, or someone else holds its lease."""


def run_move(
    *,
    run_id: int,
    actor: Actor,
    to: RunState,
    expect: Iterable[RunState],
    owner: str | None = None,
    lapsed_at: datetime | None = None,
    **changes: Any,
) -> Run:
    """Move the run to state `to` and set the fields in `changes`; returns the row as stored.

    Raises TransitionRefused when the state is none of `expect`, when `owner` is given and the lease
    belongs to another, or when `lapsed_at` is given and the lease was still good then: the row is
    read under its lock, so only one of two callers succeeds.
    """
    with transaction.atomic():
        run = Run.objects.select_for_update().get(pk=run_id)
        if run.state not in list(expect):
            raise TransitionRefused(f"run {run_id} is {run.state}")
        if owner is not None and run.lease_owner != owner:
            raise TransitionRefused(f"run {run_id} is held by {run.lease_owner or 'nobody'}")
        if lapsed_at is not None and (run.lease_expires_at is None or run.lease_expires_at >= lapsed_at):
            raise TransitionRefused(f"the lease of run {run_id} is good")
        before = {"state": run.state, "validity": run.validity}
        if to in FINAL_STATES:
            changes |= {"lease_owner": "", "lease_expires_at": None, "finished_at": timezone.now()}
            if to != RunState.COMPLETE:
                changes.setdefault("validity", Validity.INVALID)
                changes.setdefault("validity_reasons", [{"code": "not_complete", "figures": {"state": to}}])
        run.state = to
        for name, value in changes.items():
            setattr(run, name, value)
        run.version += 1
        run.save(update_fields=["state", "version", "updated_at", *changes])
        after = {"state": run.state, "validity": run.validity}
        if run.error:
            after["error"] = run.error
        audit.record(
            actor=actor, verb=f"run.{to}", obj=run, project_id=run.project_id, before=before, after=after
        )
        announce(run)
    return run


def announce(run: Run) -> None:
    """Tell the run's page, its matrix and its project about the state just written."""
    state = {"state": run.state, "validity": run.validity, "error": run.error}
    events.emit(f"run:{run.pk}", "state", state)
    here = state | {"run": run.pk, "number": run.number}
    if run.matrix_id is not None:
        events.emit(f"matrix:{run.matrix_id}", "state", here)
    events.emit(f"project:{run.project_id}", "run", here)
