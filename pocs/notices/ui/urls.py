"""Routes of the pages of notices."""

from django.urls import path

from pocs.notices.ui import views

app_name = "notices"
urlpatterns = [
    path("notifications/", views.notice_list, name="list"),
    path("notifications/preferences/", views.preferences, name="preferences"),
    path("notifications/webhooks/", views.webhooks, name="webhooks"),
    path("notifications/webhooks/<int:pk>/", views.webhook, name="webhook"),
    path("notifications/webhooks/<int:pk>/secret/", views.webhook_secret, name="webhook_secret"),
    path("notifications/webhooks/<int:pk>/try/", views.webhook_try, name="webhook_try"),
    path("notifications/webhooks/<int:pk>/delete/", views.webhook_delete, name="webhook_delete"),
    path("notifications/deliveries/<int:pk>/again/", views.delivery_repeat, name="delivery_repeat"),
]
