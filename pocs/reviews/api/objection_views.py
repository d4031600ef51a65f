"""Objections to packages over REST."""

from django.urls import reverse
from drf_spectacular.utils import extend_schema
from rest_framework.permissions import BasePermission, IsAuthenticated
from rest_framework.request import Request
from rest_framework.response import Response

from pocs.common.api.permissions import PeopleOnly
from pocs.common.api.views import ActorAPIView, ActorGenericView
from pocs.reviews import selectors, services
from pocs.reviews.api.contest_serializers import (
    AnswerWriteSerializer,
    CitationSerializer,
    ObjectionSerializer,
    ObjectionWriteSerializer,
    RulingWriteSerializer,
)
from pocs.reviews.api.package_views import REFUSALS, checked
from pocs.reviews.citations import citations_of


class LinesView(ActorGenericView):
    serializer_class = CitationSerializer

    @extend_schema(responses=CitationSerializer(many=True), summary="The lines an objection can cite")
    def get(self, request: Request, pk: int) -> Response:
        lines = list(citations_of(selectors.package_get(self.actor, pk)).values())
        return Response(
            {"next": None, "previous": None, "results": CitationSerializer(lines, many=True).data}
        )


class ObjectionsView(ActorGenericView):
    serializer_class = ObjectionSerializer

    def get_permissions(self) -> list[BasePermission]:
        if self.request is not None and self.request.method == "POST":
            return [IsAuthenticated(), PeopleOnly()]
        return [IsAuthenticated()]

    @extend_schema(responses=ObjectionSerializer(many=True), summary="Objections to a package")
    def get(self, request: Request, pk: int) -> Response:
        package = selectors.package_get(self.actor, pk)
        return self.page(selectors.objections_of(self.actor, package))

    @extend_schema(
        request=ObjectionWriteSerializer,
        responses={201: ObjectionSerializer} | REFUSALS,
        summary="Object to a line by a rule; nothing is approved until it is decided",
    )
    def post(self, request: Request, pk: int) -> Response:
        package = selectors.package_get(self.actor, pk)
        row = services.objection_raise(
            actor=self.actor, package=package, **checked(ObjectionWriteSerializer, request)
        )
        location = reverse("api-objection", args=[row.pk])
        return self.answer(row, ObjectionSerializer(row).data, status=201, Location=location)


class ObjectionView(ActorAPIView):
    @extend_schema(responses=ObjectionSerializer, summary="One objection")
    def get(self, request: Request, pk: int) -> Response:
        row = selectors.objection_get(self.actor, pk)
        return self.answer(row, ObjectionSerializer(row).data)


class AnswerView(ActorAPIView):
    permission_classes = [IsAuthenticated, PeopleOnly]

    @extend_schema(
        request=AnswerWriteSerializer,
        responses={200: ObjectionSerializer} | REFUSALS,
        summary="Answer an objection, as an author of the line or a technical lead",
    )
    def post(self, request: Request, pk: int) -> Response:
        row = selectors.objection_get(self.actor, pk)
        row = services.objection_answer(
            actor=self.actor, objection=row, **checked(AnswerWriteSerializer, request)
        )
        return self.answer(row, ObjectionSerializer(row).data)


class RuleView(ActorAPIView):
    permission_classes = [IsAuthenticated, PeopleOnly]

    @extend_schema(
        request=RulingWriteSerializer,
        responses={200: ObjectionSerializer} | REFUSALS,
        summary="Decide an answered objection, as a third without a part in it",
    )
    def post(self, request: Request, pk: int) -> Response:
        row = selectors.objection_get(self.actor, pk)
        row = services.objection_rule(
            actor=self.actor, objection=row, **checked(RulingWriteSerializer, request)
        )
        return self.answer(row, ObjectionSerializer(row).data)


class ObjectionWithdrawView(ActorAPIView):
    permission_classes = [IsAuthenticated, PeopleOnly]

    @extend_schema(
        request=None, responses={200: ObjectionSerializer} | REFUSALS, summary="Take one's own objection back"
    )
    def post(self, request: Request, pk: int) -> Response:
        row = services.objection_withdraw(actor=self.actor, objection=selectors.objection_get(self.actor, pk))
        return self.answer(row, ObjectionSerializer(row).data)
