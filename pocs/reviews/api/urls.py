"""Routes of the reviews in the API."""

from django.urls import path

from pocs.reviews.api import (
    decision_views,
    follow_through_views,
    objection_views,
    organisation_views,
    package_views,
    sheet_views,
)

urlpatterns = [
    path("projects/<int:pk>/conclusion/", package_views.ConclusionView.as_view(), name="api-conclusion"),
    path(
        "projects/<int:pk>/business-result/",
        package_views.BusinessResultView.as_view(),
        name="api-business-result",
    ),
    path("projects/<int:pk>/packages/", package_views.PackagesView.as_view(), name="api-packages"),
    path("packages/<int:pk>/", package_views.PackageView.as_view(), name="api-package"),
    path("packages/<int:pk>/signoffs/", package_views.SignOffsView.as_view(), name="api-signoffs"),
    path(
        "packages/<int:pk>/signoffs/<slug:slot>/ask/",
        package_views.AskAgainView.as_view(),
        name="api-signoff-ask",
    ),
    path("packages/<int:pk>/lines/", objection_views.LinesView.as_view(), name="api-package-lines"),
    path("packages/<int:pk>/objections/", objection_views.ObjectionsView.as_view(), name="api-objections"),
    path("objections/<int:pk>/", objection_views.ObjectionView.as_view(), name="api-objection"),
    path("objections/<int:pk>/answer/", objection_views.AnswerView.as_view(), name="api-objection-answer"),
    path("objections/<int:pk>/rule/", objection_views.RuleView.as_view(), name="api-objection-rule"),
    path(
        "objections/<int:pk>/withdraw/",
        objection_views.ObjectionWithdrawView.as_view(),
        name="api-objection-withdraw",
    ),
    path("review-policy/", organisation_views.PolicyView.as_view(), name="api-review-policy"),
    path("duties/", organisation_views.DutiesView.as_view(), name="api-duties"),
    path("duties/hand-over/", organisation_views.HandOverView.as_view(), name="api-duties-hand-over"),
    path("projects/<int:pk>/bundle/", organisation_views.BundleView.as_view(), name="api-bundle"),
    path(
        "projects/<int:pk>/observation-schedule/",
        follow_through_views.ScheduleView.as_view(),
        name="api-observation-schedule",
    ),
    path("signoffs/<int:pk>/withdraw/", package_views.WithdrawView.as_view(), name="api-signoff-withdraw"),
    path("projects/<int:pk>/waivers/", decision_views.WaiversView.as_view(), name="api-waivers"),
    path("waivers/<int:pk>/", decision_views.WaiverView.as_view(), name="api-waiver"),
    path("waivers/<int:pk>/grant/", decision_views.WaiverGrantView.as_view(), name="api-waiver-grant"),
    path("waivers/<int:pk>/refuse/", decision_views.WaiverRefuseView.as_view(), name="api-waiver-refuse"),
    path("waivers/<int:pk>/revoke/", decision_views.WaiverRevokeView.as_view(), name="api-waiver-revoke"),
    path("projects/<int:pk>/decision/", decision_views.DecisionView.as_view(), name="api-decision"),
    path("projects/<int:pk>/decisions/", decision_views.DecisionsView.as_view(), name="api-decisions"),
    path(
        "decisions/<int:pk>/confirm/",
        decision_views.DecisionConfirmView.as_view(),
        name="api-decision-confirm",
    ),
    path(
        "decisions/<int:pk>/revoke/", decision_views.DecisionRevokeView.as_view(), name="api-decision-revoke"
    ),
    path(
        "conditions/<int:pk>/close/", decision_views.ConditionCloseView.as_view(), name="api-condition-close"
    ),
    path("projects/<int:pk>/follow-through/", follow_through_views.TasksView.as_view(), name="api-tasks"),
    path(
        "projects/<int:pk>/follow-through/<slug:kind>/",
        follow_through_views.TaskView.as_view(),
        name="api-task",
    ),
    path(
        "projects/<int:pk>/follow-through/<slug:kind>/done/",
        follow_through_views.TaskDoneView.as_view(),
        name="api-task-done",
    ),
    path(
        "projects/<int:pk>/observations/",
        follow_through_views.ObservationsView.as_view(),
        name="api-observations",
    ),
    path(
        "projects/<int:pk>/observations/<slug:kind>/",
        follow_through_views.ObservationView.as_view(),
        name="api-observation",
    ),
    path(
        "projects/<int:pk>/observations/<slug:kind>/readings/",
        follow_through_views.ReadingsView.as_view(),
        name="api-readings",
    ),
    path(
        "projects/<int:pk>/observations/<slug:kind>/close/",
        follow_through_views.ObservationCloseView.as_view(),
        name="api-observation-close",
    ),
    path("projects/<int:pk>/sheet/", sheet_views.SheetView.as_view(), name="api-sheet"),
    path("projects/<int:pk>/sheet/<slug:audience>/", sheet_views.AudienceView.as_view(), name="api-audience"),
]
