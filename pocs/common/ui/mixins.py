"""How pages act and fail: the actor of a request, and errors of services as errors of forms.

A page never shows a traceback: a refused service call either goes back into the form it came from
(`service_errors`), becomes a message (`service_messages`), or ends as a page of its own that says
what is wrong (`page`).
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import wraps
from typing import Any

from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.utils.translation import gettext as _

from pocs.common.access import ask_first, offered
from pocs.common.actors import Actor
from pocs.common.errors import DomainError, GateNotMet, InvalidInput, NotFound, NotPermitted
from pocs.common.reading import one_reading

#: refusals that belong to the whole page, not to a form
PAGE_ERRORS = (NotFound, NotPermitted)


def actor_of(request: HttpRequest) -> Actor:
    """The signed-in person as the author of changes; NotPermitted for an account without organisation."""
    user: Any = request.user
    if user.organisation_id is None:
        raise NotPermitted(_("Your account belongs to no organisation yet. Ask an administrator to add it."))
    return user.as_actor()


def problem_page(request: HttpRequest, error: DomainError) -> HttpResponse:
    """The page that says in words why something was refused, with the error's status."""
    context = {
        "error": error,
        "missing": getattr(error, "missing", []),
        "errors": getattr(error, "errors", []),
    }
    return render(request, "common/problem.html", context, status=error.status)


def reading_of(request: HttpRequest) -> AbstractContextManager[None]:
    """A page that only reads asks the database once for what several of its parts need."""
    return one_reading() if request.method in ("GET", "HEAD") else nullcontext()


def page(view: Callable[..., HttpResponseBase]) -> Callable[..., HttpResponseBase]:
    """A page: sign-in required, its right asked first, errors of the domain become pages of their own."""

    @wraps(view)
    def wrapped(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        try:
            methods = offered(request.resolver_match)
            if methods and request.method not in methods:
                return HttpResponseNotAllowed(methods)
            ask_first(lambda: actor_of(request), request.resolver_match, request.method)
            with reading_of(request):
                return view(request, *args, **kwargs)
        except DomainError as error:
            return problem_page(request, error)

    return login_required(wrapped)


class ServiceCall:
    """What became of a service call inside `service_errors` or `service_messages`."""

    def __init__(self) -> None:
        self.error: DomainError | None = None

    @property
    def failed(self) -> bool:
        return self.error is not None

    @property
    def status(self) -> int:
        """HTTP status for rendering the form again: 200 when nothing failed."""
        return self.error.status if self.error else 200


@contextmanager
def service_errors(form: forms.BaseForm) -> Iterator[ServiceCall]:
    """Put what a service refuses into the bound form, which is then rendered again as typed.

        with service_errors(form) as call:
            project = services.project_create(...)
        if not call.failed:
            return redirect(...)
        return render(..., status=call.status)

    NotFound and NotPermitted pass through: they concern the page, not its input.
    """
    call = ServiceCall()
    try:
        yield call
    except PAGE_ERRORS:
        raise
    except DomainError as error:
        call.error = error
        add_service_error(form, error)


def add_service_error(form: forms.BaseForm, error: DomainError) -> None:
    """Spread an error over the form's fields by pointer; what fits no field stands above the form."""
    known: dict[str, str] = getattr(form, "pointer_fields", {})
    if isinstance(error, InvalidInput) and error.errors:
        for wrong in error.errors:
            name = known.get(wrong.pointer) or _field_of(form, wrong.pointer)
            if name:
                form.add_error(name, forms.ValidationError(str(wrong.detail), code=wrong.code))
            else:
                where = wrong.pointer.strip("/").replace("/", " → ")
                form.add_error(None, f"{where}: {wrong.detail}" if where else str(wrong.detail))
        return
    form.add_error(None, forms.ValidationError(str(error.detail), code=error.type))
    if isinstance(error, GateNotMet):
        for item in error.missing:
            form.add_error(None, f"{item.guard}: {item.text}")


def _field_of(form: forms.BaseForm, pointer: str) -> str | None:
    """The form field a JSON pointer names: the whole path, or its last part that is a field."""
    parts = [part for part in pointer.split("/") if part]
    candidates = ["_".join(parts), *reversed(parts)]
    return next((name for name in candidates if name in form.fields), None)


@contextmanager
def service_messages(request: HttpRequest, success: str = "") -> Iterator[ServiceCall]:
    """For buttons without a form: a refusal becomes messages on the next page, success its own."""
    call = ServiceCall()
    try:
        yield call
    except PAGE_ERRORS:
        raise
    except DomainError as error:
        call.error = error
        messages.error(request, str(error.detail))
        for wrong in getattr(error, "errors", []):
            if str(wrong.detail) != str(error.detail):
                messages.error(request, str(wrong.detail))
        for item in getattr(error, "missing", []):
            messages.error(request, f"{item.guard}: {item.text}")
    else:
        if success:
            messages.success(request, success)
