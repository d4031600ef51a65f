"""People and teams over REST: reading, and who the caller is."""

from django.utils.translation import gettext as _
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from pocs.common.actors import Actor
from pocs.common.api.views import ActorAPIView, ActorGenericView
from pocs.common.errors import NotPermitted
from pocs.people import selectors
from pocs.people.api.serializers import MeSerializer, PersonSerializer, TeamSerializer


class MeView(ActorAPIView):
    @extend_schema(responses=MeSerializer, summary="Who the API takes the caller for")
    def get(self, request: Request) -> Response:
        return Response(MeSerializer(self.actor).data)


class PeopleView(ActorGenericView):
    serializer_class = PersonSerializer

    @extend_schema(responses=PersonSerializer(many=True), summary="People of the own organisation")
    def get(self, request: Request) -> Response:
        _require_person(self.actor)
        return self.page(selectors.people_of(self.actor))


class TeamsView(ActorGenericView):
    serializer_class = TeamSerializer

    @extend_schema(responses=TeamSerializer(many=True), summary="Teams of the own organisation")
    def get(self, request: Request) -> Response:
        _require_person(self.actor)
        return self.page(selectors.teams_of(self.actor))


def _require_person(actor: Actor) -> None:
    """A CI token is bound to one project and learns nothing of the organisation's people."""
    if not actor.is_person:
        raise NotPermitted(_("A CI token may not read the organisation's people."))
