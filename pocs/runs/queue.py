"""The way of a run into the engine queue, by task name, so that services need not know the tasks."""

from celery import signature
from django.db import transaction
from django.utils import timezone

from pocs.runs.models import Run

RUN_EXECUTE_TASK = "pocs.runs.tasks.run_execute"


def enqueue(run: Run) -> None:
    """Send the run's task once the surrounding transaction commits; a copy stops at the lease."""
    Run.objects.filter(pk=run.pk).update(enqueued_at=timezone.now())
    transaction.on_commit(lambda: signature(RUN_EXECUTE_TASK, args=(run.pk,)).apply_async())
