"""Pages of the reviews."""

from django.urls import path

from pocs.reviews.ui import (
    decision_views,
    findings_views,
    follow_through_views,
    objection_views,
    organisation_views,
    package_views,
    sheet_views,
    waiver_views,
)

app_name = "reviews"

urlpatterns = [
    path("projects/<int:pk>/conclusion/", findings_views.conclusion, name="conclusion"),
    path("projects/<int:pk>/business-result/", findings_views.business_result, name="business_result"),
    path("projects/<int:pk>/packages/", package_views.packages, name="packages"),
    path("packages/<int:pk>/", package_views.package, name="package"),
    path("packages/<int:pk>/<slug:slot>/sign/", package_views.sign, name="sign"),
    path("packages/<int:pk>/<slug:slot>/ask/", package_views.ask_again, name="ask_again"),
    path("packages/<int:pk>/objections/", objection_views.objection_raise, name="objection_raise"),
    path("objections/<int:pk>/answer/", objection_views.objection_answer, name="objection_answer"),
    path("objections/<int:pk>/rule/", objection_views.objection_rule, name="objection_rule"),
    path("objections/<int:pk>/withdraw/", objection_views.objection_withdraw, name="objection_withdraw"),
    path("review-policy/", organisation_views.policy, name="policy"),
    path("duties/", organisation_views.hand_over, name="hand_over"),
    path("projects/<int:pk>/bundle.zip", organisation_views.bundle, name="bundle"),
    path("projects/<int:pk>/observation-schedule/", follow_through_views.schedule, name="schedule"),
    path("signoffs/<int:pk>/withdraw/", package_views.withdraw, name="withdraw"),
    path("projects/<int:pk>/waivers/", waiver_views.waivers, name="waivers"),
    path("waivers/<int:pk>/<slug:action>/", waiver_views.waiver_act, name="waiver_act"),
    path("projects/<int:pk>/decision/", decision_views.decision, name="decision"),
    path("decisions/<int:pk>/confirm/", decision_views.decision_confirm, name="decision_confirm"),
    path("decisions/<int:pk>/revoke/", decision_views.decision_revoke, name="decision_revoke"),
    path("conditions/<int:pk>/close/", decision_views.condition_close, name="condition_close"),
    path("projects/<int:pk>/follow-through/", follow_through_views.follow_through, name="follow_through"),
    path("projects/<int:pk>/follow-through/<slug:kind>/", follow_through_views.task_set, name="task_set"),
    path(
        "projects/<int:pk>/follow-through/<slug:kind>/done/", follow_through_views.task_done, name="task_done"
    ),
    path("projects/<int:pk>/observation/", follow_through_views.observation, name="observation"),
    path(
        "projects/<int:pk>/observation/<slug:kind>/", follow_through_views.observer_set, name="observer_set"
    ),
    path("projects/<int:pk>/observation/<slug:kind>/read/", follow_through_views.reading, name="reading"),
    path(
        "projects/<int:pk>/observation/<slug:kind>/close/",
        follow_through_views.observation_close,
        name="observation_close",
    ),
    path("projects/<int:pk>/advance/<slug:to>/", follow_through_views.advance, name="advance"),
    path("projects/<int:pk>/sheet/", sheet_views.sheet, name="sheet"),
    path("projects/<int:pk>/sheet/<slug:audience>/", sheet_views.audience, name="audience"),
    path("projects/<int:pk>/sheet.pdf", sheet_views.sheet_pdf, name="sheet_pdf"),
]
