"""Middleware of the site: the content security policy, a busy database, language and time zone."""

import logging
import re
import zoneinfo
from collections.abc import Callable

from django.db import OperationalError
from django.http import HttpRequest, HttpResponse
from django.utils import timezone, translation
from django.utils.deprecation import MiddlewareMixin

from phasegate.error_pages import database_busy

logger = logging.getLogger(__name__)
#: serialization failure, deadlock, lock not available, too many connections
BUSY_STATES = ("40001", "40P01", "55P03", "53300")
GetResponse = Callable[[HttpRequest], HttpResponse]

#: `data:` pictures are the arrows inside stylesheets; nothing else may be inline
_POLICY = (
    "default-src 'self'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; "
    "connect-src 'self' {sockets}; object-src 'none'; base-uri 'none'; frame-ancestors 'none'; "
    "form-action 'self'"
)


class ContentSecurityPolicyMiddleware(MiddlewareMixin):
    """A strict policy on every answer: own scripts, styles and sockets, nothing inline."""

    def process_response(self, request: HttpRequest, response: HttpResponse) -> HttpResponse:
        host = request.META.get("HTTP_HOST", "")
        # older browsers do not count web sockets as 'self'
        sockets = f"ws://{host} wss://{host}" if re.fullmatch(r"[A-Za-z0-9.:\[\]-]+", host) else ""
        response.headers.setdefault("Content-Security-Policy", _POLICY.format(sockets=sockets))
        return response


class BusyDatabaseMiddleware(MiddlewareMixin):
    """A transaction that waited too long for its turn, or lost to another, is answered with 503, not 500."""

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponse | None:
        if isinstance(exception, OperationalError) and _is_busy(exception):
            logger.warning("the database was busy at %s: %s", request.path, exception)
            return database_busy(request)
        return None


def _is_busy(error: OperationalError) -> bool:
    """Whether SQLite's lock was not to be had in time, or PostgreSQL gave up one of two transactions."""
    return getattr(error.__cause__, "sqlstate", None) in BUSY_STATES or "is locked" in str(error)


class PreferencesMiddleware:
    """Shows pages in the signed-in person's language and times in their time zone."""

    def __init__(self, get_response: GetResponse) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        user = request.user
        if not user.is_authenticated:
            return self.get_response(request)
        if user.language:
            translation.activate(user.language)
            request.LANGUAGE_CODE = translation.get_language()
        with timezone.override(_zone(user.time_zone)):
            return self.get_response(request)


def _zone(name: str) -> zoneinfo.ZoneInfo:
    """The named zone, or UTC for one that this machine does not know."""
    try:
        return zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError):
        return zoneinfo.ZoneInfo("UTC")
