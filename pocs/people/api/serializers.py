"""People and teams as the API shows them."""

from rest_framework import serializers

from pocs.common.api.serializers import StrictSerializer
from pocs.people.models import Team, User
from pocs.people.roles import OrganisationRole


class TeamSerializer(serializers.ModelSerializer):
    class Meta:
        model = Team
        fields = ["id", "name", "contact"]


class PersonSerializer(serializers.ModelSerializer):
    name = serializers.CharField(source="__str__", read_only=True)
    role = serializers.ChoiceField(choices=OrganisationRole.choices, source="organisation_role")

    class Meta:
        model = User
        fields = ["id", "username", "name", "role", "team", "is_active"]


class MeSerializer(serializers.Serializer):
    """Who the API takes the caller for."""

    kind = serializers.ChoiceField(choices=["user", "token"])
    label = serializers.CharField()  # type: ignore[assignment]
    user = serializers.IntegerField(source="user_id")
    token = serializers.IntegerField(source="token_id", allow_null=True)
    project = serializers.IntegerField(source="token_project_id", allow_null=True)
    scopes = serializers.ListField(child=serializers.CharField(), source="token_scopes")
    organisation = serializers.IntegerField(source="organisation_id")


class DelegationSerializer(serializers.Serializer):
    id = serializers.IntegerField()
    principal = serializers.IntegerField(source="principal_id")
    principal_name = serializers.CharField(source="principal.__str__")
    deputy = serializers.IntegerField(source="deputy_id")
    deputy_name = serializers.CharField(source="deputy.__str__")
    starts_on = serializers.DateField()
    ends_on = serializers.DateField()
    reason = serializers.CharField()
    place = serializers.ChoiceField(choices=["coming", "current", "past", "revoked"])
    revoked_at = serializers.DateTimeField(allow_null=True)


class DelegationWriteSerializer(StrictSerializer):
    deputy = serializers.IntegerField()
    starts_on = serializers.DateField()
    ends_on = serializers.DateField()
    reason = serializers.CharField(max_length=300)
