"""Targets and matrix executions over REST."""

from django.urls import reverse
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from pocs.common.api.idempotency import idempotent
from pocs.common.api.pagination import CursorPages
from pocs.common.api.serializers import ProblemSerializer
from pocs.common.api.views import ActorAPIView, ActorGenericView
from pocs.projects.selectors import project_get
from pocs.runs import selectors, services
from pocs.runs.api.serializers import (
    CandidateSerializer,
    MatrixSerializer,
    MatrixStartSerializer,
    TargetChangeSerializer,
    TargetCheckSerializer,
    TargetReportSerializer,
    TargetSerializer,
)
from pocs.runs.api.views import IDEMPOTENCY_KEY, REFUSED

IF_MATCH = OpenApiParameter(
    "If-Match", str, OpenApiParameter.HEADER, required=True, description="The ETag of what you have read."
)

NEWEST_REPORTS = 20


class TargetPages(CursorPages):
    ordering = "name"  # unique within a project


class TargetsView(ActorGenericView):
    serializer_class = TargetSerializer
    pagination_class = TargetPages

    @extend_schema(responses=TargetSerializer(many=True), summary="Targets of the project")
    def get(self, request: Request, pk: int) -> Response:
        return self.page(selectors.targets_of(self.actor, project_get(self.actor, pk)))

    @extend_schema(
        request=TargetSerializer,
        responses={201: TargetSerializer, 400: ProblemSerializer} | REFUSED,
        parameters=[IDEMPOTENCY_KEY],
        summary="Add a target",
    )
    def post(self, request: Request, pk: int) -> Response:
        project = project_get(self.actor, pk)

        def produce() -> Response:
            serializer = TargetSerializer(data=request.data)
            serializer.is_valid(raise_exception=True)
            target = services.target_create(actor=self.actor, project=project, **serializer.validated_data)
            location = reverse("api-target", args=[target.pk])
            return self.answer(target, TargetSerializer(target).data, 201, Location=location)

        return idempotent(request, self.actor, produce)


class TargetView(ActorAPIView):
    @extend_schema(responses=TargetSerializer, summary="One target")
    def get(self, request: Request, pk: int) -> Response:
        target = selectors.target_get(self.actor, pk)
        return self.answer(target, TargetSerializer(target).data)

    @extend_schema(
        request=TargetChangeSerializer,
        responses={
            200: TargetSerializer,
            400: ProblemSerializer,
            412: ProblemSerializer,
            428: ProblemSerializer,
        },
        parameters=[IF_MATCH],
        summary="Change fields of a target; those not named stay",
    )
    def patch(self, request: Request, pk: int) -> Response:
        target = selectors.target_get(self.actor, pk)
        version = self.version_to_change(target)
        serializer = TargetChangeSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        kept = {
            "name": target.name,
            "location": target.location,
            "model": target.model,
            "engine_settings": target.engine_settings,
        }
        changed = services.target_update(
            actor=self.actor, target=target, version=version, **(kept | serializer.validated_data)
        )
        return self.answer(changed, TargetSerializer(changed).data)


class TargetCheckView(ActorAPIView):
    @extend_schema(
        request=None, responses=TargetCheckSerializer, summary="Whether the target can be measured"
    )
    def post(self, request: Request, pk: int) -> Response:
        target = selectors.target_get(self.actor, pk)
        return Response(services.target_check(actor=self.actor, target=target))


class TargetCandidatesView(ActorAPIView):
    @extend_schema(
        request=CandidateSerializer,
        responses={201: TargetSerializer, 400: ProblemSerializer} | REFUSED,
        parameters=[IDEMPOTENCY_KEY],
        summary="Copy an engine target with exactly one switch changed",
    )
    def post(self, request: Request, pk: int) -> Response:
        source = selectors.target_get(self.actor, pk)

        def produce() -> Response:
            serializer = CandidateSerializer(data=request.data)
            serializer.is_valid(raise_exception=True)
            made = services.candidate_create(actor=self.actor, source=source, **serializer.validated_data)
            location = reverse("api-target", args=[made.pk])
            return self.answer(made, TargetSerializer(made).data, 201, Location=location)

        return idempotent(request, self.actor, produce)


class TargetReportsView(ActorAPIView):
    @extend_schema(
        responses=TargetReportSerializer(many=True), summary="Checks and stream habits, newest first"
    )
    def get(self, request: Request, pk: int) -> Response:
        target = selectors.target_get(self.actor, pk)
        newest = target.reports.order_by("-id")[:NEWEST_REPORTS]
        return Response(TargetReportSerializer(newest, many=True).data)


class TargetConformanceView(ActorAPIView):
    @extend_schema(
        request=None,
        responses={202: TargetReportSerializer} | REFUSED,
        summary="Look at the stream habits of an endpoint; follow it by its reports",
    )
    def post(self, request: Request, pk: int) -> Response:
        target = selectors.target_get(self.actor, pk)
        report = services.conformance_start(actor=self.actor, target=target)
        return Response(TargetReportSerializer(report).data, status=202)


class MatricesView(ActorAPIView):
    @extend_schema(
        request=MatrixStartSerializer,
        responses={201: MatrixSerializer} | REFUSED,
        parameters=[IDEMPOTENCY_KEY],
        summary="Run the newest approved version of every scenario",
    )
    def post(self, request: Request, pk: int) -> Response:
        project = project_get(self.actor, pk, "run.execute")

        def produce() -> Response:
            serializer = MatrixStartSerializer(data=request.data)
            serializer.is_valid(raise_exception=True)
            target = selectors.target_find(project, serializer.validated_data.get("target", ""))
            matrix = services.matrix_start(actor=self.actor, project=project, target=target)
            headers = {"Location": reverse("api-matrix", args=[matrix.pk])}
            return Response(MatrixSerializer(matrix).data, status=201, headers=headers)

        return idempotent(request, self.actor, produce)


class MatrixView(ActorAPIView):
    @extend_schema(responses=MatrixSerializer, summary="One matrix execution with its runs")
    def get(self, request: Request, pk: int) -> Response:
        return Response(MatrixSerializer(selectors.matrix_get(self.actor, pk)).data)


class MatrixCancelView(ActorAPIView):
    @extend_schema(
        request=None, responses=MatrixSerializer, summary="Cancel every run of the matrix that has not ended"
    )
    def post(self, request: Request, pk: int) -> Response:
        matrix = selectors.matrix_get(self.actor, pk, "run.cancel")
        services.matrix_cancel(actor=self.actor, matrix=matrix)
        return Response(MatrixSerializer(matrix).data)
