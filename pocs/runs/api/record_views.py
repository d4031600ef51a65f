"""A run's records over REST: whether they are sound, their exports, the report, other definitions."""

from typing import Any

from django.http.response import HttpResponseBase
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema, inline_serializer
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from pocs.common.api.views import ActorAPIView
from pocs.runs import selectors
from pocs.runs.choices import Outcome
from pocs.runs.exports import EXPORTS, download, export_response
from pocs.runs.manifest import rows_check, segments_check
from pocs.runs.report import report_html

SEGMENT = inline_serializer(
    "RunSegment",
    {
        "number": serializers.IntegerField(),
        "name": serializers.CharField(),
        "records": serializers.IntegerField(),
        "size_bytes": serializers.IntegerField(),
        "state": serializers.ChoiceField(choices=["sound", "missing", "changed", "torn"]),
        "damage": serializers.ListField(child=serializers.CharField()),
    },
    many=True,
)
RECORDS = inline_serializer(
    "RunRecords",
    {
        "requests": serializers.IntegerField(help_text="rows that are stored, warm-up included"),
        "rows_sound": serializers.BooleanField(allow_null=True, help_text="null without a manifest"),
        "segments": SEGMENT,
        "manifest": serializers.DictField(allow_null=True),
        "rescored": serializers.DictField(allow_null=True, help_text="the run by other tools' definitions"),
    },
)


class _DownloadView(ActorAPIView):
    """What a client accepts does not matter: the route says what comes."""

    def perform_content_negotiation(self, request: Request, force: bool = False) -> Any:
        return super().perform_content_negotiation(request, force=True)


class RunRecordsView(ActorAPIView):
    @extend_schema(
        operation_id="run_records_check",
        responses=RECORDS,
        summary="Read and check every stored request and every segment of raw reads against the manifest",
    )
    def get(self, request: Request, pk: int) -> Response:
        run = selectors.run_get(self.actor, pk)
        checks = [
            {
                "number": check.number,
                "name": check.name,
                "records": check.records,
                "size_bytes": check.size_bytes,
                "state": check.state,
                "damage": [f"byte {each.offset}: {each.reason}" for each in check.damage],
            }
            for check in segments_check(run)
        ]
        return Response(
            {
                "requests": run.requests.count(),
                "rows_sound": rows_check(run) if run.manifest else None,
                "segments": checks,
                "manifest": run.manifest,
                "rescored": run.rescored,
            }
        )


class RunExportView(_DownloadView):
    @extend_schema(
        operation_id="run_export",
        responses={200: OpenApiTypes.BINARY},
        parameters=[
            OpenApiParameter("form", str, OpenApiParameter.PATH, enum=list(EXPORTS)),
            OpenApiParameter("tenant", str),
            OpenApiParameter("application", str),
            OpenApiParameter("outcome", str, enum=Outcome.values),
            OpenApiParameter("warmup", bool, description="the warm-up requests as well"),
            OpenApiParameter("bom", bool, description="0: a CSV without a byte order mark"),
        ],
        summary="The requests of the run as CSV, JSON, JSON lines or Parquet, streamed",
    )
    def get(self, request: Request, pk: int, form: str) -> HttpResponseBase:
        run = selectors.run_get(self.actor, pk)
        rows = selectors.rows_for_export(run, request.query_params)
        return export_response(
            run, rows, form, bom=request.query_params.get("bom", "1") not in ("0", "false")
        )


class RunReportView(_DownloadView):
    @extend_schema(
        operation_id="run_report",
        responses={(200, "text/html"): OpenApiTypes.STR},
        summary="The run as one self-contained HTML file in English and Chinese",
    )
    def get(self, request: Request, pk: int) -> HttpResponseBase:
        run = selectors.run_get(self.actor, pk)
        name = f"run-{run.project_id}-R{run.number}-report.html"
        return download(name, "text/html; charset=utf-8", iter([report_html(run).encode()]))
