"""Workers say that they are there: one key a worker in the broker, renewed while it lives."""

import contextlib
import json
import logging
import threading
from typing import Any

import redis
from celery import signals
from django.conf import settings

logger = logging.getLogger(__name__)

PREFIX = "phasegate:worker:"
RENEW_S = 3.0
EXPIRE_S = 12

_ended = threading.Event()


def broker() -> redis.Redis:
    """A client of the broker with short time-outs: presence and health never wait long."""
    return redis.Redis.from_url(settings.REDIS_URL, socket_timeout=2, socket_connect_timeout=2)


def queues_served() -> set[str]:
    """Names of the queues that at least one living worker consumes; raises redis.RedisError."""
    client = broker()
    found: set[str] = set()
    for key in client.scan_iter(match=f"{PREFIX}*", count=100):
        value = client.get(key)
        if value:
            found.update(json.loads(value))
    client.close()
    return found


def _renew(name: str, queues: list[str]) -> None:
    client = broker()
    while True:
        try:
            client.set(f"{PREFIX}{name}", json.dumps(queues), ex=EXPIRE_S)
        except redis.RedisError as error:
            logger.warning("the broker does not take this worker's sign of life: %s", error)
        if _ended.wait(RENEW_S):
            break
    with contextlib.suppress(redis.RedisError):  # the key expires by itself
        client.delete(f"{PREFIX}{name}")
    client.close()


@signals.worker_ready.connect
def _announce(sender: Any, **kwargs: Any) -> None:
    """`sender` is the worker's consumer: it knows the worker's name and its queues."""
    queues = sorted(sender.app.amqp.queues.consume_from)
    threading.Thread(target=_renew, args=(sender.hostname, queues), name="presence", daemon=True).start()


@signals.worker_shutdown.connect
def _withdraw(**kwargs: Any) -> None:
    _ended.set()
