"""Routes of the pages of projects."""

from django.urls import path

from pocs.projects.ui import (
    audit_views,
    matrix_builder_views,
    plan_views,
    scenario_views,
    token_views,
    views,
    workload_views,
)

app_name = "projects"
urlpatterns = [
    path("projects/", views.project_list, name="list"),
    path("projects/new/", views.create, name="create"),
    path("projects/<int:pk>/", views.detail, name="detail"),
    path("projects/<int:pk>/edit/", views.edit, name="edit"),
    path("projects/<int:pk>/clone/", views.clone, name="clone"),
    path("projects/<int:pk>/advance/", views.advance, name="advance"),
    path("projects/<int:pk>/cancel/", views.cancel, name="cancel"),
    path("projects/<int:pk>/history/", views.history, name="history"),
    path("projects/<int:pk>/members/", views.members, name="members"),
    path("projects/<int:pk>/members/remove/", views.member_remove, name="member_remove"),
    path("projects/<int:pk>/affected/", plan_views.affected, name="affected"),
    path("projects/<int:pk>/affected/<int:item>/", plan_views.affected_item, name="affected_item"),
    path("projects/<int:pk>/affected/<int:item>/remove/", plan_views.affected_remove, name="affected_remove"),
    path("projects/<int:pk>/readiness/", plan_views.readiness, name="readiness"),
    path("projects/<int:pk>/declarations/", plan_views.declarations, name="declarations"),
    path("projects/<int:pk>/scenarios/", scenario_views.scenarios, name="scenarios"),
    path("projects/<int:pk>/scenarios/new/", scenario_views.scenario_create, name="scenario_create"),
    path(
        "projects/<int:pk>/scenarios/missing/",
        matrix_builder_views.missing_scenarios,
        name="missing_scenarios",
    ),
    path("projects/<int:pk>/scenarios/<slug:slug>/", scenario_views.scenario, name="scenario"),
    path("projects/<int:pk>/scenarios/<slug:slug>/edit/", scenario_views.scenario_edit, name="scenario_edit"),
    path(
        "projects/<int:pk>/scenarios/<slug:slug>/<int:number>/",
        scenario_views.scenario_version,
        name="scenario_version",
    ),
    path(
        "projects/<int:pk>/scenarios/<slug:slug>/<int:number>/state/",
        scenario_views.version_state,
        name="scenario_version_state",
    ),
    path("projects/<int:pk>/workloads/", workload_views.workloads, name="workloads"),
    path("projects/<int:pk>/workloads/<int:file>/", workload_views.workload, name="workload"),
    path(
        "projects/<int:pk>/workloads/<int:file>/state/", workload_views.workload_state, name="workload_state"
    ),
    path("projects/<int:pk>/tokens/", token_views.tokens, name="tokens"),
    path("projects/<int:pk>/tokens/<int:token>/revoke/", token_views.token_revoke, name="token_revoke"),
    path("audit/", audit_views.organisation_audit, name="audit"),
]
