"""Routes of evidence in the API."""

from django.urls import path

from pocs.evidence.api import attachment_views, discussion_views, query_views, views

urlpatterns = [
    path("projects/<int:pk>/evidence/", views.ProjectEvidenceView.as_view(), name="api-project-evidence"),
    path("evidence/<int:pk>/", views.EvidenceView.as_view(), name="api-evidence"),
    path(
        "evidence/<int:pk>/revisions/", views.EvidenceRevisionsView.as_view(), name="api-evidence-revisions"
    ),
    path(
        "evidence/<int:evidence_pk>/revisions/<int:pk>/",
        views.RevisionView.as_view(),
        name="api-evidence-revision",
    ),
    path("revisions/<int:pk>/", views.RevisionView.as_view(), name="api-revision"),
    path("revisions/<int:pk>/rows/", views.RevisionRowsView.as_view(), name="api-revision-rows"),
    path("revisions/<int:pk>/submit/", views.RevisionSubmitView.as_view(), name="api-revision-submit"),
    path("revisions/<int:pk>/review/", views.RevisionReviewView.as_view(), name="api-revision-review"),
    path("revisions/<int:pk>/return/", views.RevisionReturnView.as_view(), name="api-revision-return"),
    path(
        "projects/<int:pk>/configurations/",
        query_views.ConfigurationsView.as_view(),
        name="api-configurations",
    ),
    path(
        "projects/<int:pk>/readiness/<slug:kind>/evidence/",
        query_views.ReadinessEvidenceView.as_view(),
        name="api-readiness-evidence",
    ),
    path(
        "revisions/<int:pk>/requests/",
        query_views.RevisionRequestsView.as_view(),
        name="api-revision-requests",
    ),
    path(
        "revisions/<int:pk>/difference/",
        query_views.RevisionDifferenceView.as_view(),
        name="api-revision-difference",
    ),
    path(
        "revisions/<int:pk>/lines/", discussion_views.RevisionLinesView.as_view(), name="api-revision-lines"
    ),
    path(
        "revisions/<int:pk>/threads/",
        discussion_views.RevisionThreadsView.as_view(),
        name="api-revision-threads",
    ),
    path("threads/<int:pk>/", discussion_views.ThreadView.as_view(), name="api-thread"),
    path(
        "threads/<int:pk>/comments/",
        discussion_views.ThreadCommentsView.as_view(),
        name="api-thread-comments",
    ),
    path(
        "threads/<int:pk>/resolve/", discussion_views.ThreadResolveView.as_view(), name="api-thread-resolve"
    ),
    path("threads/<int:pk>/reopen/", discussion_views.ThreadReopenView.as_view(), name="api-thread-reopen"),
    path(
        "revisions/<int:pk>/review-requests/",
        discussion_views.ReviewRequestsView.as_view(),
        name="api-review-requests",
    ),
    path(
        "review-requests/<int:pk>/withdraw/",
        discussion_views.ReviewRequestWithdrawView.as_view(),
        name="api-review-request-withdraw",
    ),
    path(
        "revisions/<int:pk>/attachments/",
        attachment_views.RevisionAttachmentsView.as_view(),
        name="api-revision-attachments",
    ),
    path(
        "revisions/<int:revision_pk>/attachments/<int:pk>/",
        attachment_views.AttachmentView.as_view(),
        name="api-revision-attachment",
    ),
    path(
        "revisions/<int:revision_pk>/attachments/<int:pk>/content/",
        attachment_views.AttachmentContentView.as_view(),
        name="api-revision-attachment-content",
    ),
    path("attachments/<int:pk>/", attachment_views.AttachmentView.as_view(), name="api-attachment"),
    path(
        "attachments/<int:pk>/content/",
        attachment_views.AttachmentContentView.as_view(),
        name="api-attachment-content",
    ),
]
