"""Middleware of the site: the content security policy, language and time zone."""

import re
import zoneinfo
from collections.abc import Callable

from django.http import HttpRequest, HttpResponse
from django.utils import timezone, translation
from django.utils.deprecation import MiddlewareMixin

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
