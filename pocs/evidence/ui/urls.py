"""Pages of evidence."""

from django.urls import path

from pocs.evidence.ui import attachment_views, views

app_name = "evidence"

urlpatterns = [
    path("projects/<int:pk>/evidence/", views.evidence_list, name="list"),
    path("projects/<int:pk>/evidence/new/runtime/", views.evidence_new, name="create_from_run"),
    path("projects/<int:pk>/evidence/new/<str:type>/", views.evidence_new, name="create"),
    path("evidence/<int:pk>/", views.evidence_detail, name="detail"),
    path("evidence/<int:pk>/edit/", views.evidence_edit, name="edit"),
    path("evidence/<int:pk>/difference/", views.evidence_difference, name="difference"),
    path("revisions/<int:pk>/submit/", views.revision_submit, name="submit"),
    path("revisions/<int:pk>/review/", views.revision_review, name="review"),
    path("revisions/<int:pk>/return/", views.revision_return, name="return"),
    path("revisions/<int:pk>/attachments/", attachment_views.attachment_add, name="attach"),
    path(
        "revisions/<int:revision_pk>/attachments/<int:pk>/",
        attachment_views.attachment_download,
        name="revision_download",
    ),
    path("attachments/<int:pk>/", attachment_views.attachment_download, name="download"),
    path("attachments/<int:pk>/remove/", attachment_views.attachment_remove, name="remove"),
]
