"""Serializers that refuse what they do not know, and the schema of a problem."""

from collections.abc import Mapping
from typing import Any

from django.utils.translation import gettext as _
from rest_framework import serializers


class StrictSerializer(serializers.Serializer):
    """Refuses unknown fields and writes to read-only ones, instead of dropping them silently."""

    def to_internal_value(self, data: Any) -> Any:
        if isinstance(data, Mapping):
            wrong: dict[str, list[serializers.ErrorDetail]] = {}
            for name in data:
                field = self.fields.get(name)
                if field is None:
                    wrong[name] = [serializers.ErrorDetail(_("There is no such field."), code="unknown")]
                elif field.read_only:
                    text = _("This field cannot be written here.")
                    wrong[name] = [serializers.ErrorDetail(text, code="read_only")]
            if wrong:
                raise serializers.ValidationError(wrong)
        return super().to_internal_value(data)


class FieldErrorSerializer(serializers.Serializer):
    pointer = serializers.CharField()
    code = serializers.CharField()
    detail = serializers.CharField()


class MissingSerializer(serializers.Serializer):
    """One unmet guard, as in problems and in a project's gates."""

    guard = serializers.CharField()
    code = serializers.CharField()
    object = serializers.CharField()
    detail = serializers.CharField(source="text")
    url = serializers.CharField()


class ProblemSerializer(serializers.Serializer):
    """RFC 9457 problem document."""

    type = serializers.CharField()
    title = serializers.CharField()
    status = serializers.IntegerField()
    detail = serializers.CharField()
    request_id = serializers.CharField()
    errors = FieldErrorSerializer(many=True, required=False)  # type: ignore[assignment]
    missing = MissingSerializer(many=True, required=False)
