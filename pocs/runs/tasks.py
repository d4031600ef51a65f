"""Celery tasks of runs: each takes an id and calls one function."""

import logging
from typing import Any

from celery import Task, shared_task, signals

from pocs.runs import execution, services
from pocs.runs.queue import CONFORMANCE_TASK, RUN_EXECUTE_TASK

logger = logging.getLogger(__name__)


@shared_task(name=RUN_EXECUTE_TASK, bind=True)
def run_execute(self: Task, run_id: int) -> None:
    """Execute a queued run on this worker; a redelivered copy finds the lease taken and does nothing."""
    execution.run_execute(run_id, worker=self.request.hostname or "local")


@shared_task(name=CONFORMANCE_TASK)
def conformance_execute(report_id: int) -> None:
    """Look at the stream habits of an endpoint."""
    services.conformance_execute(report_id)


@signals.worker_shutting_down.connect
def _let_go(**kwargs: Any) -> None:
    """A worker waits for its task before it ends: let the run end first, kept as far as it got."""
    execution.worker_ends.set()


@shared_task(name="pocs.runs.tasks.reap")
def reap() -> None:
    """Interrupt runs whose worker died, send lost runs again, and conclude experiments that have ended."""
    reaped, requeued = services.reap_expired_leases(), services.requeue_lost_runs()
    if concluded := services.experiments_conclude():
        logger.info("concluded experiments %s", concluded)
    if reaped or requeued:
        logger.warning("reaper: interrupted runs %s, sent again runs %s", reaped, requeued)
