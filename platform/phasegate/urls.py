"""Routes of the site: pages, the API and its schema."""

from importlib.util import find_spec

from django.urls import URLPattern, URLResolver, include, path
from drf_spectacular.views import SpectacularAPIView, SpectacularSwaggerSplitView

from phasegate import error_pages, health
from phasegate.signin.views import LanguageView

APPS = ("people", "projects", "runs", "evidence", "reviews")


def _delivered(module: str) -> bool:
    """Whether the module is there yet."""
    return find_spec(module) is not None


urlpatterns: list[URLPattern | URLResolver] = [
    path("healthz", health.healthz, name="healthz"),
    path("readyz", health.readyz, name="readyz"),
    path("", include("phasegate.signin.urls")),
    path("i18n/setlang/", LanguageView.as_view(), name="set_language"),
    path("api/v1/schema/", SpectacularAPIView.as_view(), name="api-schema"),
    path(
        "api/docs/",
        SpectacularSwaggerSplitView.as_view(url_name="api-schema", template_name="api/docs.html"),
        name="api-docs",
    ),
]
urlpatterns += [
    path("api/v1/", include(f"pocs.{app}.api.urls")) for app in APPS if _delivered(f"pocs.{app}.api.urls")
]
urlpatterns += [path("", include(f"pocs.{app}.ui.urls")) for app in APPS if _delivered(f"pocs.{app}.ui.urls")]
if _delivered("pocs.reviews.ui.inbox_urls"):
    urlpatterns += [path("", include("pocs.reviews.ui.inbox_urls"))]

handler400 = error_pages.bad_request
handler403 = error_pages.permission_denied
handler404 = error_pages.not_found
handler500 = error_pages.server_error
