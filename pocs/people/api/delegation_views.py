"""Delegations over REST; only for people: a token signs for nobody and lets nobody sign."""

from drf_spectacular.utils import extend_schema
from rest_framework.permissions import IsAuthenticated
from rest_framework.request import Request
from rest_framework.response import Response

from pocs.common.api.permissions import PeopleOnly
from pocs.common.api.serializers import ProblemSerializer
from pocs.common.api.views import ActorAPIView, ActorGenericView
from pocs.people import delegations as services
from pocs.people import selectors
from pocs.people.api.serializers import DelegationSerializer, DelegationWriteSerializer

REFUSALS = dict.fromkeys((400, 403, 404, 409), ProblemSerializer)


class DelegationsView(ActorGenericView):
    serializer_class = DelegationSerializer
    permission_classes = [IsAuthenticated, PeopleOnly]

    @extend_schema(
        responses=DelegationSerializer(many=True),
        summary="Delegations one gave or was given; all of them for administrators and auditors",
    )
    def get(self, request: Request) -> Response:
        return self.page(selectors.delegations_of(self.actor))

    @extend_schema(
        request=DelegationWriteSerializer,
        responses={201: DelegationSerializer} | REFUSALS,
        summary="Let a deputy sign for oneself for some days",
    )
    def post(self, request: Request) -> Response:
        serializer = DelegationWriteSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        given = dict(serializer.validated_data)
        deputy = selectors.active_people_of(self.actor).filter(pk=given.pop("deputy")).first()
        row = services.delegation_give(actor=self.actor, deputy=deputy, **given)
        return Response(DelegationSerializer(row).data, status=201)


class DelegationRevokeView(ActorAPIView):
    permission_classes = [IsAuthenticated, PeopleOnly]

    @extend_schema(
        request=None, responses={200: DelegationSerializer} | REFUSALS, summary="End a delegation now"
    )
    def post(self, request: Request, pk: int) -> Response:
        row = services.delegation_revoke(
            actor=self.actor, delegation=selectors.delegation_get(self.actor, pk)
        )
        return Response(DelegationSerializer(row).data)
