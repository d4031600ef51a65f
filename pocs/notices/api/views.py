"""Notices over REST: one's own notices, preferences and webhooks with their deliveries."""

from typing import Any

from django.urls import reverse
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from pocs.common.api.conditional import version_to_change
from pocs.common.api.serializers import ProblemSerializer
from pocs.common.api.views import ActorAPIView, ActorGenericView
from pocs.notices import selectors, services
from pocs.notices.api.serializers import (
    DeliverySerializer,
    NoticeSerializer,
    NoticeSettingsSerializer,
    NoticeSettingsWriteSerializer,
    WebhookSecretSerializer,
    WebhookSerializer,
    WebhookWriteSerializer,
)
from pocs.notices.models import NoticeSettings, Webhook

IF_MATCH = OpenApiParameter(
    "If-Match", str, OpenApiParameter.HEADER, required=True, description="The ETag of what you have read."
)
CHANGED = {412: ProblemSerializer, 428: ProblemSerializer}


def _checked(serializer: Any) -> dict[str, Any]:
    serializer.is_valid(raise_exception=True)
    return dict(serializer.validated_data)


class NoticesView(ActorGenericView):
    serializer_class = NoticeSerializer

    @extend_schema(responses=NoticeSerializer(many=True), summary="What I was told, newest first")
    def get(self, request: Request) -> Response:
        return self.page(selectors.notices_of(self.actor))


class NoticeSettingsView(ActorAPIView):
    @extend_schema(responses=NoticeSettingsSerializer, summary="How I am told")
    def get(self, request: Request) -> Response:
        chosen = selectors.settings_of(self.actor)
        return self.answer(chosen, settings_data(chosen))

    @extend_schema(
        request=NoticeSettingsWriteSerializer,
        responses={200: NoticeSettingsSerializer, 400: ProblemSerializer} | CHANGED,
        parameters=[IF_MATCH],
        summary="Choose how I am told; what is not sent stays",
    )
    def patch(self, request: Request) -> Response:
        version = version_to_change(request, selectors.settings_of(self.actor))
        given = _checked(NoticeSettingsWriteSerializer(data=request.data))
        chosen = services.notice_settings_set(actor=self.actor, version=version, **given)
        return self.answer(chosen, settings_data(chosen))


def settings_data(chosen: NoticeSettings) -> dict[str, Any]:
    """The choices in the form of `NoticeSettingsSerializer`."""
    data = {
        "kinds": selectors.kind_choices(chosen),
        "digest_on": chosen.digest_on,
        "digest_hour": chosen.digest_hour,
        "version": chosen.version,
    }
    return dict(NoticeSettingsSerializer(data).data)


class WebhooksView(ActorGenericView):
    serializer_class = WebhookSerializer

    @extend_schema(responses=WebhookSerializer(many=True), summary="Webhooks that I keep")
    def get(self, request: Request) -> Response:
        return self.page(selectors.webhooks_of(self.actor))

    @extend_schema(
        request=WebhookWriteSerializer,
        responses={201: WebhookSecretSerializer, 400: ProblemSerializer},
        summary="Add a webhook; the answer shows its secret, this once",
    )
    def post(self, request: Request) -> Response:
        given = _checked(WebhookWriteSerializer(data=request.data))
        hook, secret = services.webhook_create(actor=self.actor, **given)
        url = reverse("api-webhook", args=[hook.pk])
        return self.answer(hook, _with_secret(hook, secret), 201, Location=url)


class WebhookView(ActorAPIView):
    @extend_schema(responses=WebhookSerializer, summary="One webhook")
    def get(self, request: Request, pk: int) -> Response:
        hook = selectors.webhook_get(self.actor, pk)
        return self.answer(hook, WebhookSerializer(hook).data)

    @extend_schema(
        request=WebhookSerializer,
        responses={200: WebhookSerializer, 400: ProblemSerializer} | CHANGED,
        parameters=[IF_MATCH],
        summary="Change a webhook; what is not sent stays",
    )
    def patch(self, request: Request, pk: int) -> Response:
        hook = selectors.webhook_get(self.actor, pk)
        version = self.version_to_change(hook)
        given = _checked(WebhookSerializer(data=request.data, partial=True))
        saved = services.webhook_update(actor=self.actor, webhook=hook, version=version, **given)
        return self.answer(saved, WebhookSerializer(saved).data)

    @extend_schema(responses={204: None}, summary="Take a webhook away with its log")
    def delete(self, request: Request, pk: int) -> Response:
        services.webhook_delete(actor=self.actor, webhook=selectors.webhook_get(self.actor, pk))
        return Response(status=204)


class WebhookSecretView(ActorAPIView):
    @extend_schema(
        request=None, responses=WebhookSecretSerializer, summary="Renew the secret; shown this once"
    )
    def post(self, request: Request, pk: int) -> Response:
        hook, secret = services.webhook_secret_renew(
            actor=self.actor, webhook=selectors.webhook_get(self.actor, pk)
        )
        return self.answer(hook, _with_secret(hook, secret))


class WebhookTryView(ActorAPIView):
    @extend_schema(request=None, responses={202: DeliverySerializer}, summary="Send a trial message")
    def post(self, request: Request, pk: int) -> Response:
        hook = selectors.webhook_get(self.actor, pk)
        delivery = services.webhook_try(actor=self.actor, webhook=hook)
        return Response(DeliverySerializer(delivery).data, status=202)


class DeliveriesView(ActorGenericView):
    serializer_class = DeliverySerializer

    @extend_schema(responses=DeliverySerializer(many=True), summary="The log of a webhook, newest first")
    def get(self, request: Request, pk: int) -> Response:
        return self.page(selectors.webhook_get(self.actor, pk).deliveries.order_by("-id"))


class DeliveryRepeatView(ActorAPIView):
    @extend_schema(request=None, responses={202: DeliverySerializer}, summary="Send an ended delivery again")
    def post(self, request: Request, pk: int) -> Response:
        delivery = services.delivery_repeat(actor=self.actor, delivery=selectors.delivery_get(self.actor, pk))
        return Response(DeliverySerializer(delivery).data, status=202)


def _with_secret(hook: Webhook, secret: str) -> dict[str, Any]:
    return {**WebhookSerializer(hook).data, "secret": secret}
