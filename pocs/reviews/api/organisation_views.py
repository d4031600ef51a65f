"""Review policy, duties and whole files of projects over REST."""

from django.http import FileResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework.permissions import IsAuthenticated
from rest_framework.request import Request
from rest_framework.response import Response

from pocs.common.api.permissions import PeopleOnly
from pocs.common.api.views import ActorAPIView, ActorGenericView
from pocs.people.selectors import active_people_of
from pocs.projects.selectors import projects_visible_to
from pocs.reviews import services
from pocs.reviews.api.contest_serializers import (
    DutySerializer,
    HandOverSerializer,
    PolicySerializer,
    PolicyWriteSerializer,
)
from pocs.reviews.api.package_views import CHANGED, IF_MATCH, REFUSALS, checked
from pocs.reviews.bundle import bundle_of
from pocs.reviews.duties import open_duties
from pocs.reviews.policy import policy_of


class PolicyView(ActorAPIView):
    permission_classes = [IsAuthenticated, PeopleOnly]

    @extend_schema(
        responses=PolicySerializer, summary="The organisation's review policy; version 0: the default"
    )
    def get(self, request: Request) -> Response:
        row = policy_of(self.actor.organisation_id)
        return self.answer(row, PolicySerializer(row).data)

    @extend_schema(
        request=PolicyWriteSerializer,
        responses={200: PolicySerializer} | REFUSALS | CHANGED,
        parameters=[IF_MATCH],
        summary="Change the policy for packages still to be frozen",
    )
    def patch(self, request: Request) -> Response:
        version = self.version_to_change(policy_of(self.actor.organisation_id))
        row = services.policy_save(
            actor=self.actor, version=version, **checked(PolicyWriteSerializer, request)
        )
        return self.answer(row, PolicySerializer(row).data)


class DutiesView(ActorGenericView):
    serializer_class = DutySerializer

    @extend_schema(
        responses=DutySerializer(many=True), summary="Open conditions, tasks and readings of one's projects"
    )
    def get(self, request: Request) -> Response:
        rows = open_duties(projects=list(projects_visible_to(self.actor)))
        return Response({"next": None, "previous": None, "results": DutySerializer(rows, many=True).data})


class HandOverView(ActorAPIView):
    permission_classes = [IsAuthenticated, PeopleOnly]

    @extend_schema(
        request=HandOverSerializer,
        responses={200: DutySerializer(many=True)} | REFUSALS,
        summary="Hand duties over to another person: each is checked by itself, all go or none",
    )
    def post(self, request: Request) -> Response:
        given = checked(HandOverSerializer, request)
        to = active_people_of(self.actor).filter(pk=given["to"]).first()
        rows = services.duties_hand_over(actor=self.actor, keys=given["items"], to=to, reason=given["reason"])
        return Response(DutySerializer(rows, many=True).data)


class BundleView(ActorAPIView):
    @extend_schema(
        responses={(200, "application/zip"): OpenApiTypes.BINARY} | REFUSALS,
        summary="The project's whole file with its verifier, for an auditor",
    )
    def get(self, request: Request, pk: int) -> FileResponse:
        bundle = bundle_of(self.actor, pk)
        return FileResponse(
            bundle.file, as_attachment=True, filename=bundle.name, content_type="application/zip"
        )
