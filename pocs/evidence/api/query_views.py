"""What evidence rests on, over REST: requests by tenant or application, configurations, differences."""

from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from pocs.common.api.views import ActorAPIView
from pocs.evidence import runtime, selectors, services
from pocs.evidence.api.discussion_serializers import (
    ChangeSerializer,
    ConfigurationSerializer,
    ReadinessEvidenceSerializer,
    RuntimeFilterSerializer,
    RuntimeQuerySerializer,
)
from pocs.evidence.api.discussion_views import checked
from pocs.evidence.configurations import configurations_of
from pocs.evidence.content import check_content
from pocs.evidence.difference import changes_between
from pocs.projects.plan import readiness_get
from pocs.projects.selectors import project_get


class RevisionRequestsView(ActorAPIView):
    @extend_schema(
        parameters=[RuntimeFilterSerializer],
        responses=RuntimeQuerySerializer,
        summary="The requests behind runtime evidence, by tenant, application and outcome",
    )
    def get(self, request: Request, pk: int) -> Response:
        revision = selectors.revision_get(self.actor, pk)
        serializer = RuntimeFilterSerializer(data=request.query_params.dict())
        serializer.is_valid(raise_exception=True)
        asked = dict(serializer.validated_data)
        offset, limit = asked.pop("offset"), asked.pop("limit")
        wanted, runs = runtime.Filter(**asked), list(revision.runs.all())
        found = runtime.requests_matching(runs, wanted, offset=offset, limit=limit)
        answer = {
            "populations": runtime.populations(runs, wanted),
            "count": found.count,
            "offset": offset,
            "results": found.records,
        }
        return Response(RuntimeQuerySerializer(answer).data)


class RevisionDifferenceView(ActorAPIView):
    @extend_schema(
        parameters=[OpenApiParameter("from", int, description="Number of the older revision.")],
        responses=ChangeSerializer(many=True),
        summary="What a revision changed, line by line, against the one before it or `from`",
    )
    def get(self, request: Request, pk: int) -> Response:
        newer = selectors.revision_get(self.actor, pk)
        asked = request.query_params.get("from", "")
        number = int(asked) if asked.isdecimal() and len(asked) < 10 else newer.number - 1
        listed = selectors.revision_by_number(newer.evidence, max(number, 1))
        older = selectors.revision_get(self.actor, listed.pk)
        check_content(older)
        check_content(newer)
        return Response(ChangeSerializer(changes_between(older, newer), many=True).data)


class ConfigurationsView(ActorAPIView):
    @extend_schema(
        responses=ConfigurationSerializer(many=True),
        summary="Configurations that the counting runs recorded, newest first, each against the one before",
    )
    def get(self, request: Request, pk: int) -> Response:
        project = project_get(self.actor, pk)
        return Response(ConfigurationSerializer(configurations_of(project), many=True).data)


class ReadinessEvidenceView(ActorAPIView):
    @extend_schema(responses=ReadinessEvidenceSerializer, summary="Evidence named for a readiness point")
    def get(self, request: Request, pk: int, kind: str) -> Response:
        project = project_get(self.actor, pk)
        point = readiness_get(project, kind)
        rows = project.readiness_support.filter(kind=point.kind)
        return Response({"evidence": list(rows.values_list("evidence_id", flat=True))})

    @extend_schema(
        request=ReadinessEvidenceSerializer,
        responses=ReadinessEvidenceSerializer,
        summary="Name exactly this evidence for a readiness point",
    )
    def put(self, request: Request, pk: int, kind: str) -> Response:
        project = project_get(self.actor, pk, "project.edit")
        point = readiness_get(project, kind)
        given = checked(ReadinessEvidenceSerializer, request)
        rows = services.readiness_support_set(
            actor=self.actor,
            project=project,
            kind=point.kind,
            evidence=selectors.evidence_by_id(project, given["evidence"]),
        )
        return Response({"evidence": [row.evidence_id for row in rows]})
