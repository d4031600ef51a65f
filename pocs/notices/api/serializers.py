"""Notices, preferences and webhooks as the API shows and takes them."""

from rest_framework import serializers

from pocs.common.api.serializers import StrictSerializer
from pocs.notices.choices import Channel, DeliveryState
from pocs.notices.models import Notice, WebhookDelivery


class NoticeSerializer(serializers.ModelSerializer):
    """Texts are in the language of the request where the system gave the words."""

    text = serializers.CharField(source="shown_text", read_only=True)
    detail = serializers.CharField(source="shown_detail", read_only=True)

    class Meta:
        model = Notice
        fields = [
            "id", "kind", "text", "detail", "path", "project", "due_on", "channel", "created_at", "mailed_at",
        ]  # fmt: skip
        read_only_fields = fields


class KindSerializer(serializers.Serializer):
    key = serializers.CharField()
    label = serializers.CharField()  # type: ignore[assignment]
    channel = serializers.ChoiceField(choices=Channel.choices)
    chosen = serializers.BooleanField()


class NoticeSettingsSerializer(serializers.Serializer):
    """Channels by kind with those in force, and the digest; `version` 0: nothing was chosen yet."""

    kinds = KindSerializer(many=True)
    digest_on = serializers.BooleanField()
    digest_hour = serializers.IntegerField()
    version = serializers.IntegerField()


class NoticeSettingsWriteSerializer(StrictSerializer):
    """What is not sent stays as it is."""

    channels = serializers.DictField(child=serializers.CharField(), required=False)
    digest_on = serializers.BooleanField(required=False)
    digest_hour = serializers.IntegerField(required=False)


class WebhookSerializer(StrictSerializer):
    """A webhook; its secret is only in the answer that made or renewed it."""

    id = serializers.IntegerField(read_only=True)
    name = serializers.CharField(max_length=80)
    url = serializers.CharField(max_length=500)
    kinds = serializers.ListField(child=serializers.CharField(), required=False)
    active = serializers.BooleanField(required=False)
    for_organisation = serializers.SerializerMethodField()
    failures = serializers.IntegerField(read_only=True)
    disabled_at = serializers.DateTimeField(read_only=True)
    version = serializers.IntegerField(read_only=True)
    created_at = serializers.DateTimeField(read_only=True)

    def get_for_organisation(self, hook: object) -> bool:
        return getattr(hook, "owner_id", None) is None


class WebhookWriteSerializer(StrictSerializer):
    name = serializers.CharField(max_length=80)
    url = serializers.CharField(max_length=500)
    kinds = serializers.ListField(child=serializers.CharField(), required=False, default=list)
    for_organisation = serializers.BooleanField(required=False, default=False)


class WebhookSecretSerializer(WebhookSerializer):
    """The same with its secret, this once."""

    secret = serializers.CharField(read_only=True)


class DeliverySerializer(serializers.ModelSerializer):
    state = serializers.ChoiceField(choices=DeliveryState.choices, read_only=True)

    class Meta:
        model = WebhookDelivery
        fields = [
            "id", "uuid", "kind", "body", "state", "attempts", "next_attempt_at", "status", "error",
            "duration_ms", "created_at", "ended_at",
        ]  # fmt: skip
        read_only_fields = fields
