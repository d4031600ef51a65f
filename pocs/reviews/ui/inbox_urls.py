"""The first page after sign-in: what waits for me."""

from django.urls import path

from pocs.reviews.ui.inbox_views import inbox

urlpatterns = [path("", inbox, name="inbox")]
