"""What the API of the reviews takes and gives; fields are listed, states are read-only."""

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from pocs.common.api.serializers import StrictSerializer
from pocs.people.models import User
from pocs.reviews.choices import (
    DecisionOutcome,
    DecisionState,
    NextStep,
    ObservationKind,
    ObservationState,
    PackageState,
    ReadingSource,
    SignOffState,
    Slot,
    TaskKind,
    TaskState,
    Verdict,
    WaiverState,
)
from pocs.reviews.manifest import BUSINESS_FIELDS, CONCLUSION_FIELDS
from pocs.reviews.models import BusinessResult, Conclusion, Package


class ReviewPersonSerializer(serializers.ModelSerializer):
    """A person as reviews name them."""

    name = serializers.CharField(source="__str__", read_only=True)

    class Meta:
        model = User
        fields = ["id", "username", "name"]
        read_only_fields = fields


class ConclusionSerializer(serializers.ModelSerializer):
    class Meta:
        model = Conclusion
        fields = ["version", *CONCLUSION_FIELDS]
        read_only_fields = fields


class BusinessResultSerializer(serializers.ModelSerializer):
    class Meta:
        model = BusinessResult
        fields = ["version", *BUSINESS_FIELDS]
        read_only_fields = fields


def _texts(names: tuple[str, ...]) -> dict[str, Any]:
    return {name: serializers.CharField(required=False, allow_blank=True) for name in names}


ConclusionWriteSerializer = type("ConclusionWriteSerializer", (StrictSerializer,), _texts(CONCLUSION_FIELDS))
BusinessResultWriteSerializer = type(
    "BusinessResultWriteSerializer", (StrictSerializer,), _texts(BUSINESS_FIELDS)
)


class SignOffSerializer(serializers.Serializer):
    id = serializers.IntegerField()
    slot = serializers.ChoiceField(choices=Slot.choices)
    seat = serializers.IntegerField()
    state = serializers.ChoiceField(choices=SignOffState.choices)
    meaning = serializers.CharField()
    signer = ReviewPersonSerializer(allow_null=True)
    on_behalf_of = ReviewPersonSerializer(allow_null=True)
    signed_as = serializers.CharField()
    digest = serializers.CharField()
    comment = serializers.CharField()
    signed_at = serializers.DateTimeField(allow_null=True)
    expires_at = serializers.DateTimeField(allow_null=True)
    ended_at = serializers.DateTimeField(allow_null=True)
    ended_reason = serializers.CharField(source="ended_text")


class PackageSerializer(serializers.ModelSerializer):
    stale_reason = serializers.CharField(source="stale_text", read_only=True)
    project = serializers.IntegerField(source="project_id", read_only=True)
    state = serializers.ChoiceField(choices=PackageState.choices, read_only=True)
    frozen_by = ReviewPersonSerializer(read_only=True)
    signoffs = SignOffSerializer(many=True, read_only=True)
    stale_by = serializers.JSONField(read_only=True, allow_null=True)

    class Meta:
        model = Package
        fields = [
            "id",
            "project",
            "number",
            "state",
            "digest",
            "frozen_by",
            "frozen_at",
            "stale_at",
            "stale_by",
            "stale_reason",
            "signoffs",
        ]
        read_only_fields = fields


class DifferenceSerializer(serializers.Serializer):
    part = serializers.CharField()
    what = serializers.CharField()
    kind = serializers.ChoiceField(choices=["added", "removed", "changed"])
    before = serializers.CharField()
    after = serializers.CharField()


class PackageDetailSerializer(PackageSerializer):
    manifest = serializers.JSONField(read_only=True)
    differences = DifferenceSerializer(many=True, read_only=True)

    class Meta(PackageSerializer.Meta):
        fields = [*PackageSerializer.Meta.fields, "manifest", "differences"]
        read_only_fields = fields


class SignWriteSerializer(StrictSerializer):
    slot = serializers.ChoiceField(choices=Slot.choices)
    verdict = serializers.ChoiceField(choices=Verdict.choices)
    password = serializers.CharField(trim_whitespace=False, write_only=True)
    comment = serializers.CharField(required=False, allow_blank=True, default="")
    on_behalf_of = serializers.IntegerField(
        required=False, allow_null=True, help_text="the person who named the caller as deputy for today"
    )


class ReasonWriteSerializer(StrictSerializer):
    reason = serializers.CharField(allow_blank=True)


class WaiverSerializer(serializers.Serializer):
    id = serializers.IntegerField()
    project = serializers.IntegerField(source="project_id")
    guard = serializers.CharField()
    reason = serializers.CharField()
    scope = serializers.CharField()
    state = serializers.ChoiceField(choices=WaiverState.choices)
    requested_by = ReviewPersonSerializer()
    decided_by = ReviewPersonSerializer(allow_null=True)
    decided_at = serializers.DateTimeField(allow_null=True)
    decision_note = serializers.CharField()
    expires_at = serializers.DateTimeField()


class WaiverWriteSerializer(StrictSerializer):
    guard = serializers.CharField(max_length=4)
    reason = serializers.CharField()
    scope = serializers.CharField()
    expires_at = serializers.DateTimeField()


class NoteWriteSerializer(StrictSerializer):
    note = serializers.CharField(allow_blank=True)


class ConditionSerializer(serializers.Serializer):
    id = serializers.IntegerField()
    text = serializers.CharField()
    owner = ReviewPersonSerializer()
    due_on = serializers.DateField()
    closed_at = serializers.DateTimeField(allow_null=True)
    closed_by = ReviewPersonSerializer(allow_null=True)
    closing_evidence = serializers.CharField()
    closing_revision = serializers.IntegerField(source="closing_revision_id", allow_null=True)


class DecisionSerializer(serializers.Serializer):
    id = serializers.IntegerField()
    project = serializers.IntegerField(source="project_id")
    package = serializers.IntegerField(source="package_id")
    outcome = serializers.ChoiceField(choices=DecisionOutcome.choices)
    next_step = serializers.ChoiceField(choices=NextStep.choices)
    rationale = serializers.CharField()
    state = serializers.ChoiceField(choices=DecisionState.choices)
    proposed_by = ReviewPersonSerializer()
    confirmed_by = ReviewPersonSerializer(allow_null=True)
    confirmed_at = serializers.DateTimeField(allow_null=True)
    ended_at = serializers.DateTimeField(allow_null=True)
    ended_reason = serializers.CharField(source="ended_text")
    conditions = ConditionSerializer(many=True)


class ConditionWriteSerializer(StrictSerializer):
    text = serializers.CharField()
    owner = serializers.IntegerField()
    due_on = serializers.DateField()


class DecisionWriteSerializer(StrictSerializer):
    package = serializers.IntegerField(required=False, help_text="the newest one when left out")
    outcome = serializers.ChoiceField(choices=DecisionOutcome.choices)
    next_step = serializers.ChoiceField(choices=NextStep.choices)
    rationale = serializers.CharField()
    conditions = ConditionWriteSerializer(many=True, required=False, default=list)


class CloseWriteSerializer(StrictSerializer):
    evidence = serializers.CharField(allow_blank=True)
    revision = serializers.IntegerField(
        required=False, allow_null=True, help_text="the reviewed revision that shows it"
    )


class TaskSerializer(serializers.Serializer):
    kind = serializers.ChoiceField(choices=TaskKind.choices)
    version = serializers.IntegerField()
    owner = ReviewPersonSerializer(allow_null=True)
    due_on = serializers.DateField(allow_null=True)
    note = serializers.CharField()
    state = serializers.ChoiceField(choices=TaskState.choices)
    overdue = serializers.BooleanField()
    done_at = serializers.DateTimeField(allow_null=True)
    done_by = ReviewPersonSerializer(allow_null=True)


class TaskWriteSerializer(StrictSerializer):
    owner = serializers.IntegerField()
    due_on = serializers.DateField()
    note = serializers.CharField(required=False, allow_blank=True, default="")


class ReadingSerializer(serializers.Serializer):
    id = serializers.IntegerField()
    at = serializers.DateTimeField()
    value = serializers.DecimalField(max_digits=18, decimal_places=4)
    unit = serializers.CharField()
    note = serializers.CharField()
    source = serializers.ChoiceField(  # type: ignore[assignment]  # a field named as an attribute of fields
        choices=ReadingSource.choices
    )
    run = serializers.IntegerField(source="run_id", allow_null=True)
    entered_by = ReviewPersonSerializer()


class ObservationSerializer(serializers.Serializer):
    kind = serializers.ChoiceField(choices=ObservationKind.choices)
    version = serializers.IntegerField()
    observer = ReviewPersonSerializer(allow_null=True)
    state = serializers.ChoiceField(choices=ObservationState.choices)
    next_reading_on = serializers.DateField(allow_null=True)
    overdue = serializers.BooleanField()


class ObservationWriteSerializer(StrictSerializer):
    observer = serializers.IntegerField()
    next_reading_on = serializers.DateField(required=False, allow_null=True, default=None)


class ReadingWriteSerializer(StrictSerializer):
    value = serializers.DecimalField(max_digits=18, decimal_places=4)
    unit = serializers.CharField(max_length=40)
    note = serializers.CharField(required=False, allow_blank=True, default="")
    at = serializers.DateTimeField(required=False, allow_null=True, default=None)
    next_reading_on = serializers.DateField(required=False, allow_null=True, default=None)


@extend_schema_field(
    {"type": "array", "items": {"type": "number", "nullable": True}, "minItems": 2, "maxItems": 2}
)
class PercentilePairField(serializers.Field):
    """p50 and p95 in ms; null where nothing was observed."""

    def to_representation(self, value: Any) -> Any:
        return list(value)


class SheetRowSerializer(serializers.Serializer):
    label = serializers.CharField()  # type: ignore[assignment]  # a field named as an attribute of fields
    text = serializers.CharField()


class SheetFigureSerializer(serializers.Serializer):
    run = serializers.CharField()
    scenario = serializers.CharField()
    n = serializers.IntegerField(allow_null=True)
    attempted = serializers.IntegerField(allow_null=True)
    queue_wait_ms = PercentilePairField()
    prefill_ms = PercentilePairField()
    ttft_ms = PercentilePairField()
    tpot_ms = PercentilePairField()
    e2e_ms = PercentilePairField()
    error_rate = serializers.FloatField(allow_null=True)
    shares = serializers.DictField(child=serializers.FloatField(allow_null=True))


class SheetSignatureSerializer(serializers.Serializer):
    slot = serializers.CharField()
    meaning = serializers.CharField()
    state = serializers.CharField()
    state_label = serializers.CharField()
    signer = serializers.CharField()
    signed_at = serializers.CharField()
    comment = serializers.CharField()


class SheetSerializer(serializers.Serializer):
    """The one-page sheet in the order of O1."""

    language = serializers.CharField()
    project = serializers.CharField()
    goal = serializers.CharField()
    state = serializers.CharField()
    generated_at = serializers.CharField()
    package = serializers.CharField()
    digest = serializers.CharField()
    warnings = serializers.ListField(child=serializers.CharField())
    applies = serializers.CharField()
    applies_not = serializers.CharField()
    verification = SheetRowSerializer(many=True)
    figures = SheetFigureSerializer(many=True)
    figures_left_out = serializers.IntegerField()
    verdict = serializers.CharField()
    signatures = SheetSignatureSerializer(many=True)
    decision = serializers.CharField()
    confirmed_by = serializers.CharField()
    next_step = serializers.CharField()
    conditions = SheetRowSerializer(many=True)
    follow_through = SheetRowSerializer(many=True)
    observers = SheetRowSerializer(many=True)
    clipped = serializers.BooleanField()


class AnswerLineSerializer(serializers.Serializer):
    text = serializers.CharField()
    source = serializers.CharField()  # type: ignore[assignment]
    url = serializers.CharField()


class AnswerSerializer(serializers.Serializer):
    """One question; without lines it is not answered, and `place` is where it would be."""

    code = serializers.CharField()
    question = serializers.CharField()
    answered = serializers.BooleanField()
    lines = AnswerLineSerializer(many=True)
    place = serializers.CharField()


class AudienceViewSerializer(serializers.Serializer):
    """What one audience asks, in its order; `package` is the number of the package answered from."""

    audience = serializers.CharField()
    purpose = serializers.CharField()
    package = serializers.IntegerField(source="package.number", allow_null=True, default=None)
    answers = AnswerSerializer(many=True)
