"""Pages of evidence."""

from django.urls import path

from pocs.evidence.ui import attachment_views, discussion_views, query_views, views

app_name = "evidence"

urlpatterns = [
    path("projects/<int:pk>/evidence/", views.evidence_list, name="list"),
    path("projects/<int:pk>/evidence/new/runtime/", views.evidence_new, name="create_from_run"),
    path("projects/<int:pk>/evidence/new/<str:type>/", views.evidence_new, name="create"),
    path("projects/<int:pk>/configurations/", query_views.configurations, name="configurations"),
    path("projects/<int:pk>/readiness/<slug:kind>/evidence/", query_views.readiness, name="readiness"),
    path("evidence/<int:pk>/", views.evidence_detail, name="detail"),
    path("evidence/<int:pk>/edit/", views.evidence_edit, name="edit"),
    path("evidence/<int:pk>/difference/", views.evidence_difference, name="difference"),
    path("revisions/<int:pk>/submit/", views.revision_submit, name="submit"),
    path("revisions/<int:pk>/review/", views.revision_review, name="review"),
    path("revisions/<int:pk>/return/", views.revision_return, name="return"),
    path("revisions/<int:pk>/requests/", query_views.runtime_query, name="requests"),
    path("revisions/<int:pk>/comment/", discussion_views.thread_open, name="thread_open"),
    path("revisions/<int:pk>/ask/", discussion_views.review_request, name="review_request"),
    path(
        "review-requests/<int:pk>/withdraw/",
        discussion_views.review_request_withdraw,
        name="review_request_withdraw",
    ),
    path("threads/<int:pk>/comment/", discussion_views.thread_comment, name="thread_comment"),
    path("threads/<int:pk>/<slug:to>/", discussion_views.thread_state, name="thread_state"),
    path("revisions/<int:pk>/attachments/", attachment_views.attachment_add, name="attach"),
    path(
        "revisions/<int:revision_pk>/attachments/<int:pk>/",
        attachment_views.attachment_download,
        name="revision_download",
    ),
    path("attachments/<int:pk>/", attachment_views.attachment_download, name="download"),
    path("attachments/<int:pk>/remove/", attachment_views.attachment_remove, name="remove"),
]
