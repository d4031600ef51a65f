"""Routes of people in the API."""

from django.urls import path

from pocs.people.api import views

urlpatterns = [
    path("me/", views.MeView.as_view(), name="api-me"),
    path("people/", views.PeopleView.as_view(), name="api-people"),
    path("teams/", views.TeamsView.as_view(), name="api-teams"),
]
