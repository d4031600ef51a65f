"""The way of a run into the engine queue, by task name, so that services need not know the tasks."""

from celery import signature
from django.db import transaction
from django.utils import timezone

from pocs.runs.models import Run

RUN_EXECUTE_TASK = "pocs.runs.tasks.run_execute"
CONFORMANCE_TASK = "pocs.runs.tasks.conformance_execute"


def enqueue(run: Run) -> None:
    """Send the run's task once the surrounding transaction commits; a copy stops at the lease."""
    Run.objects.filter(pk=run.pk).update(enqueued_at=timezone.now())
    transaction.on_commit(lambda: signature(RUN_EXECUTE_TASK, args=(run.pk,)).apply_async())


def enqueue_conformance(report_id: int) -> None:
    """Send the task of a report once the surrounding transaction commits; a copy finds it taken."""
    transaction.on_commit(lambda: signature(CONFORMANCE_TASK, args=(report_id,)).apply_async())
