"""Lines, threads, comments, requests for a review, and the answer of the runtime query."""

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from pocs.common.api.serializers import StrictSerializer
from pocs.evidence.api.serializers import AuthorSerializer
from pocs.evidence.choices import RequestState, ThreadState
from pocs.runs.choices import Outcome


class LineSerializer(serializers.Serializer):
    path = serializers.CharField()
    field = serializers.CharField()
    label = serializers.CharField()  # type: ignore[assignment]
    text = serializers.CharField()
    parts = serializers.ListField(child=serializers.CharField())


class CommentSerializer(serializers.Serializer):
    id = serializers.IntegerField()
    author = AuthorSerializer()
    text = serializers.CharField()
    at = serializers.DateTimeField()


class ThreadSerializer(serializers.Serializer):
    """A discussion as one revision shows it: is its line `present`, and has it `changed` since."""

    id = serializers.IntegerField(source="thread.pk")
    revision = serializers.IntegerField(source="thread.revision_id")
    path = serializers.CharField(source="thread.path")
    label = serializers.CharField(source="thread.label")  # type: ignore[assignment]
    quote = serializers.CharField(source="thread.quote")
    text = serializers.CharField(source="thread.text")
    state = serializers.ChoiceField(source="thread.state", choices=ThreadState.choices)
    version = serializers.IntegerField(source="thread.version")
    opened_by = AuthorSerializer(source="thread.opened_by")
    resolved_by = AuthorSerializer(source="thread.resolved_by", allow_null=True)
    present = serializers.BooleanField()
    changed = serializers.BooleanField()
    comments = serializers.SerializerMethodField()

    @extend_schema_field(CommentSerializer(many=True))
    def get_comments(self, row: dict[str, Any]) -> Any:
        return CommentSerializer(row["thread"].comments.all(), many=True).data


class ThreadWriteSerializer(StrictSerializer):
    path = serializers.CharField(max_length=700)
    quote = serializers.CharField(required=False, allow_blank=True, default="")
    text = serializers.CharField()


class CommentWriteSerializer(StrictSerializer):
    text = serializers.CharField()


class ReviewRequestSerializer(serializers.Serializer):
    id = serializers.IntegerField()
    revision = serializers.IntegerField(source="revision_id")
    person = AuthorSerializer()
    requested_by = AuthorSerializer()
    note = serializers.CharField()
    state = serializers.ChoiceField(choices=RequestState.choices)
    version = serializers.IntegerField()
    created_at = serializers.DateTimeField()
    ended_at = serializers.DateTimeField(allow_null=True)


class ReviewRequestWriteSerializer(StrictSerializer):
    person = serializers.IntegerField(min_value=1)
    note = serializers.CharField(required=False, allow_blank=True, default="", max_length=2000)


class DistributionSerializer(serializers.Serializer):
    n = serializers.IntegerField()
    p50 = serializers.FloatField(allow_null=True)
    p90 = serializers.FloatField(allow_null=True)
    p95 = serializers.FloatField(allow_null=True)
    p99 = serializers.FloatField(allow_null=True)
    max = serializers.FloatField(allow_null=True)


class PopulationSerializer(serializers.Serializer):
    """The requests of one tenant and application; times in ms over the successes."""

    tenant = serializers.CharField()
    application = serializers.CharField()
    source = serializers.ChoiceField(choices=["records", "summary"])  # type: ignore[assignment]
    runs = serializers.ListField(child=serializers.IntegerField())
    outcomes = serializers.DictField(child=serializers.IntegerField())
    attempted = serializers.IntegerField()
    succeeded = serializers.IntegerField()
    errors = serializers.IntegerField()  # type: ignore[assignment]
    error_rate = serializers.FloatField(allow_null=True)
    ttft_ms = DistributionSerializer()
    tpot_ms = DistributionSerializer()
    queue_wait_ms = DistributionSerializer()


class QueriedRequestSerializer(serializers.Serializer):
    run = serializers.IntegerField(source="run_id")
    index = serializers.IntegerField()
    request_id = serializers.CharField()
    tenant = serializers.CharField()
    application = serializers.CharField()
    outcome = serializers.ChoiceField(choices=Outcome.choices)
    queue_wait_ms = serializers.FloatField(allow_null=True)
    ttft_ms = serializers.FloatField(allow_null=True)
    tpot_ms = serializers.FloatField(allow_null=True)
    e2e_ms = serializers.FloatField(allow_null=True)
    error = serializers.CharField(allow_null=True)


class RuntimeQuerySerializer(serializers.Serializer):
    """`results` are the requests from `offset` on, of `count` in all; `populations` their figures."""

    populations = PopulationSerializer(many=True)
    count = serializers.IntegerField()
    offset = serializers.IntegerField()
    results = QueriedRequestSerializer(many=True)


class RuntimeFilterSerializer(StrictSerializer):
    """Query parameters of the runtime query."""

    tenant = serializers.CharField(required=False, default="", max_length=120)
    application = serializers.CharField(required=False, default="", max_length=120)
    outcome = serializers.ChoiceField(choices=Outcome.choices, required=False, default="")
    offset = serializers.IntegerField(required=False, default=0, min_value=0, max_value=2**31)
    limit = serializers.IntegerField(required=False, default=50, min_value=1, max_value=500)


class PieceSerializer(serializers.Serializer):
    kind = serializers.CharField(help_text="same, added or removed")
    text = serializers.CharField(trim_whitespace=False)


class ChangeSerializer(serializers.Serializer):
    """One line that differs; `pieces` cut a longer text where it does."""

    kind = serializers.CharField(help_text="added, changed or removed")
    label = serializers.CharField()  # type: ignore[assignment]
    before = serializers.CharField()
    after = serializers.CharField()
    pieces = PieceSerializer(many=True)


class ConfigurationSerializer(serializers.Serializer):
    """Consecutive counting runs with one configuration, against the one before it."""

    digest = serializers.CharField()
    first_run = serializers.IntegerField(source="first.number")
    last_run = serializers.IntegerField(source="last_number")
    runs = serializers.IntegerField()
    changes = ChangeSerializer(many=True)
    revisions = serializers.SerializerMethodField()

    @extend_schema_field(serializers.ListField(child=serializers.IntegerField()))
    def get_revisions(self, configuration: Any) -> list[int]:
        return [revision.pk for revision in configuration.revisions]


class ReadinessEvidenceSerializer(StrictSerializer):
    evidence = serializers.ListField(child=serializers.IntegerField(min_value=1))
