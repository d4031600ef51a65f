"""Evidence over REST: write, submit, review, return, and the rows of the review method."""

from typing import Any

from django.urls import reverse
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from pocs.common.api.idempotency import idempotent
from pocs.common.api.views import ActorAPIView, ActorGenericView
from pocs.evidence import selectors, services
from pocs.evidence.api.discussion_views import checked
from pocs.evidence.api.serializers import (
    EvidenceSerializer,
    EvidenceWriteSerializer,
    ReturnWriteSerializer,
    ReviewRowsSerializer,
    ReviewWriteSerializer,
    RevisionSerializer,
    RevisionSummarySerializer,
    RevisionWriteSerializer,
)
from pocs.evidence.choices import EvidenceType
from pocs.evidence.content import check_content
from pocs.evidence.models import EvidenceRevision

IF_MATCH = OpenApiParameter(
    "If-Match", location=OpenApiParameter.HEADER, required=True, description="ETag of the evidence"
)
IDEMPOTENCY_KEY = OpenApiParameter("Idempotency-Key", location=OpenApiParameter.HEADER)


class ProjectEvidenceView(ActorGenericView):
    serializer_class = EvidenceSerializer

    @extend_schema(
        responses=EvidenceSerializer(many=True),
        parameters=[OpenApiParameter("type", enum=EvidenceType.values)],
        summary="Evidence of a project",
    )
    def get(self, request: Request, pk: int) -> Response:
        project = selectors.project_for_evidence(self.actor, pk)
        rows = selectors.evidence_of(self.actor, project)
        kind = request.query_params.get("type")
        return self.page(rows.filter(type=kind) if kind else rows)

    @extend_schema(
        request=EvidenceWriteSerializer,
        responses={201: EvidenceSerializer},
        parameters=[IDEMPOTENCY_KEY],
        summary="Write new evidence",
    )
    def post(self, request: Request, pk: int) -> Response:
        project = selectors.project_for_evidence(self.actor, pk)
        given = checked(EvidenceWriteSerializer, request)
        return idempotent(request, self.actor, lambda: self._create(project, given))

    def _create(self, project: Any, given: dict[str, Any]) -> Response:
        evidence = services.evidence_create(
            actor=self.actor,
            project=project,
            type=given["type"],
            title=given["title"],
            body=given["body"],
            runs=selectors.runs_by_id(project, given["runs"]),
        )
        stored = selectors.evidence_of(self.actor, project).get(pk=evidence.pk)
        location = reverse("api-evidence", args=[evidence.pk])
        return self.answer(stored, EvidenceSerializer(stored).data, status=201, Location=location)


class EvidenceView(ActorAPIView):
    @extend_schema(
        responses=EvidenceSerializer, summary="One piece of evidence; its ETag is needed for edits"
    )
    def get(self, request: Request, pk: int) -> Response:
        evidence = selectors.evidence_get(self.actor, pk)
        stored = selectors.evidence_of(self.actor, evidence.project).get(pk=pk)
        return self.answer(stored, EvidenceSerializer(stored).data)


class EvidenceRevisionsView(ActorGenericView):
    serializer_class = RevisionSummarySerializer

    @extend_schema(responses=RevisionSummarySerializer(many=True), summary="Revisions of evidence")
    def get(self, request: Request, pk: int) -> Response:
        return self.page(selectors.revisions_of(selectors.evidence_get(self.actor, pk)))

    @extend_schema(
        request=RevisionWriteSerializer,
        responses={200: RevisionSerializer, 201: RevisionSerializer},
        parameters=[IF_MATCH],
        summary="Edit the draft (200), or write the revision after a submitted one (201)",
    )
    def post(self, request: Request, pk: int) -> Response:
        evidence = selectors.evidence_get(self.actor, pk)
        version = self.version_to_change(evidence)
        given = checked(RevisionWriteSerializer, request)
        newest = selectors.revisions_of(evidence)[0]
        runs = selectors.runs_by_id(evidence.project, given["runs"]) if "runs" in given else newest.runs.all()
        revision = services.revision_edit(
            actor=self.actor,
            evidence=evidence,
            version=version,
            title=given.get("title"),
            body=given.get("body", newest.body),
            runs=runs,
        )
        evidence.refresh_from_db()
        stored = selectors.revision_get(self.actor, revision.pk)
        status = 200 if revision.pk == newest.pk else 201
        location = reverse("api-revision", args=[revision.pk])
        return self.answer(evidence, RevisionSerializer(stored).data, status=status, Location=location)


class RevisionView(ActorAPIView):
    """One revision, on the flat route and below its evidence."""

    @extend_schema(responses=RevisionSerializer, summary="One revision with its content")
    def get(self, request: Request, pk: int, evidence_pk: int | None = None) -> Response:
        revision = selectors.revision_get(self.actor, pk, evidence_pk=evidence_pk)
        check_content(revision)
        return self.answer(revision, RevisionSerializer(revision).data)


class RevisionRowsView(ActorAPIView):
    @extend_schema(responses=ReviewRowsSerializer, summary="The review method, executed as a query")
    def get(self, request: Request, pk: int) -> Response:
        revision = selectors.revision_get(self.actor, pk)
        check_content(revision)
        return Response(ReviewRowsSerializer(selectors.review_rows(revision)).data)


class RevisionTransitionView(ActorAPIView):
    """Base of the transitions: a POST on a sub-resource, answered with the revision."""

    def transitioned(self, revision: EvidenceRevision) -> Response:
        stored = selectors.revision_get(self.actor, revision.pk)
        return self.answer(stored, RevisionSerializer(stored).data)


class RevisionSubmitView(RevisionTransitionView):
    @extend_schema(
        request=ReviewWriteSerializer,
        responses=RevisionSerializer,
        summary="Submit a draft for review; `note` tells the reviewer what to look at",
    )
    def post(self, request: Request, pk: int) -> Response:
        revision = selectors.revision_get(self.actor, pk)
        given = checked(ReviewWriteSerializer, request)
        submitted = services.revision_submit(actor=self.actor, revision=revision, note=given["note"])
        return self.transitioned(submitted)


class RevisionReviewView(RevisionTransitionView):
    @extend_schema(
        request=ReviewWriteSerializer,
        responses=RevisionSerializer,
        summary="Accept a submitted revision; only a person who did not contribute",
    )
    def post(self, request: Request, pk: int) -> Response:
        revision = selectors.revision_get(self.actor, pk)
        given = checked(ReviewWriteSerializer, request)
        reviewed = services.revision_review(actor=self.actor, revision=revision, note=given["note"])
        return self.transitioned(reviewed)


class RevisionReturnView(RevisionTransitionView):
    @extend_schema(
        request=ReturnWriteSerializer,
        responses=RevisionSerializer,
        summary="Return a submitted revision with the reason",
    )
    def post(self, request: Request, pk: int) -> Response:
        revision = selectors.revision_get(self.actor, pk)
        given = checked(ReturnWriteSerializer, request)
        returned = services.revision_return(actor=self.actor, revision=revision, reason=given["reason"])
        return self.transitioned(returned)
