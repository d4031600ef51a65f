"""Files of evidence over REST, on the nested and on the flat route alike."""

from typing import Any

from django.http import FileResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework.parsers import MultiPartParser
from rest_framework.request import Request
from rest_framework.response import Response

from pocs.common.api.views import ActorAPIView, ActorGenericView
from pocs.evidence import selectors, services
from pocs.evidence.api.serializers import AttachmentSerializer, AttachmentWriteSerializer
from pocs.evidence.downloads import download
from pocs.evidence.files import too_large
from pocs.evidence.uploads import limit_uploads


class RevisionAttachmentsView(ActorGenericView):
    serializer_class = AttachmentSerializer
    parser_classes = [MultiPartParser]

    def initialize_request(self, request: Any, *args: Any, **kwargs: Any) -> Request:
        if request.method == "POST":
            limit_uploads(request)
        return super().initialize_request(request, *args, **kwargs)

    @extend_schema(responses=AttachmentSerializer(many=True), summary="Files of a revision")
    def get(self, request: Request, pk: int) -> Response:
        return self.page(selectors.revision_get(self.actor, pk).attachments.select_related("uploaded_by"))

    @extend_schema(
        request=AttachmentWriteSerializer,
        responses={201: AttachmentSerializer},
        summary="Attach a file to a draft",
    )
    def post(self, request: Request, pk: int) -> Response:
        revision = selectors.revision_get(self.actor, pk)
        serializer = AttachmentWriteSerializer(data=request.data)
        skipped: list[str] = getattr(request._request, "too_large_files", [])
        if skipped:
            raise too_large(skipped[0])
        serializer.is_valid(raise_exception=True)
        upload = serializer.validated_data["file"]
        attachment = services.attachment_add(actor=self.actor, revision=revision, upload=upload)
        return Response(AttachmentSerializer(attachment).data, status=201)


class AttachmentView(ActorAPIView):
    """One file's description; DELETE takes it off a draft."""

    @extend_schema(responses=AttachmentSerializer, summary="One file of evidence")
    def get(self, request: Request, pk: int, revision_pk: int | None = None) -> Response:
        attachment = selectors.attachment_get(self.actor, pk, revision_pk=revision_pk)
        return Response(AttachmentSerializer(attachment).data)

    @extend_schema(responses={204: None}, summary="Take a file off a draft")
    def delete(self, request: Request, pk: int, revision_pk: int | None = None) -> Response:
        attachment = selectors.attachment_get(self.actor, pk, revision_pk=revision_pk)
        services.attachment_remove(actor=self.actor, attachment=attachment)
        return Response(status=204)


class AttachmentContentView(ActorAPIView):
    """The file itself, as a download."""

    @extend_schema(
        responses={(200, "application/octet-stream"): OpenApiTypes.BINARY},
        summary="Download a file of evidence",
    )
    def get(self, request: Request, pk: int, revision_pk: int | None = None) -> FileResponse:
        return download(selectors.attachment_get(self.actor, pk, revision_pk=revision_pk))
