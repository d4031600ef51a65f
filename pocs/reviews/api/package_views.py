"""Findings, packages and signatures over REST."""

from typing import Any

from django.urls import reverse
from django.utils.translation import gettext as _
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.permissions import BasePermission, IsAuthenticated
from rest_framework.request import Request
from rest_framework.response import Response

from pocs.common.api.idempotency import idempotent
from pocs.common.api.permissions import PeopleOnly
from pocs.common.api.serializers import ProblemSerializer
from pocs.common.api.views import ActorAPIView, ActorGenericView
from pocs.common.errors import FieldError, InvalidInput
from pocs.people.models import User
from pocs.projects.models import Project
from pocs.projects.selectors import project_get
from pocs.reviews import selectors, services
from pocs.reviews.api.serializers import (
    BusinessResultSerializer,
    BusinessResultWriteSerializer,
    ConclusionSerializer,
    ConclusionWriteSerializer,
    PackageDetailSerializer,
    PackageSerializer,
    ReasonWriteSerializer,
    SignOffSerializer,
    SignWriteSerializer,
)
from pocs.reviews.models import BusinessResult, Conclusion, Package

IF_MATCH = OpenApiParameter("If-Match", location=OpenApiParameter.HEADER, required=True)
IDEMPOTENCY_KEY = OpenApiParameter("Idempotency-Key", location=OpenApiParameter.HEADER)
REFUSALS = dict.fromkeys((400, 403, 404, 409), ProblemSerializer)
CHANGED = dict.fromkeys((412, 428), ProblemSerializer)


def checked(serializer_class: Any, request: Request) -> dict[str, Any]:
    """The body as the serializer reads it; its refusals become a problem."""
    serializer = serializer_class(data=request.data)
    serializer.is_valid(raise_exception=True)
    return dict(serializer.validated_data)


class ConclusionView(ActorAPIView):
    @extend_schema(responses=ConclusionSerializer, summary="The conclusion; version 0 while unwritten")
    def get(self, request: Request, pk: int) -> Response:
        row = self._row(project_get(self.actor, pk))
        return self.answer(row, ConclusionSerializer(row).data)

    @extend_schema(
        request=ConclusionWriteSerializer,
        responses={200: ConclusionSerializer} | REFUSALS | CHANGED,
        parameters=[IF_MATCH],
        summary="Write parts of the conclusion",
    )
    def patch(self, request: Request, pk: int) -> Response:
        project = project_get(self.actor, pk, "conclusion.edit")
        version = self.version_to_change(self._row(project))
        given = checked(ConclusionWriteSerializer, request)
        row = services.conclusion_save(actor=self.actor, project=project, version=version, **given)
        return self.answer(row, ConclusionSerializer(row).data)

    def _row(self, project: Project) -> Conclusion:
        return selectors.conclusion_of(self.actor, project) or Conclusion(project=project, version=0)


class BusinessResultView(ActorAPIView):
    @extend_schema(
        responses=BusinessResultSerializer, summary="The business result; version 0 while unwritten"
    )
    def get(self, request: Request, pk: int) -> Response:
        row = self._row(project_get(self.actor, pk))
        return self.answer(row, BusinessResultSerializer(row).data)

    @extend_schema(
        request=BusinessResultWriteSerializer,
        responses={200: BusinessResultSerializer} | REFUSALS | CHANGED,
        parameters=[IF_MATCH],
        summary="Write parts of the business result",
    )
    def patch(self, request: Request, pk: int) -> Response:
        project = project_get(self.actor, pk, "conclusion.edit")
        version = self.version_to_change(self._row(project))
        given = checked(BusinessResultWriteSerializer, request)
        row = services.business_result_save(actor=self.actor, project=project, version=version, **given)
        return self.answer(row, BusinessResultSerializer(row).data)

    def _row(self, project: Project) -> BusinessResult:
        return selectors.business_result_of(self.actor, project) or BusinessResult(project=project, version=0)


class PackagesView(ActorGenericView):
    serializer_class = PackageSerializer

    @extend_schema(responses=PackageSerializer(many=True), summary="Packages of a project")
    def get(self, request: Request, pk: int) -> Response:
        return self.page(selectors.packages_of(self.actor, project_get(self.actor, pk)))

    @extend_schema(
        request=None,
        responses={201: PackageDetailSerializer} | REFUSALS,
        parameters=[IDEMPOTENCY_KEY],
        summary="Freeze the next package",
    )
    def post(self, request: Request, pk: int) -> Response:
        project = project_get(self.actor, pk)
        return idempotent(request, self.actor, lambda: self._freeze(project))

    def _freeze(self, project: Project) -> Response:
        package = services.package_freeze(actor=self.actor, project=project)
        location = reverse("api-package", args=[package.pk])
        return self.answer(package, package_detail(package), status=201, Location=location)


def package_detail(package: Package) -> Any:
    """The package with its manifest and what differs from the one before."""
    package.differences = selectors.difference_to_previous(package)[1]  # type: ignore[attr-defined]
    return PackageDetailSerializer(package).data


class PackageView(ActorAPIView):
    @extend_schema(responses=PackageDetailSerializer, summary="One package with its manifest")
    def get(self, request: Request, pk: int) -> Response:
        package = selectors.package_get(self.actor, pk)
        return self.answer(package, package_detail(package))


class SignOffsView(ActorGenericView):
    serializer_class = SignOffSerializer

    def get_permissions(self) -> list[BasePermission]:
        if self.request is not None and self.request.method == "POST":
            return [IsAuthenticated(), PeopleOnly()]
        return [IsAuthenticated()]

    @extend_schema(responses=SignOffSerializer(many=True), summary="Signatures of a package, stale ones too")
    def get(self, request: Request, pk: int) -> Response:
        package = selectors.package_get(self.actor, pk)
        return self.page(package.signoffs.select_related("signer", "on_behalf_of"))

    @extend_schema(
        request=SignWriteSerializer,
        responses={201: SignOffSerializer} | REFUSALS,
        summary="Sign one slot with one's password; never with a token",
    )
    def post(self, request: Request, pk: int) -> Response:
        package = selectors.package_get(self.actor, pk)
        given = checked(SignWriteSerializer, request)
        principal = given.pop("on_behalf_of", None)
        behalf = None if principal is None else person_for(package.project, "/on_behalf_of", principal)
        row = services.signoff_sign(actor=self.actor, package=package, on_behalf_of=behalf, **given)
        return self.answer(row, SignOffSerializer(row).data, status=201)


def person_for(project: Project, pointer: str, pk: int) -> User:
    """The person whom a body names; InvalidInput at `pointer` when the organisation has no such person."""
    found = selectors.person_of(project, pk)
    if found is None:
        detail = _("There is no such person.")
        raise InvalidInput(detail, [FieldError(pointer, "unknown", detail)])
    return found


class AskAgainView(ActorAPIView):
    permission_classes = [IsAuthenticated, PeopleOnly]

    @extend_schema(
        request=None,
        responses={201: SignOffSerializer(many=True)} | REFUSALS,
        summary="Ask again for the signatures of a slot whose time was over",
    )
    def post(self, request: Request, pk: int, slot: str) -> Response:
        package = selectors.package_get(self.actor, pk)
        rows = services.signoff_ask_again(actor=self.actor, package=package, slot=slot)
        return Response(SignOffSerializer(rows, many=True).data, status=201)


class WithdrawView(ActorAPIView):
    permission_classes = [IsAuthenticated, PeopleOnly]

    @extend_schema(
        request=ReasonWriteSerializer,
        responses={200: SignOffSerializer} | REFUSALS,
        summary="Withdraw one's own approval",
    )
    def post(self, request: Request, pk: int) -> Response:
        signoff = selectors.signoff_get(self.actor, pk)
        row = services.signoff_withdraw(
            actor=self.actor, signoff=signoff, **checked(ReasonWriteSerializer, request)
        )
        return self.answer(row, SignOffSerializer(row).data)
