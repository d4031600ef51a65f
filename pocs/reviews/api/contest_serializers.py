"""What the API takes and gives of objections, the review policy, duties and the repeated run."""

from rest_framework import serializers

from pocs.common.api.serializers import StrictSerializer
from pocs.reviews.api.serializers import ReviewPersonSerializer
from pocs.reviews.choices import ObjectionState
from pocs.reviews.models import ReviewPolicy
from pocs.reviews.policy import POLICY_FIELDS


class ScheduleSerializer(serializers.Serializer):
    version = serializers.IntegerField()
    scenario = serializers.CharField(source="scenario_version", allow_null=True, default=None)
    target = serializers.IntegerField(source="target_id", allow_null=True)
    every_days = serializers.IntegerField(allow_null=True)
    next_on = serializers.DateField(allow_null=True)
    active = serializers.BooleanField()
    cost_per_hour = serializers.DecimalField(max_digits=12, decimal_places=4, allow_null=True)
    currency = serializers.CharField()
    last_run = serializers.IntegerField(source="last_run_id", allow_null=True)
    last_problem = serializers.CharField()


class ScheduleWriteSerializer(StrictSerializer):
    scenario = serializers.CharField(max_length=80, help_text="slug@version")
    target = serializers.IntegerField()
    every_days = serializers.IntegerField()
    next_on = serializers.DateField()
    active = serializers.BooleanField(required=False, default=True)
    cost_per_hour = serializers.DecimalField(
        max_digits=12, decimal_places=4, required=False, allow_null=True, default=None
    )
    currency = serializers.CharField(max_length=8, required=False, allow_blank=True, default="")


class ObjectionSerializer(serializers.Serializer):
    id = serializers.IntegerField()
    package = serializers.IntegerField(source="package_id")
    revision = serializers.IntegerField(source="revision_id", allow_null=True)
    key = serializers.CharField()
    line = serializers.CharField()
    quote = serializers.CharField()
    rule = serializers.CharField()
    statement = serializers.CharField()
    state = serializers.ChoiceField(choices=ObjectionState.choices)
    raised_by = ReviewPersonSerializer()
    created_at = serializers.DateTimeField()
    answer = serializers.CharField()
    answered_by = ReviewPersonSerializer(allow_null=True)
    answered_at = serializers.DateTimeField(allow_null=True)
    ruling = serializers.CharField()
    ruled_by = ReviewPersonSerializer(allow_null=True)
    ended_at = serializers.DateTimeField(allow_null=True)


class ObjectionWriteSerializer(StrictSerializer):
    key = serializers.CharField(max_length=800, help_text="a line of `packages/{id}/lines/`")
    rule = serializers.CharField(max_length=8, help_text="the code of a gate, such as G6")
    statement = serializers.CharField(allow_blank=True)


class AnswerWriteSerializer(StrictSerializer):
    answer = serializers.CharField(allow_blank=True)


class RulingWriteSerializer(StrictSerializer):
    upheld = serializers.BooleanField()
    ruling = serializers.CharField(allow_blank=True)


class CitationSerializer(serializers.Serializer):
    key = serializers.CharField()
    part = serializers.CharField()
    label = serializers.CharField()  # type: ignore[assignment]  # a field named as an attribute of fields
    text = serializers.CharField()


class PolicySerializer(serializers.ModelSerializer):
    class Meta:
        model = ReviewPolicy
        fields = ["version", *POLICY_FIELDS]
        read_only_fields = fields


PolicyWriteSerializer = type(
    "PolicyWriteSerializer",
    (StrictSerializer,),
    {name: serializers.IntegerField(required=False) for name in POLICY_FIELDS},
)


class DutySerializer(serializers.Serializer):
    key = serializers.CharField()
    kind = serializers.CharField(help_text="condition, task or observation")
    project = serializers.IntegerField(source="project.pk")
    title = serializers.CharField()
    owner = ReviewPersonSerializer(allow_null=True)
    due_on = serializers.DateField(allow_null=True)


class HandOverSerializer(StrictSerializer):
    items = serializers.ListField(child=serializers.CharField(max_length=40))
    to = serializers.IntegerField()
    reason = serializers.CharField(allow_blank=True)
