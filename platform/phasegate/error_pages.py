"""Answers of the site itself when no view gave one: pages for people, problem documents for the API."""

import logging

from django.core.exceptions import RequestDataTooBig
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext as _

from pocs.common.api.problems import problem_response

logger = logging.getLogger(__name__)


def _answer(request: HttpRequest, *, type: str, status: int, detail: str) -> HttpResponse:
    if request.path.startswith("/api/"):
        return problem_response(request, type=type, status=status, detail=detail)
    return render(request, f"{status}.html", {"detail": detail}, status=status)


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    """400, and 413 for a form that is larger than the site reads into memory."""
    if isinstance(exception, RequestDataTooBig):
        detail = _("This form is larger than the site accepts; nothing was stored.")
        return _answer(request, type="too-large", status=413, detail=detail)
    detail = _("The request cannot be understood.")
    return _answer(request, type="malformed", status=400, detail=detail)


def permission_denied(request: HttpRequest, exception: Exception) -> HttpResponse:
    detail = _("You may not do this.")
    return _answer(request, type="not-permitted", status=403, detail=detail)


def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponse:
    """403 for a form whose security token is missing or old."""
    logger.info("a form was refused at %s: %s", request.path, reason)
    detail = _(
        "This form was open for too long, or cookies are switched off. "
        "Go back, reload the page and send it again."
    )
    return _answer(request, type="not-permitted", status=403, detail=detail)


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    detail = _("There is nothing at this address, or you may not see it.")
    return _answer(request, type="not-found", status=404, detail=detail)


def database_busy(request: HttpRequest) -> HttpResponse:
    """503 for a change that others kept from its turn; nothing was stored, so it may be sent again."""
    detail = _("Too many changes came at the same moment; nothing of this one was stored. Send it again.")
    response = _answer(request, type="busy", status=503, detail=detail)
    response["Retry-After"] = "1"
    return response


def server_error(request: HttpRequest) -> HttpResponse:
    """500, rendered without the database: that may be what failed."""
    detail = _("Something failed on our side; nothing more is known here. The log has the details.")
    if request.path.startswith("/api/"):
        return problem_response(request, type="server-error", status=500, detail=detail)
    context = {"detail": detail, "request_id": getattr(request, "request_id", "")}
    return render(None, "500.html", context, status=500)
