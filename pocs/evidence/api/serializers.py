"""Evidence, revisions and files as the API shows and takes them."""

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from pocs.common.api.serializers import StrictSerializer
from pocs.evidence.bodies import json_schema
from pocs.evidence.choices import CURRENT_STATES, EvidenceType, RevisionState
from pocs.evidence.models import Attachment, Evidence, EvidenceRevision


@extend_schema_field({"oneOf": [json_schema(kind) for kind in EvidenceType]})
class BodyField(serializers.JSONField):
    """The body, in the form of its evidence's type; judged by the service."""


class AuthorSerializer(serializers.Serializer):
    """A person, and the token through which it wrote."""

    id = serializers.IntegerField()
    name = serializers.CharField(source="__str__")


class AttachmentSerializer(serializers.ModelSerializer):
    uploaded_by = AuthorSerializer(read_only=True)

    class Meta:
        model = Attachment
        fields = [
            "id",
            "revision",
            "name",
            "content_type",
            "size_bytes",
            "sha256",
            "uploaded_by",
            "created_at",
        ]
        read_only_fields = fields


class RevisionSummarySerializer(serializers.ModelSerializer):
    """A revision without its content."""

    state = serializers.ChoiceField(choices=RevisionState.choices, read_only=True)
    created_by = AuthorSerializer(read_only=True)
    submitted_by = AuthorSerializer(read_only=True, allow_null=True)
    reviewed_by = AuthorSerializer(read_only=True, allow_null=True)

    class Meta:
        model = EvidenceRevision
        fields = [
            "id",
            "evidence",
            "number",
            "state",
            "version",
            "title",
            "content_sha256",
            "created_by",
            "token",
            "created_at",
            "submitted_by",
            "submitted_at",
            "submit_note",
            "reviewed_by",
            "reviewed_at",
            "review_note",
        ]
        read_only_fields = fields


class RevisionSerializer(RevisionSummarySerializer):
    """A revision with its content, which has been compared with its digest."""

    body = BodyField(read_only=True)
    runs: Any = serializers.PrimaryKeyRelatedField(many=True, read_only=True)
    attachments = AttachmentSerializer(many=True, read_only=True)

    class Meta(RevisionSummarySerializer.Meta):
        fields = [*RevisionSummarySerializer.Meta.fields, "body", "runs", "attachments"]
        read_only_fields = fields


class EvidenceSerializer(serializers.ModelSerializer):
    """One piece of evidence: its newest revision, and the one that stands (reviewed or frozen)."""

    type = serializers.ChoiceField(choices=EvidenceType.choices, read_only=True)
    newest = serializers.SerializerMethodField()
    current = serializers.SerializerMethodField()

    class Meta:
        model = Evidence
        fields = [
            "id",
            "project",
            "type",
            "title",
            "version",
            "newest",
            "current",
            "created_at",
            "updated_at",
        ]
        read_only_fields = fields

    @extend_schema_field(RevisionSummarySerializer)
    def get_newest(self, evidence: Evidence) -> dict[str, Any]:
        return RevisionSummarySerializer(evidence.latest_revisions[0]).data  # type: ignore[attr-defined]

    @extend_schema_field(RevisionSummarySerializer(allow_null=True))
    def get_current(self, evidence: Evidence) -> dict[str, Any] | None:
        revisions: list[EvidenceRevision] = evidence.latest_revisions  # type: ignore[attr-defined]
        current = next((revision for revision in revisions if revision.state in CURRENT_STATES), None)
        return RevisionSummarySerializer(current).data if current else None


class RunIdsField(serializers.ListField):
    child = serializers.IntegerField(min_value=1)


class EvidenceWriteSerializer(StrictSerializer):
    """New evidence with its first draft."""

    type = serializers.ChoiceField(choices=EvidenceType.choices)
    title = serializers.CharField(max_length=200)
    body = BodyField()
    runs = RunIdsField(required=False, default=list)


class RevisionWriteSerializer(StrictSerializer):
    """An edit: what is not sent stays as it is in the newest revision."""

    title = serializers.CharField(max_length=200, required=False)
    body = BodyField(required=False)
    runs = RunIdsField(required=False)


class ReviewWriteSerializer(StrictSerializer):
    note = serializers.CharField(required=False, allow_blank=True, default="", max_length=5000)


class ReturnWriteSerializer(StrictSerializer):
    reason = serializers.CharField(max_length=5000)


class AttachmentWriteSerializer(StrictSerializer):
    file = serializers.FileField(allow_empty_file=True, max_length=1000)


class ReviewRowsSerializer(serializers.Serializer):
    """What the review method of the type returned."""

    type = serializers.ChoiceField(choices=EvidenceType.choices)
    method = serializers.CharField()
    passes = serializers.BooleanField()
    rows = serializers.ListField(child=serializers.DictField())
    missing = serializers.ListField(child=serializers.CharField())
    notes = serializers.ListField(child=serializers.CharField())
