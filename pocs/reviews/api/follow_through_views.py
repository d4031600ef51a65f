"""Follow-through and observation over REST."""

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from pocs.common.api.views import ActorAPIView, ActorGenericView
from pocs.projects.selectors import project_get, scenario_version_find
from pocs.reviews import selectors, services
from pocs.reviews.api.contest_serializers import ScheduleSerializer, ScheduleWriteSerializer
from pocs.reviews.api.package_views import CHANGED, IF_MATCH, REFUSALS, checked
from pocs.reviews.api.serializers import (
    ObservationSerializer,
    ObservationWriteSerializer,
    ReadingSerializer,
    ReadingWriteSerializer,
    TaskSerializer,
    TaskWriteSerializer,
)
from pocs.reviews.choices import ObservationKind, TaskKind
from pocs.reviews.models import ObservationSchedule
from pocs.reviews.rights import PROJECT


def _whole_list(rows: Any) -> dict[str, Any]:
    """A list that is never longer than a page, in the form of one."""
    return {"next": None, "previous": None, "results": rows}


class TasksView(ActorGenericView):
    serializer_class = TaskSerializer

    @extend_schema(responses=TaskSerializer(many=True), summary="Budget, procurement and launch")
    def get(self, request: Request, pk: int) -> Response:
        project = project_get(self.actor, pk)
        rows = [selectors.task_get(self.actor, project, kind) for kind in TaskKind.values]
        return Response(_whole_list(TaskSerializer(rows, many=True).data))


class TaskView(ActorAPIView):
    @extend_schema(responses=TaskSerializer, summary="One task; version 0 while nobody is named")
    def get(self, request: Request, pk: int, kind: str) -> Response:
        row = selectors.task_get(self.actor, project_get(self.actor, pk), kind)
        return self.answer(row, TaskSerializer(row).data)

    @extend_schema(
        request=TaskWriteSerializer,
        responses={200: TaskSerializer} | REFUSALS | CHANGED,
        parameters=[IF_MATCH],
        summary="Name owner and date of a task",
    )
    def put(self, request: Request, pk: int, kind: str) -> Response:
        project = project_get(self.actor, pk, "followthrough.edit")
        version = self.version_to_change(selectors.task_get(self.actor, project, kind))
        given = checked(TaskWriteSerializer, request)
        owner = selectors.person_of(project, given.pop("owner"))
        row = services.task_set(
            actor=self.actor, project=project, kind=kind, owner=owner, version=version, **given
        )
        return self.answer(row, TaskSerializer(row).data)


class TaskDoneView(ActorAPIView):
    @extend_schema(
        request=None,
        responses={200: TaskSerializer} | REFUSALS,
        summary="Report a task as done; open conditions block the launch",
    )
    def post(self, request: Request, pk: int, kind: str) -> Response:
        task = selectors.task_get(self.actor, project_get(self.actor, pk), kind)
        row = services.task_done(actor=self.actor, task=task)
        return self.answer(row, TaskSerializer(row).data)


class ObservationsView(ActorGenericView):
    serializer_class = ObservationSerializer

    @extend_schema(responses=ObservationSerializer(many=True), summary="Capacity, cost and stability")
    def get(self, request: Request, pk: int) -> Response:
        project = project_get(self.actor, pk)
        rows = [selectors.observation_get(self.actor, project, kind) for kind in ObservationKind.values]
        return Response(_whole_list(ObservationSerializer(rows, many=True).data))


class ObservationView(ActorAPIView):
    @extend_schema(
        responses=ObservationSerializer, summary="One observation; version 0 while nobody is named"
    )
    def get(self, request: Request, pk: int, kind: str) -> Response:
        row = selectors.observation_get(self.actor, project_get(self.actor, pk), kind)
        return self.answer(row, ObservationSerializer(row).data)

    @extend_schema(
        request=ObservationWriteSerializer,
        responses={200: ObservationSerializer} | REFUSALS | CHANGED,
        parameters=[IF_MATCH],
        summary="Name the observer",
    )
    def put(self, request: Request, pk: int, kind: str) -> Response:
        project = project_get(self.actor, pk, "observation.edit")
        version = self.version_to_change(selectors.observation_get(self.actor, project, kind))
        given = checked(ObservationWriteSerializer, request)
        observer = selectors.person_of(project, given.pop("observer"))
        row = services.observation_set(
            actor=self.actor, project=project, kind=kind, observer=observer, version=version, **given
        )
        return self.answer(row, ObservationSerializer(row).data)


class ReadingsView(ActorGenericView):
    serializer_class = ReadingSerializer

    @extend_schema(responses=ReadingSerializer(many=True), summary="Readings of an observation")
    def get(self, request: Request, pk: int, kind: str) -> Response:
        row = selectors.observation_get(self.actor, project_get(self.actor, pk), kind)
        return self.page(selectors.readings_of(row))

    @extend_schema(
        request=ReadingWriteSerializer,
        responses={201: ReadingSerializer} | REFUSALS,
        summary="Enter a reading with its unit",
    )
    def post(self, request: Request, pk: int, kind: str) -> Response:
        row = selectors.observation_row(PROJECT(self.actor, {"pk": pk}), kind)
        reading = services.observation_read(
            actor=self.actor, observation=row, **checked(ReadingWriteSerializer, request)
        )
        return Response(ReadingSerializer(reading).data, status=201)


class ScheduleView(ActorAPIView):
    @extend_schema(responses=ScheduleSerializer, summary="The repeated run; version 0 while none is set")
    def get(self, request: Request, pk: int) -> Response:
        return self._answer(selectors.schedule_of(self.actor, project_get(self.actor, pk)))

    @extend_schema(
        request=ScheduleWriteSerializer,
        responses={200: ScheduleSerializer} | REFUSALS | CHANGED,
        parameters=[IF_MATCH],
        summary="Say which run is repeated while the project is observed",
    )
    def put(self, request: Request, pk: int) -> Response:
        project = project_get(self.actor, pk, "observation.edit")
        version = self.version_to_change(selectors.schedule_of(self.actor, project))
        given = checked(ScheduleWriteSerializer, request)
        row = services.schedule_set(
            actor=self.actor,
            project=project,
            scenario_version=scenario_version_find(project, given.pop("scenario")),
            target=project.targets.filter(pk=given.pop("target")).first(),
            version=version,
            **given,
        )
        return self._answer(row)

    def _answer(self, row: ObservationSchedule) -> Response:
        if row.pk is None:
            return self.answer(row, {"version": 0})
        return self.answer(row, ScheduleSerializer(row).data)


class ObservationCloseView(ActorAPIView):
    @extend_schema(
        request=None,
        responses={200: ObservationSerializer} | REFUSALS,
        summary="End an observation that has a reading",
    )
    def post(self, request: Request, pk: int, kind: str) -> Response:
        row = selectors.observation_get(self.actor, project_get(self.actor, pk), kind)
        row = services.observation_close(actor=self.actor, observation=row)
        return self.answer(row, ObservationSerializer(row).data)
