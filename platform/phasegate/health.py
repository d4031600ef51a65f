"""Is the process alive (`/healthz`), and can the site do its work (`/readyz`)?"""

import logging

import redis
from django.db import DatabaseError, connection
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.http import require_safe

from phasegate import worker_presence

logger = logging.getLogger(__name__)


@require_safe
def healthz(request: HttpRequest) -> HttpResponse:
    """200 as long as this process answers; looks at nothing else."""
    return HttpResponse("ok\n", content_type="text/plain")


@require_safe
def readyz(request: HttpRequest) -> JsonResponse:
    """200 when database, broker and a worker of each queue answer, else 503; names what does not."""
    checks = {"database": _database(), "broker": False, "engine_worker": False, "default_worker": False}
    try:
        queues = worker_presence.queues_served()
    except (redis.RedisError, OSError) as error:
        logger.warning("the broker does not answer: %s", error)
    else:
        checks |= {"broker": True, "engine_worker": "engine" in queues, "default_worker": "default" in queues}
    ready = all(checks.values())
    return JsonResponse({"ready": ready, "checks": checks}, status=200 if ready else 503)


def _database() -> bool:
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1 FROM django_migrations LIMIT 1")
            cursor.fetchone()
    except DatabaseError as error:
        logger.warning("the database does not answer: %s", error)
        return False
    return True
