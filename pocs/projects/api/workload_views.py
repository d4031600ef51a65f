"""Request sets and traces of a project over REST."""

import json
from collections.abc import Mapping
from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.fields import empty
from rest_framework.parsers import MultiPartParser
from rest_framework.request import Request
from rest_framework.response import Response

from pocs.common.api.serializers import ProblemSerializer, StrictSerializer
from pocs.common.api.views import ActorAPIView, ActorGenericView
from pocs.projects import selectors, services


class WorkloadSerializer(serializers.Serializer):
    """A file as it was read; scenarios name it by `digest` once `confirmed_at` is set."""

    id = serializers.IntegerField()
    name = serializers.CharField()
    digest = serializers.CharField()
    report = serializers.JSONField()
    created_at = serializers.DateTimeField()
    confirmed_at = serializers.DateTimeField(allow_null=True)


class ColumnsField(serializers.DictField):
    """An object of texts; in a form it is sent as JSON, as OpenAPI has it for objects."""

    def get_value(self, dictionary: Mapping[Any, Any]) -> Any:
        return dictionary.get(self.field_name, empty)

    def to_internal_value(self, data: Any) -> dict[str, str]:
        try:
            found = json.loads(data) if isinstance(data, str) else data
        except (ValueError, RecursionError):
            found = data  # no object, which is what the answer says
        texts: dict[str, str] = super().to_internal_value(found)
        return texts


class WorkloadUploadSerializer(StrictSerializer):
    """The upload; `columns` is an object such as `{"prompt": "Question"}` for CSV with unusual headings."""

    file = serializers.FileField()
    format = serializers.CharField(required=False, allow_blank=True, default="")
    columns = ColumnsField(child=serializers.CharField(), required=False)
    skip_faulty = serializers.BooleanField(required=False, default=False)


class WorkloadsView(ActorGenericView):
    serializer_class = WorkloadSerializer
    parser_classes = [MultiPartParser]

    @extend_schema(responses=WorkloadSerializer(many=True), summary="Request sets and traces of a project")
    def get(self, request: Request, pk: int) -> Response:
        return self.page(selectors.workloads_of(selectors.project_get(self.actor, pk)))

    @extend_schema(
        request={"multipart/form-data": WorkloadUploadSerializer},
        responses={201: WorkloadSerializer, 400: ProblemSerializer},
        summary="Upload a request set or trace; personal numbers and addresses are taken out",
    )
    def post(self, request: Request, pk: int) -> Response:
        project = selectors.project_get(self.actor, pk, "scenario.edit")
        serializer = WorkloadUploadSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        asked: dict[str, Any] = serializer.validated_data
        kept = services.workload_upload(
            actor=self.actor,
            project=project,
            name=asked["file"].name,
            raw=asked["file"].read(),
            format_name=asked["format"],
            columns=asked.get("columns"),
            skip_faulty=asked["skip_faulty"],
        )
        return Response(WorkloadSerializer(kept).data, status=201)


class WorkloadView(ActorAPIView):
    @extend_schema(responses=WorkloadSerializer, summary="What was read of one file")
    def get(self, request: Request, pk: int, file: int) -> Response:
        found = selectors.workload_get(selectors.project_get(self.actor, pk), file)
        return Response(WorkloadSerializer(found).data)

    @extend_schema(responses={204: None, 409: ProblemSerializer}, summary="Discard a file that nothing uses")
    def delete(self, request: Request, pk: int, file: int) -> Response:
        found = selectors.workload_get(selectors.project_get(self.actor, pk), file)
        services.workload_discard(actor=self.actor, workload=found)
        return Response(status=204)


class WorkloadConfirmView(ActorAPIView):
    @extend_schema(request=None, responses=WorkloadSerializer, summary="Let scenarios use a file")
    def post(self, request: Request, pk: int, file: int) -> Response:
        found = selectors.workload_get(selectors.project_get(self.actor, pk), file)
        return Response(WorkloadSerializer(services.workload_confirm(actor=self.actor, workload=found)).data)
