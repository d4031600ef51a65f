"""Routes of runs, targets and matrices in the API."""

from django.urls import path

from pocs.runs.api import experiment_views, record_views, target_views, views

urlpatterns = [
    path("projects/<int:pk>/runs/", views.RunsView.as_view(), name="api-runs"),
    path("projects/<int:pk>/targets/", target_views.TargetsView.as_view(), name="api-targets"),
    path(
        "projects/<int:pk>/experiments/", experiment_views.ExperimentsView.as_view(), name="api-experiments"
    ),
    path("projects/<int:pk>/baselines/", experiment_views.BaselinesView.as_view(), name="api-baselines"),
    path("experiments/<int:pk>/", experiment_views.ExperimentView.as_view(), name="api-experiment"),
    path(
        "experiments/<int:pk>/cancel/",
        experiment_views.ExperimentCancelView.as_view(),
        name="api-experiment-cancel",
    ),
    path("baselines/<int:pk>/regression/", experiment_views.RegressionView.as_view(), name="api-regression"),
    path("projects/<int:pk>/matrices/", target_views.MatricesView.as_view(), name="api-matrices"),
    path("runs/<int:pk>/", views.RunView.as_view(), name="api-run"),
    path("runs/<int:pk>/requests/", views.RequestsView.as_view(), name="api-run-requests"),
    path("runs/<int:pk>/records/", record_views.RunRecordsView.as_view(), name="api-run-records"),
    path("runs/<int:pk>/export/<str:form>/", record_views.RunExportView.as_view(), name="api-run-export"),
    path("runs/<int:pk>/report/", record_views.RunReportView.as_view(), name="api-run-report"),
    path("runs/<int:pk>/cancel/", views.RunCancelView.as_view(), name="api-run-cancel"),
    path("runs/<int:pk>/supersede/", views.RunSupersedeView.as_view(), name="api-run-supersede"),
    path("runs/<int:pk>/artifacts/<str:name>/", views.ArtifactView.as_view(), name="api-run-artifact"),
    path("targets/<int:pk>/", target_views.TargetView.as_view(), name="api-target"),
    path("targets/<int:pk>/check/", target_views.TargetCheckView.as_view(), name="api-target-check"),
    path("targets/<int:pk>/reports/", target_views.TargetReportsView.as_view(), name="api-target-reports"),
    path(
        "targets/<int:pk>/conformance/",
        target_views.TargetConformanceView.as_view(),
        name="api-target-conformance",
    ),
    path(
        "targets/<int:pk>/candidates/",
        target_views.TargetCandidatesView.as_view(),
        name="api-target-candidates",
    ),
    path("matrices/<int:pk>/", target_views.MatrixView.as_view(), name="api-matrix"),
    path("matrices/<int:pk>/cancel/", target_views.MatrixCancelView.as_view(), name="api-matrix-cancel"),
    path("schemas/poc-run/1/", views.PocRunSchemaView.as_view(), name="api-schema-poc-run"),
]
