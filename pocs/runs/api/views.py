"""Runs over REST: starting, submitting, reading, cancelling; their requests one by one."""

from collections.abc import Mapping
from typing import Any

from django.db.models import QuerySet
from django.urls import reverse
from django.utils.translation import gettext as _
from drf_spectacular.utils import OpenApiParameter, PolymorphicProxySerializer, extend_schema
from rest_framework.parsers import MultiPartParser
from rest_framework.request import Request
from rest_framework.response import Response

from pocs.common.api.idempotency import idempotent
from pocs.common.api.pagination import CursorPages
from pocs.common.api.parsers import StorableJSONParser
from pocs.common.api.serializers import ProblemSerializer
from pocs.common.api.views import ActorAPIView, ActorGenericView
from pocs.common.errors import FieldError, InvalidInput, NotFound
from pocs.projects.models import Project
from pocs.projects.selectors import project_get, scenario_version_find
from pocs.runs import selectors, services
from pocs.runs.api.serializers import (
    ArtifactSerializer,
    PocRunSerializer,
    RequestSerializer,
    RunExecuteSerializer,
    RunItemSerializer,
    RunSerializer,
    SupersedeSerializer,
    UploadSerializer,
)
from pocs.runs.choices import Outcome, RunState
from pocs.runs.models import Run
from pocs.runs.poc_run import check_finite, validator

IDEMPOTENCY_KEY = OpenApiParameter(
    "Idempotency-Key",
    str,
    OpenApiParameter.HEADER,
    description="Repeats of one request get its first answer.",
)
REFUSED = {409: ProblemSerializer}
SUBMISSION = PolymorphicProxySerializer(
    component_name="RunSubmission",
    serializers=[RunExecuteSerializer, PocRunSerializer],
    resource_type_field_name=None,
)


class JSONWithPointers(StorableJSONParser):
    """Lets NaN and infinities through, so that the check can name where they stand."""

    strict = False


class RunPages(CursorPages):
    ordering = "-number"


class RunsView(ActorGenericView):
    serializer_class = RunItemSerializer
    pagination_class = RunPages
    parser_classes = [JSONWithPointers]

    @extend_schema(
        operation_id="runs_of_project",
        responses={200: RunItemSerializer(many=True), 400: ProblemSerializer},
        parameters=[
            OpenApiParameter("scenario", str, description="a short name, or slug@version"),
            OpenApiParameter("state", str, enum=RunState.values),
        ],
        summary="Runs of the project, newest first",
    )
    def get(self, request: Request, pk: int) -> Response:
        project = project_get(self.actor, pk)
        runs = selectors.runs_of(self.actor, project)
        runs = _of_scenario(runs, project, request.query_params.get("scenario", ""))
        runs = _of_choice(runs, "state", request.query_params.get("state", ""), RunState.values)
        return self.page(runs.defer("summary", "diagnosis", "configuration", "manifest", "submission"))

    @extend_schema(
        operation_id="run_start_or_submit",
        request=SUBMISSION,
        responses={201: RunSerializer, 200: RunSerializer, 400: ProblemSerializer} | REFUSED,
        parameters=[IDEMPOTENCY_KEY],
        summary="Execute a scenario, or submit a finished result (poc-run/1)",
    )
    def post(self, request: Request, pk: int) -> Response:
        project = project_get(self.actor, pk, "run.execute")
        body = request.data
        if not isinstance(body, Mapping):
            raise InvalidInput(_("The body must be a JSON object."))
        check_finite(dict(body))

        def produce() -> Response:
            run, created = self._run_of(project, dict(body))
            location = reverse("api-run", args=[run.pk])
            return self.answer(run, RunSerializer(run).data, 201 if created else 200, Location=location)

        return idempotent(request, self.actor, produce)

    def _run_of(self, project: Project, body: dict[str, Any]) -> tuple[Run, bool]:
        """The run that the body asks for or brings, and whether it is new."""
        if "schema" in body:
            return services.run_ingest(actor=self.actor, project=project, payload=body)
        serializer = RunExecuteSerializer(data=body)
        serializer.is_valid(raise_exception=True)
        asked = serializer.validated_data
        if not asked.pop("execute"):
            text = _("Set “execute” to true, or submit a result with “schema”.")
            raise InvalidInput(text, [FieldError("/execute", "choice", text)])
        version = scenario_version_find(project, asked.pop("scenario"))
        target = selectors.target_find(project, asked.pop("target", ""))
        run = services.run_start(
            actor=self.actor, project=project, scenario_version=version, target=target, **asked
        )
        return run, True


def _of_scenario(runs: QuerySet[Run], project: Project, wanted: str) -> QuerySet[Run]:
    """The runs of a scenario's short name or of one version; InvalidInput or NotFound otherwise."""
    if not wanted:
        return runs
    if "@" in wanted:
        return runs.filter(scenario_version=scenario_version_find(project, wanted))
    if not project.scenarios.filter(slug=wanted).exists():
        raise NotFound(_("There is no scenario “%(slug)s” in this project.") % {"slug": wanted[:80]})
    return runs.filter(scenario_version__scenario__slug=wanted)


def _of_choice(rows: QuerySet[Any], name: str, wanted: str, known: list[str]) -> QuerySet[Any]:
    """The rows with this choice; InvalidInput names the choices there are."""
    if not wanted:
        return rows
    if wanted not in known:
        text = _("“%(value)s” is none of: %(known)s.") % {"value": wanted[:80], "known": ", ".join(known)}
        raise InvalidInput(text, [FieldError(f"/{name}", "choice", text)])
    return rows.filter(**{name: wanted})


class RunView(ActorAPIView):
    @extend_schema(responses=RunSerializer, summary="One run with its state, progress and summary")
    def get(self, request: Request, pk: int) -> Response:
        run = selectors.run_get(self.actor, pk)
        return self.answer(run, RunSerializer(run).data)


class RequestPages(CursorPages):
    ordering = "index"
    page_size = 100


class RequestsView(ActorGenericView):
    serializer_class = RequestSerializer
    pagination_class = RequestPages

    @extend_schema(
        responses={200: RequestSerializer(many=True), 400: ProblemSerializer},
        parameters=[
            OpenApiParameter("tenant", str),
            OpenApiParameter("application", str),
            OpenApiParameter("outcome", str, enum=Outcome.values),
            OpenApiParameter("warmup", bool, description="the warm-up requests instead of the measured ones"),
        ],
        summary="Requests of the run in input order, by tenant, application or outcome",
    )
    def get(self, request: Request, pk: int) -> Response:
        run = selectors.run_get(self.actor, pk)
        asked = request.query_params
        rows = selectors.requests_of(
            run,
            tenant=asked.get("tenant", ""),
            application=asked.get("application", ""),
            warmup=asked.get("warmup", "").lower() in ("1", "true"),
        )
        return self.page(_of_choice(rows, "outcome", asked.get("outcome", ""), Outcome.values))


class RunCancelView(ActorAPIView):
    @extend_schema(
        request=None,
        responses={200: RunSerializer} | REFUSED,
        parameters=[IDEMPOTENCY_KEY],
        summary="Cancel the run: at once while it waits, within a second while it is measured",
    )
    def post(self, request: Request, pk: int) -> Response:
        run = selectors.run_get(self.actor, pk, "run.cancel")

        def produce() -> Response:
            cancelled = services.run_cancel(actor=self.actor, run=run)
            return self.answer(cancelled, RunSerializer(cancelled).data)

        return idempotent(request, self.actor, produce)


class RunSupersedeView(ActorAPIView):
    @extend_schema(
        request=SupersedeSerializer,
        responses={200: RunSerializer, 400: ProblemSerializer} | REFUSED,
        summary="Say that another run replaces this one",
    )
    def post(self, request: Request, pk: int) -> Response:
        run = selectors.run_get(self.actor, pk, "run.execute")
        serializer = SupersedeSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        by = selectors.run_get(self.actor, serializer.validated_data["by"], "run.execute")
        superseded = services.run_supersede(actor=self.actor, run=run, by=by)
        return self.answer(superseded, RunSerializer(superseded).data)


class ArtifactView(ActorAPIView):
    parser_classes = [MultiPartParser]

    @extend_schema(
        request={"multipart/form-data": UploadSerializer},
        responses={200: ArtifactSerializer, 400: ProblemSerializer} | REFUSED,
        summary="Upload a file that the result names; the last one completes the run",
    )
    def post(self, request: Request, pk: int, name: str) -> Response:
        run = selectors.run_get(self.actor, pk, "run.execute")
        serializer = UploadSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        artifact = services.artifact_add(
            actor=self.actor, run=run, name=name, upload=serializer.validated_data["file"]
        )
        return Response(ArtifactSerializer(artifact).data)


class PocRunSchemaView(ActorAPIView):
    @extend_schema(responses={200: dict}, summary="JSON schema of poc-run/1")
    def get(self, request: Request) -> Response:
        return Response(validator().schema)
