"""The desk's life: it starts with a worker that serves the queue `engine`, and ends before it does."""

from typing import Any

from celery import signals
from django.conf import settings

from pocs.runs.seat import seat
from pocs.serving.desk import Desk
from pocs.serving.limits import limits

ENGINE_QUEUE = "engine"

_desks: list[Desk] = []


@signals.worker_ready.connect
def _open(sender: Any, **kwargs: Any) -> None:
    """`sender` is the worker's consumer: it knows the worker's name and its queues."""
    if ENGINE_QUEUE in sender.app.amqp.queues.consume_from:
        desk = Desk(url=settings.REDIS_URL, seat=seat, limits=limits(), hostname=sender.hostname)
        _desks.append(desk)
        desk.start()


@signals.worker_shutting_down.connect
def _close(**kwargs: Any) -> None:
    """Open requests are told at once; a run that waits for the engine behind them goes on to its own end."""
    while _desks:
        _desks.pop().end()
