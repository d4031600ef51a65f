"""Projects, their plan and their scenarios as the API shows and takes them."""

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from pocs.common.api.serializers import MissingSerializer, StrictSerializer
from pocs.common.audit import object_name, verb_name
from pocs.common.models import AuditEntry
from pocs.people.roles import ProjectRole
from pocs.projects.blueprints import ScenarioDraft
from pocs.projects.choices import (
    AffectedKind,
    DeclarationKind,
    OptimisationGoal,
    ProjectState,
    ReadinessKind,
    ScenarioKind,
    ScenarioState,
)
from pocs.projects.gates import GateStatus


class ProjectSerializer(StrictSerializer):
    """A project; `state` moves only by `advance/`."""

    id = serializers.IntegerField(read_only=True)
    name = serializers.CharField(max_length=160)
    goal = serializers.CharField(required=False, allow_blank=True)
    optimisation_goal = serializers.ChoiceField(
        choices=OptimisationGoal.choices, required=False, allow_blank=True
    )
    state = serializers.ChoiceField(choices=ProjectState.choices, read_only=True)
    where_applies = serializers.CharField(required=False, allow_blank=True)
    where_not = serializers.CharField(required=False, allow_blank=True)
    demo_environment_only = serializers.BooleanField(required=False)
    environment_note = serializers.CharField(required=False, allow_blank=True)
    supplier = serializers.CharField(required=False, allow_blank=True)
    budget_basis = serializers.CharField(required=False, allow_blank=True)
    responsibility_boundary = serializers.CharField(required=False, allow_blank=True)
    template = serializers.CharField(required=False, allow_blank=True, max_length=20)
    cloned_from = serializers.IntegerField(source="cloned_from_id", read_only=True, allow_null=True)
    version = serializers.IntegerField(read_only=True)
    created_at = serializers.DateTimeField(read_only=True)
    updated_at = serializers.DateTimeField(read_only=True)


class CloneSerializer(StrictSerializer):
    """The clone of a project: its name, and whether the roles come along."""

    name = serializers.CharField(max_length=160)
    with_members = serializers.BooleanField(required=False, default=False)


class TemplateScenarioSerializer(serializers.Serializer):
    slug = serializers.CharField()
    name = serializers.CharField()
    kind = serializers.ChoiceField(choices=ScenarioKind.choices)
    spec = serializers.SerializerMethodField()

    @extend_schema_field(serializers.DictField())
    def get_spec(self, draft: ScenarioDraft) -> dict[str, Any]:
        return draft.spec.as_json()


class TemplateSerializer(serializers.Serializer):
    """What a project begins with when it is made from this template."""

    key = serializers.CharField()
    name = serializers.CharField()
    purpose = serializers.CharField()
    goal = serializers.CharField()
    scenarios = TemplateScenarioSerializer(many=True)
    readiness = serializers.DictField(child=serializers.CharField())
    declarations = serializers.DictField(child=serializers.CharField())


class GateSerializer(serializers.Serializer):
    """One gate of a project with what is missing."""

    code = serializers.CharField(source="gate.code")
    title = serializers.CharField(source="gate.title")
    before = serializers.ChoiceField(source="gate.before", choices=ProjectState.choices)
    met = serializers.BooleanField()
    waived = serializers.BooleanField()
    missing = MissingSerializer(many=True)

    def to_representation(self, instance: GateStatus) -> dict[str, Any]:
        data = super().to_representation(instance)
        data["before"] = str(instance.gate.before.value)
        return data


class GatesSerializer(serializers.Serializer):
    state = serializers.ChoiceField(choices=ProjectState.choices)
    next_state = serializers.ChoiceField(choices=ProjectState.choices, allow_null=True)
    missing = MissingSerializer(many=True)
    gates = GateSerializer(many=True)


class AdvanceSerializer(StrictSerializer):
    to = serializers.CharField(max_length=20)


class CancelSerializer(StrictSerializer):
    reason = serializers.CharField()


class ScenarioSerializer(StrictSerializer):
    """One version of a scenario; POST of a known `slug` makes its next version."""

    id = serializers.IntegerField(read_only=True)
    slug = serializers.CharField(source="scenario.slug", max_length=60)
    version = serializers.IntegerField(source="number", read_only=True)
    name = serializers.CharField(source="scenario.name", max_length=160, required=False)
    kind = serializers.ChoiceField(source="scenario.kind", choices=ScenarioKind.choices, required=False)
    state = serializers.ChoiceField(choices=ScenarioState.choices, read_only=True)
    spec = serializers.JSONField()
    digest = serializers.CharField(read_only=True)
    created_at = serializers.DateTimeField(read_only=True)
    approved_at = serializers.DateTimeField(read_only=True)


class MemberSerializer(StrictSerializer):
    id = serializers.IntegerField(read_only=True)
    user = serializers.IntegerField(source="user_id")
    username = serializers.CharField(source="user.username", read_only=True)
    name = serializers.CharField(source="user.__str__", read_only=True)
    role = serializers.ChoiceField(choices=ProjectRole.choices)


class AffectedSerializer(StrictSerializer):
    id = serializers.IntegerField(read_only=True)
    kind = serializers.ChoiceField(choices=AffectedKind.choices)
    name = serializers.CharField(max_length=200)
    owner = serializers.CharField(max_length=200, required=False, allow_blank=True)
    note = serializers.CharField(max_length=500, required=False, allow_blank=True)
    version = serializers.IntegerField(read_only=True)


class ReadinessSerializer(StrictSerializer):
    """One readiness point; `version` 0 means not stated yet."""

    kind = serializers.ChoiceField(choices=ReadinessKind.choices, read_only=True)
    ready = serializers.BooleanField()
    basis = serializers.CharField(required=False, allow_blank=True)
    team = serializers.IntegerField(source="team_id", required=False, allow_null=True)
    version = serializers.IntegerField(read_only=True)


class DeclarationSerializer(StrictSerializer):
    """One declaration; `version` 0 means not made yet."""

    kind = serializers.ChoiceField(choices=DeclarationKind.choices, read_only=True)
    statement = serializers.CharField(allow_blank=True)
    source = serializers.CharField(  # type: ignore[assignment]
        max_length=300, required=False, allow_blank=True
    )
    version = serializers.IntegerField(read_only=True)


class HistorySerializer(serializers.ModelSerializer):
    """One audit entry; `hash` covers all of it and `previous_hash`."""

    verb_text = serializers.SerializerMethodField()
    object_text = serializers.SerializerMethodField()

    class Meta:
        model = AuditEntry
        fields = [
            "sequence",
            "at",
            "actor",
            "verb",
            "verb_text",
            "object_type",
            "object_id",
            "object_label",
            "object_text",
            "before",
            "after",
            "previous_hash",
            "hash",
        ]

    def get_object_text(self, entry: AuditEntry) -> str:
        return object_name(entry) or entry.object_label

    def get_verb_text(self, entry: AuditEntry) -> str:
        return verb_name(entry.verb)
