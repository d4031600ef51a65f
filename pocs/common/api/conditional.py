"""Conditional requests: a row's integer version is its strong ETag, writes need `If-Match`."""

import re
from typing import Protocol

from django.utils.translation import gettext as _
from rest_framework.request import Request

from pocs.common.errors import PreconditionRequired, StaleVersion

_STRONG_TAG = re.compile(r'"(\d{1,10})"')


class Versioned(Protocol):
    version: int


def etag(row: Versioned) -> str:
    """`"7"` for version 7, quotes included."""
    return f'"{row.version}"'


def version_to_change(request: Request, row: Versioned) -> int:
    """The version the client says it has seen, for the service to compare again under its lock.

    Raises PreconditionRequired (428) without `If-Match` and StaleVersion (412) when it names
    another version or a weak tag; `*` accepts the version that is there.
    """
    given = request.headers.get("If-Match", "").strip()
    if not given:
        raise PreconditionRequired(
            _("Send If-Match with the ETag of what you have read, so that nobody's change is overwritten.")
        )
    if given == "*":
        return row.version
    tags = [match.group(1) for tag in given.split(",") if (match := _STRONG_TAG.fullmatch(tag.strip()))]
    if str(row.version) not in tags:
        raise StaleVersion(
            _("You changed another version than the one that is stored now (%(version)s). Read it again.")
            % {"version": row.version},
            current=row.version,
        )
    return row.version
