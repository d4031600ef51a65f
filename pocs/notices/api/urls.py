"""Routes of notices in the API."""

from django.urls import path

from pocs.notices.api import views

urlpatterns = [
    path("notices/", views.NoticesView.as_view(), name="api-notices"),
    path("notices/preferences/", views.NoticeSettingsView.as_view(), name="api-notice-preferences"),
    path("webhooks/", views.WebhooksView.as_view(), name="api-webhooks"),
    path("webhooks/<int:pk>/", views.WebhookView.as_view(), name="api-webhook"),
    path("webhooks/<int:pk>/secret/", views.WebhookSecretView.as_view(), name="api-webhook-secret"),
    path("webhooks/<int:pk>/try/", views.WebhookTryView.as_view(), name="api-webhook-try"),
    path("webhooks/<int:pk>/deliveries/", views.DeliveriesView.as_view(), name="api-webhook-deliveries"),
    path("deliveries/<int:pk>/again/", views.DeliveryRepeatView.as_view(), name="api-delivery-again"),
]
