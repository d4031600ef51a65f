"""Routes of the site: pages, the API and its schema."""

from django.urls import URLPattern, URLResolver, include, path
from drf_spectacular.views import SpectacularAPIView, SpectacularSwaggerSplitView

from phasegate import error_pages, health
from phasegate.signin.views import LanguageView

api_docs = SpectacularSwaggerSplitView.as_view(url_name="api-schema", template_name="api/docs.html")

urlpatterns: list[URLPattern | URLResolver] = [
    path("healthz", health.healthz, name="healthz"),
    path("health", health.healthz),  # where measuring tools look before they measure
    path("readyz", health.readyz, name="readyz"),
    path("i18n/setlang/", LanguageView.as_view(), name="set_language"),
    path("api/v1/schema/", SpectacularAPIView.as_view(), name="api-schema"),
    path("api/docs/", api_docs, name="api-docs"),
    path("api/v1/", include("pocs.people.api.urls")),
    path("api/v1/", include("pocs.projects.api.urls")),
    path("api/v1/", include("pocs.runs.api.urls")),
    path("api/v1/", include("pocs.evidence.api.urls")),
    path("api/v1/", include("pocs.reviews.api.urls")),
    path("api/v1/", include("pocs.notices.api.urls")),
    path("", include("phasegate.signin.urls")),
    path("", include("pocs.reviews.ui.inbox_urls")),
    path("", include("pocs.people.ui.urls")),
    path("", include("pocs.projects.ui.urls")),
    path("", include("pocs.runs.ui.urls")),
    path("", include("pocs.serving.ui.urls")),
    path("", include("pocs.evidence.ui.urls")),
    path("", include("pocs.reviews.ui.urls")),
    path("", include("pocs.notices.ui.urls")),
]

handler400 = error_pages.bad_request
handler403 = error_pages.permission_denied
handler404 = error_pages.not_found
handler500 = error_pages.server_error
