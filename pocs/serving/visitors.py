"""Who asks from the playground: a signed-in person, by the session of the page and its CSRF token.

The request passes by the site's middlewares, as all live answers do: what they would check is checked here.
"""

from io import BytesIO
from typing import Any

from django.contrib.auth import get_user
from django.contrib.sessions.middleware import SessionMiddleware
from django.core.handlers.asgi import ASGIRequest
from django.http import HttpRequest, HttpResponse
from django.middleware.csrf import CsrfViewMiddleware

from pocs.common.errors import NotFound, NotPermitted
from pocs.people import policies
from pocs.people.models import User
from pocs.projects.selectors import project_get
from pocs.serving.access import CAPABILITY, Caller, caller_for
from pocs.serving.errors import ApiError


def visitor_of(scope: dict[str, Any], project_id: int) -> Caller:
    """Let a person in who may ask the models of this project; ApiError 401, 403 or 404 else."""
    request = ASGIRequest(scope, BytesIO())  # the body is JSON: the token comes in its header
    SessionMiddleware(_nothing).process_request(request)
    user = get_user(request)
    if not isinstance(user, User) or user.organisation_id is None:
        raise ApiError(401, "Nobody is signed in.", code="not_signed_in")
    checking = CsrfViewMiddleware(_nothing)
    checking.process_request(request)
    if checking.process_view(request, _nothing, (), {}) is not None:
        raise ApiError(403, "The request does not come from a page of this site.", code="csrf_failed")
    actor = user.as_actor()
    try:
        project = project_get(actor, project_id)
        policies.require(actor, CAPABILITY, project)
    except NotFound as error:
        raise ApiError(404, "There is no such project.", code="project_not_found") from error
    except NotPermitted as error:
        text = "Your roles on this project do not include asking its models."
        raise ApiError(403, text, code="insufficient_permissions") from error
    return caller_for(f"person-{user.pk}", project)


def _nothing(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
    return HttpResponse()
