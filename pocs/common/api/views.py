"""Base classes of the API's views: who acts, their right first, conditional writes, answers with an ETag."""

from typing import Any

from django.utils.functional import cached_property
from django.utils.translation import gettext as _
from rest_framework.generics import GenericAPIView
from rest_framework.response import Response
from rest_framework.views import APIView

from pocs.common.access import ask_first
from pocs.common.actors import Actor
from pocs.common.api.conditional import Versioned, etag, version_to_change
from pocs.common.errors import NotPermitted


class ActorMixin:
    """`self.actor`: the CI token with its sponsor behind it, else the signed-in person.

    The route's right (`pocs.common.access`) is asked before the body, `If-Match` or a key is looked at.
    """

    request: Any

    def initial(self, request: Any, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)  # type: ignore[misc]
        ask_first(lambda: self.actor, request.resolver_match, request.method)

    @cached_property
    def actor(self) -> Actor:
        credential = getattr(self.request, "auth", None)
        if credential is not None and hasattr(credential, "as_actor"):
            return credential.as_actor()
        if self.request.user.organisation_id is None:
            raise NotPermitted(
                _("Your account belongs to no organisation yet. Ask an administrator to add it.")
            )
        return self.request.user.as_actor()

    def version_to_change(self, row: Versioned) -> int:
        """The version in `If-Match`; 428 without one, 412 when it is not the stored one."""
        return version_to_change(self.request, row)

    def answer(self, row: Versioned, data: Any, status: int = 200, **headers: str) -> Response:
        """`data` with the row's ETag."""
        return Response(data, status=status, headers={"ETag": etag(row)} | headers)


class ActorAPIView(ActorMixin, APIView):
    """A view that calls services and selectors as `self.actor`."""


class ActorGenericView(ActorMixin, GenericAPIView):
    """The same with serializer and cursor pages, for collections.

    def get(self, request): return self.page(selectors.projects_visible_to(self.actor))
    """

    def page(self, rows: Any, **context: Any) -> Response:
        """One cursor page of `rows` in the view's serializer."""
        found = self.paginate_queryset(rows)
        serializer_class = self.get_serializer_class()
        serializer = serializer_class(found, many=True, context={**self.get_serializer_context(), **context})
        return self.get_paginated_response(serializer.data)
