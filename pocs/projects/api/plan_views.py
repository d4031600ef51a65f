"""What a project declares, over REST."""

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from pocs.common.api.serializers import ProblemSerializer
from pocs.common.api.views import ActorAPIView, ActorGenericView
from pocs.projects import plan, selectors, services
from pocs.projects.api.serializers import AffectedSerializer, DeclarationSerializer, ReadinessSerializer
from pocs.projects.api.views import CHANGED, IF_MATCH


class AffectedView(ActorGenericView):
    serializer_class = AffectedSerializer

    @extend_schema(responses=AffectedSerializer(many=True), summary="Affected applications, teams and data")
    def get(self, request: Request, pk: int) -> Response:
        return self.page(plan.affected_of(selectors.project_get(self.actor, pk)))

    @extend_schema(
        request=AffectedSerializer,
        responses={201: AffectedSerializer, 400: ProblemSerializer},
        summary="List something affected",
    )
    def post(self, request: Request, pk: int) -> Response:
        project = selectors.project_get(self.actor, pk, "project.edit")
        serializer = AffectedSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        item = services.affected_add(actor=self.actor, project=project, **serializer.validated_data)
        return self.answer(item, AffectedSerializer(item).data, status=201)


class AffectedItemView(ActorAPIView):
    @extend_schema(responses=AffectedSerializer, summary="One thing affected; its ETag is needed for edits")
    def get(self, request: Request, pk: int, item: int) -> Response:
        row = plan.affected_get(selectors.project_get(self.actor, pk), item)
        return self.answer(row, AffectedSerializer(row).data)

    @extend_schema(
        request=AffectedSerializer,
        responses={200: AffectedSerializer, 400: ProblemSerializer} | CHANGED,
        parameters=[IF_MATCH],
        summary="Change fields of something affected; those not named stay",
    )
    def patch(self, request: Request, pk: int, item: int) -> Response:
        project = selectors.project_get(self.actor, pk)
        row = plan.affected_get(project, item)
        version = self.version_to_change(row)
        serializer = AffectedSerializer(data=request.data, partial=True)
        serializer.is_valid(raise_exception=True)
        saved = services.affected_update(
            actor=self.actor, project=project, item=row, version=version, **serializer.validated_data
        )
        return self.answer(saved, AffectedSerializer(saved).data)

    @extend_schema(responses={204: None}, summary="Take something off the list")
    def delete(self, request: Request, pk: int, item: int) -> Response:
        project = selectors.project_get(self.actor, pk)
        services.affected_remove(actor=self.actor, project=project, item=plan.affected_get(project, item))
        return Response(status=204)


class ReadinessView(ActorGenericView):
    serializer_class = ReadinessSerializer

    @extend_schema(responses=ReadinessSerializer(many=True), summary="The five readiness points")
    def get(self, request: Request, pk: int) -> Response:
        rows = plan.readiness_of(selectors.project_get(self.actor, pk))
        return Response(_whole_list(ReadinessSerializer(rows, many=True).data))


class ReadinessItemView(ActorAPIView):
    @extend_schema(responses=ReadinessSerializer, summary="One readiness point")
    def get(self, request: Request, pk: int, kind: str) -> Response:
        row = plan.readiness_get(selectors.project_get(self.actor, pk), kind)
        return self.answer(row, ReadinessSerializer(row).data)

    @extend_schema(
        request=ReadinessSerializer,
        responses={200: ReadinessSerializer, 400: ProblemSerializer} | CHANGED,
        parameters=[IF_MATCH],
        summary="State a readiness point",
    )
    def put(self, request: Request, pk: int, kind: str) -> Response:
        project = selectors.project_get(self.actor, pk, "project.edit")
        version = self.version_to_change(plan.readiness_get(project, kind))
        serializer = ReadinessSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        asked = serializer.validated_data
        row = services.readiness_set(
            actor=self.actor,
            project=project,
            kind=kind,
            ready=asked["ready"],
            basis=asked.get("basis", ""),
            team=selectors.team_for_readiness(self.actor, asked.get("team_id")),
            version=version,
        )
        return self.answer(row, ReadinessSerializer(row).data)


class DeclarationsView(ActorGenericView):
    serializer_class = DeclarationSerializer

    @extend_schema(responses=DeclarationSerializer(many=True), summary="What makes the POC real")
    def get(self, request: Request, pk: int) -> Response:
        rows = plan.declarations_of(selectors.project_get(self.actor, pk))
        return Response(_whole_list(DeclarationSerializer(rows, many=True).data))


class DeclarationView(ActorAPIView):
    @extend_schema(responses=DeclarationSerializer, summary="One declaration")
    def get(self, request: Request, pk: int, kind: str) -> Response:
        row = plan.declaration_get(selectors.project_get(self.actor, pk), kind)
        return self.answer(row, DeclarationSerializer(row).data)

    @extend_schema(
        request=DeclarationSerializer,
        responses={200: DeclarationSerializer, 400: ProblemSerializer} | CHANGED,
        parameters=[IF_MATCH],
        summary="Declare",
    )
    def put(self, request: Request, pk: int, kind: str) -> Response:
        project = selectors.project_get(self.actor, pk, "project.edit")
        version = self.version_to_change(plan.declaration_get(project, kind))
        serializer = DeclarationSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        row = services.declaration_set(
            actor=self.actor, project=project, kind=kind, version=version, **serializer.validated_data
        )
        return self.answer(row, DeclarationSerializer(row).data)


def _whole_list(rows: Any) -> dict[str, Any]:
    """A list that is never longer than a page, in the form of one."""
    return {"next": None, "previous": None, "results": rows}
