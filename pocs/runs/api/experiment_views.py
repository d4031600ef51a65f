"""Experiments, baselines and the regression gate over REST."""

from typing import Any

from django.urls import reverse
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from pocs.common.api.idempotency import idempotent
from pocs.common.api.pagination import CursorPages
from pocs.common.api.serializers import ProblemSerializer, StrictSerializer
from pocs.common.api.views import ActorAPIView, ActorGenericView
from pocs.projects.models import Project
from pocs.projects.selectors import project_get, scenario_version_find
from pocs.runs import experiment_selectors, selectors, services
from pocs.runs.api.views import IDEMPOTENCY_KEY, REFUSED
from pocs.runs.choices import ExperimentState
from pocs.runs.experimenting import regression
from pocs.runs.models import Baseline, Experiment


class ExperimentSerializer(serializers.Serializer):
    """One experiment; `result` holds each metric with difference, interval, noise band and verdict."""

    id = serializers.IntegerField()
    number = serializers.IntegerField()
    project = serializers.IntegerField(source="project_id")
    name = serializers.CharField()
    scenario = serializers.CharField(source="scenario_version", help_text="slug@version")
    candidate_scenario = serializers.CharField(source="candidate_version", help_text="slug@version")
    target = serializers.IntegerField(source="baseline_target_id")
    candidate_target = serializers.IntegerField(source="candidate_target_id")
    declared_change = serializers.CharField()
    repeats = serializers.IntegerField()
    state = serializers.ChoiceField(choices=ExperimentState.choices)
    runs = serializers.SerializerMethodField()
    result = serializers.DictField(allow_null=True)
    rollback_run = serializers.IntegerField(source="rollback_run_id", allow_null=True)
    created_at = serializers.DateTimeField()
    version = serializers.IntegerField()

    def get_runs(self, experiment: Experiment) -> list[dict[str, Any]]:
        turns = experiment.runs.order_by("position")
        return [{"run": turn.run_id, "side": turn.side, "position": turn.position} for turn in turns]


class ExperimentStartSerializer(StrictSerializer):
    """Two sides that differ in one setting; names of targets, slug@version of scenarios."""

    name = serializers.CharField(max_length=160)
    scenario = serializers.CharField(max_length=80)
    target = serializers.CharField(max_length=120, help_text="name of the baseline's target")
    candidate_target = serializers.CharField(required=False, max_length=120)
    candidate_scenario = serializers.CharField(required=False, max_length=80)
    declared_change = serializers.CharField(
        required=False, max_length=80, help_text="the one setting that differs"
    )
    repeats = serializers.IntegerField(required=False, default=3)
    price_per_hour = serializers.FloatField(required=False)


class BaselineSerializer(serializers.Serializer):
    """Runs that later ones are held against."""

    id = serializers.IntegerField()
    project = serializers.IntegerField(source="project_id")
    name = serializers.CharField()
    runs = serializers.SerializerMethodField()
    noise = serializers.FloatField(allow_null=True)
    created_at = serializers.DateTimeField()
    version = serializers.IntegerField()

    def get_runs(self, baseline: Baseline) -> list[int]:
        return sorted(run.pk for run in baseline.runs.all())


class BaselineCreateSerializer(StrictSerializer):
    name = serializers.CharField(max_length=120)
    runs = serializers.ListField(child=serializers.IntegerField(), allow_empty=False, max_length=50)
    noise = serializers.FloatField(required=False, allow_null=True, help_text="share, such as 0.05")


class RegressionAskSerializer(StrictSerializer):
    runs = serializers.ListField(child=serializers.IntegerField(), allow_empty=False, max_length=50)


class GatedSerializer(serializers.Serializer):
    metric = serializers.CharField()
    percentile = serializers.CharField(allow_blank=True)
    baseline = serializers.FloatField(allow_null=True)
    candidate = serializers.FloatField(allow_null=True)
    interval = serializers.ListField(allow_null=True, help_text="95 %, of the difference")
    noise = serializers.FloatField(allow_null=True)
    verdict = serializers.CharField(help_text="pass, fail or inconclusive")
    reason = serializers.CharField()


class RegressionSerializer(serializers.Serializer):
    """`verdict` for the pipeline: fail with any metric that is worse beyond noise."""

    verdict = serializers.CharField(help_text="pass, fail or inconclusive")
    metrics = GatedSerializer(many=True)
    baseline = serializers.IntegerField()
    baseline_runs = serializers.ListField(child=serializers.IntegerField())
    candidate_runs = serializers.ListField(child=serializers.IntegerField())
    noise = serializers.FloatField(allow_null=True)
    load = serializers.DictField()
    outputs = serializers.DictField(allow_null=True)
    differences = serializers.ListField(child=serializers.DictField())


class ExperimentPages(CursorPages):
    ordering = "-number"


class ExperimentsView(ActorGenericView):
    serializer_class = ExperimentSerializer
    pagination_class = ExperimentPages

    @extend_schema(responses=ExperimentSerializer(many=True), summary="Experiments of the project")
    def get(self, request: Request, pk: int) -> Response:
        return self.page(experiment_selectors.experiments_of(self.actor, project_get(self.actor, pk)))

    @extend_schema(
        request=ExperimentStartSerializer,
        responses={201: ExperimentSerializer, 400: ProblemSerializer} | REFUSED,
        parameters=[IDEMPOTENCY_KEY],
        summary="Start an experiment: both sides in turns, one declared change",
    )
    def post(self, request: Request, pk: int) -> Response:
        project = project_get(self.actor, pk, "run.execute")

        def produce() -> Response:
            serializer = ExperimentStartSerializer(data=request.data)
            serializer.is_valid(raise_exception=True)
            asked = self._found(project, serializer.validated_data)
            found = services.experiment_start(actor=self.actor, project=project, **asked)
            location = reverse("api-experiment", args=[found.pk])
            return self.answer(found, ExperimentSerializer(found).data, 201, Location=location)

        return idempotent(request, self.actor, produce)

    def _found(self, project: Project, asked: dict[str, Any]) -> dict[str, Any]:
        """The rows behind the names in the request."""
        plain = ("name", "repeats", "declared_change", "price_per_hour")
        found = {name: asked[name] for name in plain if name in asked}
        found["scenario_version"] = scenario_version_find(project, asked["scenario"])
        found["baseline_target"] = selectors.target_find(project, asked["target"])
        if name := asked.get("candidate_target"):
            found["candidate_target"] = selectors.target_find(project, name)
        if name := asked.get("candidate_scenario"):
            found["candidate_version"] = scenario_version_find(project, name)
        return found


class ExperimentView(ActorAPIView):
    @extend_schema(responses=ExperimentSerializer, summary="One experiment with its result")
    def get(self, request: Request, pk: int) -> Response:
        found = experiment_selectors.experiment_get(self.actor, pk)
        return self.answer(found, ExperimentSerializer(found).data)


class ExperimentCancelView(ActorAPIView):
    @extend_schema(
        request=None, responses={200: ExperimentSerializer} | REFUSED, summary="Cancel what is left of it"
    )
    def post(self, request: Request, pk: int) -> Response:
        found = experiment_selectors.experiment_get(self.actor, pk, "run.cancel")
        cancelled = services.experiment_cancel(actor=self.actor, experiment=found)
        return self.answer(cancelled, ExperimentSerializer(cancelled).data)


class BaselinePages(CursorPages):
    ordering = "name"  # unique within a project


class BaselinesView(ActorGenericView):
    serializer_class = BaselineSerializer
    pagination_class = BaselinePages

    @extend_schema(responses=BaselineSerializer(many=True), summary="Baselines of the project")
    def get(self, request: Request, pk: int) -> Response:
        return self.page(experiment_selectors.baselines_of(self.actor, project_get(self.actor, pk)))

    @extend_schema(
        request=BaselineCreateSerializer,
        responses={201: BaselineSerializer, 400: ProblemSerializer} | REFUSED,
        parameters=[IDEMPOTENCY_KEY],
        summary="Keep runs as a baseline; repeats give its noise band",
    )
    def post(self, request: Request, pk: int) -> Response:
        project = project_get(self.actor, pk, "run.execute")

        def produce() -> Response:
            serializer = BaselineCreateSerializer(data=request.data)
            serializer.is_valid(raise_exception=True)
            asked = dict(serializer.validated_data)
            runs = [selectors.run_get(self.actor, number, "run.execute") for number in asked.pop("runs")]
            found = services.baseline_create(actor=self.actor, project=project, runs=runs, **asked)
            location = reverse("api-regression", args=[found.pk])
            return self.answer(found, BaselineSerializer(found).data, 201, Location=location)

        return idempotent(request, self.actor, produce)


class RegressionView(ActorAPIView):
    @extend_schema(
        operation_id="regression_of_run",
        parameters=[OpenApiParameter("run", int, required=True, many=True, description="id of a run")],
        responses={200: RegressionSerializer, 400: ProblemSerializer} | REFUSED,
        summary="Hold runs against the baseline: pass, fail or inconclusive for each metric",
    )
    def get(self, request: Request, pk: int) -> Response:
        return self._answer(pk, {"runs": request.query_params.getlist("run")})

    @extend_schema(
        operation_id="regression_of_runs",
        request=RegressionAskSerializer,
        responses={200: RegressionSerializer, 400: ProblemSerializer} | REFUSED,
        summary="The same, with the runs in the body",
    )
    def post(self, request: Request, pk: int) -> Response:
        return self._answer(pk, request.data)

    def _answer(self, pk: int, asked: Any) -> Response:
        baseline = experiment_selectors.baseline_get(self.actor, pk)
        serializer = RegressionAskSerializer(data=asked)
        serializer.is_valid(raise_exception=True)
        runs = [selectors.run_get(self.actor, number) for number in serializer.validated_data["runs"]]
        return Response(regression(baseline, runs))
