"""Routes of evidence in the API."""

from django.urls import path

from pocs.evidence.api import attachment_views, views

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
