"""Routes of projects in the API."""

from django.urls import path

from pocs.projects.api import audit_views, plan_views, scenario_views, token_views, views, workload_views

urlpatterns = [
    path("projects/", views.ProjectsView.as_view(), name="api-projects"),
    path("projects/<int:pk>/", views.ProjectView.as_view(), name="api-project"),
    path("projects/<int:pk>/clone/", views.CloneView.as_view(), name="api-clone"),
    path("project-templates/", views.TemplatesView.as_view(), name="api-project-templates"),
    path("projects/<int:pk>/gates/", views.GatesView.as_view(), name="api-gates"),
    path("projects/<int:pk>/advance/", views.AdvanceView.as_view(), name="api-advance"),
    path("projects/<int:pk>/cancel/", views.CancelView.as_view(), name="api-cancel"),
    path("projects/<int:pk>/history/", views.HistoryView.as_view(), name="api-history"),
    path("projects/<int:pk>/members/", views.MembersView.as_view(), name="api-members"),
    path("projects/<int:pk>/members/<int:member>/", views.MemberView.as_view(), name="api-member"),
    path("projects/<int:pk>/tokens/", token_views.TokensView.as_view(), name="api-tokens"),
    path(
        "projects/<int:pk>/tokens/<int:token>/revoke/",
        token_views.TokenRevokeView.as_view(),
        name="api-token-revoke",
    ),
    path("audit/", audit_views.AuditView.as_view(), name="api-audit"),
    path("audit/verification/", audit_views.VerificationView.as_view(), name="api-audit-verification"),
    path("projects/<int:pk>/affected/", plan_views.AffectedView.as_view(), name="api-affected"),
    path(
        "projects/<int:pk>/affected/<int:item>/",
        plan_views.AffectedItemView.as_view(),
        name="api-affected-item",
    ),
    path("projects/<int:pk>/readiness/", plan_views.ReadinessView.as_view(), name="api-readiness"),
    path(
        "projects/<int:pk>/readiness/<str:kind>/",
        plan_views.ReadinessItemView.as_view(),
        name="api-readiness-item",
    ),
    path("projects/<int:pk>/declarations/", plan_views.DeclarationsView.as_view(), name="api-declarations"),
    path(
        "projects/<int:pk>/declarations/<str:kind>/",
        plan_views.DeclarationView.as_view(),
        name="api-declaration",
    ),
    path("projects/<int:pk>/workloads/", workload_views.WorkloadsView.as_view(), name="api-workloads"),
    path(
        "projects/<int:pk>/workloads/<int:file>/", workload_views.WorkloadView.as_view(), name="api-workload"
    ),
    path(
        "projects/<int:pk>/workloads/<int:file>/confirm/",
        workload_views.WorkloadConfirmView.as_view(),
        name="api-workload-confirm",
    ),
    path("projects/<int:pk>/scenarios/", scenario_views.ScenariosView.as_view(), name="api-scenarios"),
    path(
        "projects/<int:pk>/scenarios/<slug:slug>/<int:number>/",
        scenario_views.ScenarioVersionView.as_view(),
        name="api-scenario-version",
    ),
    path(
        "projects/<int:pk>/scenarios/<slug:slug>/<int:number>/approve/",
        scenario_views.ApproveView.as_view(),
        name="api-scenario-approve",
    ),
    path(
        "projects/<int:pk>/scenarios/<slug:slug>/<int:number>/retire/",
        scenario_views.RetireView.as_view(),
        name="api-scenario-retire",
    ),
]
