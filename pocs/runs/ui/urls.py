"""Pages of runs, the matrix and targets."""

from django.urls import path

from pocs.runs.ui import (
    answer_views,
    compare_views,
    experiment_views,
    matrix_views,
    record_views,
    target_views,
    technique_views,
    views,
)

app_name = "runs"

urlpatterns = [
    path("runs/<int:pk>/", views.run_detail, name="detail"),
    path("runs/<int:pk>/requests/", views.run_requests, name="requests"),
    path("runs/<int:pk>/requests/<int:index>/", views.run_request, name="request"),
    path("runs/<int:pk>/records/", record_views.run_records, name="records"),
    path("runs/<int:pk>/export/<str:form>/", record_views.run_export, name="export"),
    path("runs/<int:pk>/report/", record_views.run_report, name="report"),
    path("runs/<int:pk>/cancel/", views.run_cancel, name="cancel"),
    path("projects/<int:pk>/runs/", views.run_list, name="list"),
    path("projects/<int:pk>/runs/start/", views.run_start, name="start"),
    path("projects/<int:pk>/runs/compare/", compare_views.compare, name="compare"),
    path("projects/<int:pk>/experiments/", experiment_views.experiments, name="experiments"),
    path("projects/<int:pk>/experiments/new/", experiment_views.experiment_new, name="experiment_new"),
    path("projects/<int:pk>/experiments/<int:number>/", experiment_views.experiment, name="experiment"),
    path(
        "projects/<int:pk>/experiments/<int:number>/cancel/",
        experiment_views.experiment_cancel,
        name="experiment_cancel",
    ),
    path("projects/<int:pk>/matrix/", matrix_views.matrix, name="matrix"),
    path("projects/<int:pk>/matrix/start/", matrix_views.matrix_start, name="matrix_start"),
    path("projects/<int:pk>/matrix/<int:number>/", matrix_views.matrix_detail, name="matrix_detail"),
    path("projects/<int:pk>/matrix/<int:number>/cancel/", matrix_views.matrix_cancel, name="matrix_cancel"),
    path("projects/<int:pk>/answers/", answer_views.answers, name="answers"),
    path("projects/<int:pk>/answers/draw/", answer_views.answers_draw, name="answers_draw"),
    path("answers/<int:pk>/judge/", answer_views.answer_judge, name="answer_judge"),
    path("projects/<int:pk>/targets/", target_views.target_list, name="targets"),
    path("projects/<int:pk>/techniques/", technique_views.techniques, name="techniques"),
    path("projects/<int:pk>/techniques/candidates/", technique_views.candidate_new, name="candidate_new"),
    path("projects/<int:pk>/targets/new/", target_views.target_new, name="target_new"),
    path("projects/<int:pk>/targets/<int:target_pk>/", target_views.target_edit, name="target_edit"),
    path(
        "projects/<int:pk>/targets/<int:target_pk>/reports/",
        target_views.target_reports,
        name="target_reports",
    ),
    path(
        "projects/<int:pk>/targets/<int:target_pk>/conformance/",
        target_views.target_conformance,
        name="target_conformance",
    ),
    path("projects/<int:pk>/targets/<int:target_pk>/check/", target_views.target_check, name="target_check"),
]
