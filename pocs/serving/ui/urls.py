"""Pages of live inference."""

from django.urls import path

from pocs.serving.ui import playground, views

app_name = "serving"

urlpatterns = [
    path("projects/<int:pk>/engine/", views.engine, name="engine"),
    path("projects/<int:pk>/engine/state/", views.engine_state, name="engine_state"),
    path("projects/<int:pk>/playground/", playground.playground, name="playground"),
]
