"""Uploads that end at the limit: the rest of a larger file is dropped while it arrives, the form is kept."""

from collections.abc import Callable
from functools import wraps
from typing import Any

from django.conf import settings
from django.core.files.uploadhandler import FileUploadHandler, SkipFile
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.views.decorators.csrf import csrf_exempt, csrf_protect

from pocs.evidence.files import plain_name


class LimitedUploadHandler(FileUploadHandler):
    """Stands before the other handlers and skips a file once it is larger than the limit.

    Names of skipped files go to `request.too_large_files`; the other fields are parsed as usual.
    """

    received_bytes = 0

    def new_file(self, *args: Any, **kwargs: Any) -> None:
        super().new_file(*args, **kwargs)
        self.received_bytes = 0

    def receive_data_chunk(self, raw_data: bytes, start: int) -> bytes:
        self.received_bytes += len(raw_data)
        if self.received_bytes > settings.PHASEGATE_ATTACHMENT_MAX_BYTES:
            request: Any = self.request
            request.too_large_files.append(plain_name(self.file_name or ""))
            raise SkipFile
        return raw_data

    def file_complete(self, file_size: int) -> None:
        """Leaves the finished file to the handlers behind."""


def limit_uploads(request: Any) -> None:
    """Install the handler; must run before anything reads the request's body."""
    request.too_large_files = []
    request.upload_handlers.insert(0, LimitedUploadHandler(request))


def limited_uploads(view: Callable[..., HttpResponseBase]) -> Callable[..., HttpResponseBase]:
    """A view whose uploads are limited while they arrive; outermost decorator.

    The middleware's CSRF check would read the body before the handler is there, so the check is
    made inside, after it is installed.
    """
    protected = csrf_protect(view)

    @csrf_exempt
    @wraps(view)
    def wrapped(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        if request.method == "POST":
            limit_uploads(request)
        return protected(request, *args, **kwargs)

    return wrapped
