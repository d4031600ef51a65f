"""One id per request: in the answer's header, in problem bodies and in the log lines."""

import logging
import re
import uuid
from collections.abc import Callable
from contextvars import ContextVar

from django.http import HttpRequest, HttpResponse

HEADER = "X-Request-ID"
_SANE = re.compile(r"[A-Za-z0-9._-]{8,64}")
_current: ContextVar[str] = ContextVar("request_id", default="")


def current_request_id() -> str:
    """Id of the request being answered; empty outside one."""
    return _current.get()


def sane_request_id(given: str) -> str:
    """The id that a proxy has given, where it is one; else a new one."""
    return given if _SANE.fullmatch(given) else uuid.uuid4().hex


class RequestIdMiddleware:
    """Takes a sane `X-Request-ID` of a proxy, else makes one; sets `request.request_id`."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        request_id = sane_request_id(request.headers.get(HEADER, ""))
        request.request_id = request_id  # type: ignore[attr-defined]
        token = _current.set(request_id)
        try:
            response = self.get_response(request)
        finally:
            _current.reset(token)
        response[HEADER] = request_id
        return response


class RequestIdFilter(logging.Filter):
    """Gives every log record `request_id`, for formatters that print it."""

    def filter(self, record: logging.LogRecord) -> bool:
        record.request_id = _current.get() or "-"
        return True
