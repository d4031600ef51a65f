"""Routes of people in the API."""

from django.urls import path

from pocs.people.api import delegation_views, views

urlpatterns = [
    path("me/", views.MeView.as_view(), name="api-me"),
    path("people/", views.PeopleView.as_view(), name="api-people"),
    path("teams/", views.TeamsView.as_view(), name="api-teams"),
    path("delegations/", delegation_views.DelegationsView.as_view(), name="api-delegations"),
    path(
        "delegations/<int:pk>/revoke/",
        delegation_views.DelegationRevokeView.as_view(),
        name="api-delegation-revoke",
    ),
]
