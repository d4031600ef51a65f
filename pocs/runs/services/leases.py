"""Runs whose worker died, and queued runs whose task was lost: found in the database, never in the broker."""

from datetime import datetime, timedelta

from django.db import transaction
from django.utils import timezone
from django.utils.translation import ngettext

from pocs.common.actors import system_actor
from pocs.runs.choices import LEASED_STATES, RunState
from pocs.runs.lifecycle import TransitionRefused, run_move
from pocs.runs.models import Run
from pocs.runs.queue import enqueue
from pocs.runs.recovery import records_recover
from pocs.runs.selectors import expired_leases

#: a queued run without a task for so long gets another; a surplus copy stops at the lease
LOST_AFTER_S = 120


def reap_expired_leases(*, now: datetime | None = None) -> list[int]:
    """Interrupt every run whose lease has expired; what it recorded so far is kept. Returns their ids."""
    now = now or timezone.now()
    reaped = []
    for run in expired_leases(now).select_related("project"):
        try:
            _interrupt(run, now)
        except TransitionRefused:
            continue
        reaped.append(run.pk)
    return reaped


def _interrupt(run: Run, now: datetime) -> None:
    """End a run whose lease has lapsed, with every request that its segments hold."""
    with transaction.atomic():
        found = records_recover(run)
        kept = found.kept
        error = ngettext(
            "The worker stopped without a word; %(kept)s request that it had recorded is kept.",
            "The worker stopped without a word; %(kept)s requests that it had recorded are kept.",
            kept,
        ) % {"kept": kept}
        if found.never_sent:
            error += " " + ngettext(
                "%(count)s of its planned requests was never sent.",
                "%(count)s of its planned requests were never sent.",
                found.never_sent,
            ) % {"count": found.never_sent}
        run_move(
            run_id=run.pk,
            actor=system_actor(run.project.organisation_id),
            to=RunState.INTERRUPTED,
            expect=LEASED_STATES,
            lapsed_at=now,
            error=error,
        )


def requeue_lost_runs(*, now: datetime | None = None) -> list[int]:
    """Send another task for runs that have waited long without one being sent. Returns their ids."""
    before = (now or timezone.now()) - timedelta(seconds=LOST_AFTER_S)
    lost = Run.objects.filter(state=RunState.QUEUED, enqueued_at__lt=before).order_by("pk")
    for run in lost:
        enqueue(run)
    return [run.pk for run in lost]
