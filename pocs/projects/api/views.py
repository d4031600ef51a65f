"""Projects over REST: reading, writing with `If-Match`, gates, members and history."""

from typing import Any

from django.urls import reverse
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from pocs.common.api.idempotency import idempotent
from pocs.common.api.pagination import CursorPages
from pocs.common.api.serializers import ProblemSerializer
from pocs.common.api.views import ActorAPIView, ActorGenericView
from pocs.projects import selectors, services
from pocs.projects.api.serializers import (
    AdvanceSerializer,
    CancelSerializer,
    CloneSerializer,
    GatesSerializer,
    HistorySerializer,
    MemberSerializer,
    ProjectSerializer,
    TemplateSerializer,
)
from pocs.projects.blueprints import BLUEPRINTS
from pocs.projects.models import Project

IF_MATCH = OpenApiParameter(
    "If-Match", str, OpenApiParameter.HEADER, required=True, description="The ETag of what you have read."
)
IDEMPOTENCY_KEY = OpenApiParameter(
    "Idempotency-Key",
    str,
    OpenApiParameter.HEADER,
    description="Repeats of one request get its first answer.",
)
REFUSED = {409: ProblemSerializer}
CHANGED = {412: ProblemSerializer, 428: ProblemSerializer}


class ProjectsView(ActorGenericView):
    serializer_class = ProjectSerializer

    @extend_schema(responses=ProjectSerializer(many=True), summary="Projects the caller may see")
    def get(self, request: Request) -> Response:
        return self.page(selectors.projects_visible_to(self.actor))

    @extend_schema(
        request=ProjectSerializer,
        responses={201: ProjectSerializer, 400: ProblemSerializer},
        parameters=[IDEMPOTENCY_KEY],
        summary="Create a project in draft",
    )
    def post(self, request: Request) -> Response:
        def produce() -> Response:
            serializer = ProjectSerializer(data=request.data)
            serializer.is_valid(raise_exception=True)
            project = services.project_start(actor=self.actor, **serializer.validated_data)
            url = reverse("api-project", args=[project.pk])
            return self.answer(project, ProjectSerializer(project).data, 201, Location=url)

        return idempotent(request, self.actor, produce)


class ProjectView(ActorAPIView):
    @extend_schema(responses=ProjectSerializer, summary="One project")
    def get(self, request: Request, pk: int) -> Response:
        project = selectors.project_get(self.actor, pk)
        return self.answer(project, ProjectSerializer(project).data)

    @extend_schema(
        request=ProjectSerializer,
        responses={200: ProjectSerializer, 400: ProblemSerializer} | CHANGED,
        parameters=[IF_MATCH],
        summary="Change fields of a project; those not named stay",
    )
    def patch(self, request: Request, pk: int) -> Response:
        project = selectors.project_get(self.actor, pk, "project.edit")
        version = self.version_to_change(project)
        serializer = ProjectSerializer(data=request.data, partial=True)
        serializer.is_valid(raise_exception=True)
        changed = services.project_update(
            actor=self.actor, project=project, version=version, **serializer.validated_data
        )
        return self.answer(changed, ProjectSerializer(changed).data)


class CloneView(ActorAPIView):
    @extend_schema(
        request=CloneSerializer,
        responses={201: ProjectSerializer, 400: ProblemSerializer},
        parameters=[IDEMPOTENCY_KEY],
        summary="A new project with what this one declares: no runs, no evidence, no signatures",
    )
    def post(self, request: Request, pk: int) -> Response:
        source = selectors.project_get(self.actor, pk)

        def produce() -> Response:
            serializer = CloneSerializer(data=request.data)
            serializer.is_valid(raise_exception=True)
            project = services.project_clone(actor=self.actor, source=source, **serializer.validated_data)
            url = reverse("api-project", args=[project.pk])
            return self.answer(project, ProjectSerializer(project).data, 201, Location=url)

        return idempotent(request, self.actor, produce)


class TemplatesView(ActorAPIView):
    @extend_schema(responses=TemplateSerializer(many=True), summary="Templates a project can be made from")
    def get(self, request: Request) -> Response:
        return Response(TemplateSerializer(BLUEPRINTS.values(), many=True).data)


class GatesView(ActorAPIView):
    @extend_schema(responses=GatesSerializer, summary="Every gate, and what is missing for the next state")
    def get(self, request: Request, pk: int) -> Response:
        project = selectors.project_get(self.actor, pk)
        return Response(gates_of(project))


def gates_of(project: Project) -> dict[str, Any]:
    """The project's gates in the form of `GatesSerializer`."""
    progress = selectors.progress_of(project)
    data = GatesSerializer(
        {
            "state": project.state,
            "next_state": progress.next_state and progress.next_state.value,
            "missing": progress.missing,
            "gates": progress.gates,
        }
    ).data
    return dict(data)


class AdvanceView(ActorAPIView):
    @extend_schema(
        request=AdvanceSerializer,
        responses={200: ProjectSerializer} | REFUSED,
        summary="Take the project to its next state; 409 says what is missing",
    )
    def post(self, request: Request, pk: int) -> Response:
        project = selectors.project_get(self.actor, pk, "project.advance")
        serializer = AdvanceSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        moved = services.project_advance(actor=self.actor, project=project, **serializer.validated_data)
        return self.answer(moved, ProjectSerializer(moved).data)


class CancelView(ActorAPIView):
    @extend_schema(
        request=CancelSerializer, responses={200: ProjectSerializer} | REFUSED, summary="Give the project up"
    )
    def post(self, request: Request, pk: int) -> Response:
        project = selectors.project_get(self.actor, pk, "project.advance")
        serializer = CancelSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        moved = services.project_cancel(actor=self.actor, project=project, **serializer.validated_data)
        return self.answer(moved, ProjectSerializer(moved).data)


class HistoryPages(CursorPages):
    ordering = "-sequence"


class HistoryView(ActorGenericView):
    serializer_class = HistorySerializer
    pagination_class = HistoryPages

    @extend_schema(responses=HistorySerializer(many=True), summary="Audit entries, newest first")
    def get(self, request: Request, pk: int) -> Response:
        return self.page(selectors.history(self.actor, selectors.project_get(self.actor, pk)))


class MembersView(ActorGenericView):
    serializer_class = MemberSerializer

    @extend_schema(responses=MemberSerializer(many=True), summary="Roles of people on the project")
    def get(self, request: Request, pk: int) -> Response:
        project = selectors.project_for_members(self.actor, pk)
        return self.page(project.members.select_related("user"))

    @extend_schema(
        request=MemberSerializer,
        responses={201: MemberSerializer, 400: ProblemSerializer},
        summary="Give a person a role",
    )
    def post(self, request: Request, pk: int) -> Response:
        project = selectors.project_for_members(self.actor, pk)
        serializer = MemberSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        asked = serializer.validated_data
        member = services.member_add(
            actor=self.actor,
            project=project,
            user=selectors.person_for_role(self.actor, asked["user_id"]),
            role=asked["role"],
        )
        return Response(MemberSerializer(member).data, status=201)


class MemberView(ActorAPIView):
    @extend_schema(responses={204: None} | REFUSED, summary="Take a role back")
    def delete(self, request: Request, pk: int, member: int) -> Response:
        project = selectors.project_for_members(self.actor, pk)
        row = selectors.member_get(project, member)
        services.member_remove(actor=self.actor, project=project, user=row.user, role=row.role)
        return Response(status=204)
