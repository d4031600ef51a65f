"""Routes of the pages of people and teams."""

from django.urls import path

from pocs.people.ui import delegation_views, views

app_name = "people"
urlpatterns = [
    path("people/", views.people, name="people"),
    path("people/add/", views.person_add, name="person_add"),
    path("people/<int:pk>/", views.person, name="person"),
    path("people/<int:pk>/active/", views.person_active, name="person_active"),
    path("people/teams/add/", views.team_add, name="team_add"),
    path("people/delegations/", delegation_views.delegations, name="delegations"),
    path("people/delegations/<int:pk>/revoke/", delegation_views.delegation_revoke, name="delegation_revoke"),
]
