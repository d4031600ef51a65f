"""Every refusal of the API as `application/problem+json` (RFC 9457).

`type` is a stable URI reference (`/problems/gate-not-met`) for programs, `title` and `detail` are
localised for people, `request_id` finds the log lines. `errors` lists wrong inputs by JSON pointer,
`missing` the guards that a transition did not pass.
"""

from http import HTTPStatus
from typing import Any

from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, JsonResponse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from rest_framework import exceptions
from rest_framework.response import Response
from rest_framework.views import set_rollback

from pocs.common.errors import DomainError, FieldError, InFlight, Missing
from pocs.common.middleware import current_request_id

CONTENT_TYPE = "application/problem+json"
TYPE_PREFIX = "/problems/"

TITLES = {
    "invalid": gettext_lazy("The request is not valid"),
    "invalid-input": gettext_lazy("Some of the input is wrong"),
    "malformed": gettext_lazy("The body cannot be read"),
    "not-authenticated": gettext_lazy("Sign in or send a token"),
    "not-permitted": gettext_lazy("Not permitted"),
    "not-found": gettext_lazy("Not found"),
    "method-not-allowed": gettext_lazy("This method is not offered here"),
    "not-acceptable": gettext_lazy("No representation of this kind"),
    "unsupported-media-type": gettext_lazy("This media type is not understood"),
    "conflict": gettext_lazy("The state does not allow this"),
    "gate-not-met": gettext_lazy("A gate is not met"),
    "stale-version": gettext_lazy("Someone else saved in between"),
    "precondition-required": gettext_lazy("If-Match is required"),
    "idempotency-key-reused": gettext_lazy("The key was used with another body"),
    "request-in-flight": gettext_lazy("The first request is still being answered"),
    "too-large": gettext_lazy("The body is too large"),
    "throttled": gettext_lazy("Too many requests"),
    "busy": gettext_lazy("Too many changes at once"),
    "server-error": gettext_lazy("The server failed"),
}

#: DRF's own exceptions by status
_TYPES_BY_STATUS = {
    400: "invalid",
    401: "not-authenticated",
    403: "not-permitted",
    404: "not-found",
    405: "method-not-allowed",
    406: "not-acceptable",
    413: "too-large",
    415: "unsupported-media-type",
    429: "throttled",
    500: "server-error",
}


def problem_body(
    *,
    type: str,
    status: int,
    detail: str,
    errors: list[FieldError] | None = None,
    missing: list[Missing] | None = None,
    **extra: Any,
) -> dict[str, Any]:
    """The members of one problem document; `errors` and `missing` only where there are any."""
    title = TITLES.get(type)
    body: dict[str, Any] = {
        "type": TYPE_PREFIX + type,
        "title": str(title) if title else HTTPStatus(status).phrase,
        "status": status,
        "detail": detail,
        "request_id": current_request_id(),
    }
    if errors:
        body["errors"] = [
            {"pointer": item.pointer, "code": item.code, "detail": str(item.detail)} for item in errors
        ]
    if missing:
        body["missing"] = [
            {
                "guard": item.guard,
                "code": item.code,
                "object": item.object,
                "detail": str(item.text),
                "url": item.url,
            }
            for item in missing
        ]
    return body | extra


def problem_response(request: HttpRequest, *, type: str, status: int, detail: str) -> JsonResponse:
    """A problem outside of REST framework's views: unknown routes, failures of the server."""
    body = problem_body(type=type, status=status, detail=detail)
    return JsonResponse(body, status=status, content_type=CONTENT_TYPE)


def exception_handler(exc: Exception, context: dict[str, Any]) -> Response | None:
    """REST framework's EXCEPTION_HANDLER: None (a failure of the server) for what is no refusal."""
    headers: dict[str, str] = {}
    if isinstance(exc, Http404):
        exc = exceptions.NotFound()
    elif isinstance(exc, PermissionDenied):
        exc = exceptions.PermissionDenied()
    if isinstance(exc, DomainError):
        body = _domain_body(exc)
        if isinstance(exc, InFlight):
            headers["Retry-After"] = str(exc.retry_after_s)
    elif isinstance(exc, exceptions.APIException):
        body = _framework_body(exc)
        if getattr(exc, "auth_header", None):
            headers["WWW-Authenticate"] = exc.auth_header  # type: ignore[attr-defined]
        if getattr(exc, "wait", None):
            headers["Retry-After"] = str(int(exc.wait))  # type: ignore[attr-defined]
    else:
        return None
    set_rollback()
    return Response(body, status=body["status"], headers=headers, content_type=CONTENT_TYPE)


def _domain_body(exc: DomainError) -> dict[str, Any]:
    return problem_body(
        type=exc.type,
        status=exc.status,
        detail=str(exc.detail),
        errors=getattr(exc, "errors", None),
        missing=getattr(exc, "missing", None),
        **exc.extra,
    )


def _framework_body(exc: exceptions.APIException) -> dict[str, Any]:
    if isinstance(exc, exceptions.ValidationError):
        return problem_body(
            type="invalid-input",
            status=400,
            detail=_("Some fields are missing or wrong."),
            errors=field_errors(exc.detail),
        )
    kind = (
        "malformed"
        if isinstance(exc, exceptions.ParseError)
        else _TYPES_BY_STATUS.get(exc.status_code, "invalid")
    )
    return problem_body(type=kind, status=exc.status_code, detail=str(exc.detail))


def field_errors(detail: Any, pointer: str = "") -> list[FieldError]:
    """REST framework's nested error detail as a flat list with JSON pointers."""
    if isinstance(detail, dict):
        found: list[FieldError] = []
        for key, value in detail.items():
            step = "" if key == "non_field_errors" else "/" + str(key).replace("~", "~0").replace("/", "~1")
            found += field_errors(value, pointer + step)
        return found
    if isinstance(detail, list):
        found = []
        for index, value in enumerate(detail):
            nested = isinstance(value, dict | list)
            found += field_errors(value, f"{pointer}/{index}" if nested else pointer)
        return found
    return [FieldError(pointer, str(getattr(detail, "code", "invalid")), str(detail))]
