"""The one-page sheet as a page and as a PDF in either language, and the view of each audience."""

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import translation

from pocs.common.ui.mixins import actor_of, page
from pocs.projects.selectors import project_get
from pocs.reviews.audiences.answering import audience_view
from pocs.reviews.audiences.questions import Audience, audience_named
from pocs.reviews.sheet.chart import bars
from pocs.reviews.sheet.content import sheet_of
from pocs.reviews.sheet.labels import sheet_labels
from pocs.reviews.sheet.language import sheet_language
from pocs.reviews.sheet.pdf import sheet_pdf as render_pdf


@page
def sheet(request: HttpRequest, pk: int) -> HttpResponse:
    """The sheet as a page (`?lang=en` or `?lang=zh-hans`)."""
    project = project_get(actor_of(request), pk)
    language = sheet_language(request.GET.get("lang"))
    with translation.override(language):
        content = sheet_of(project)
        context = {
            "project": project,
            "sheet": content,
            "chart": bars(content.figures),
            "labels": sheet_labels(),
            "language": language,
            "languages": settings.LANGUAGES,
            "audiences": Audience.choices,
        }
        return render(request, "reviews/sheet.html", context)


@page
def sheet_pdf(request: HttpRequest, pk: int) -> HttpResponse:
    """The sheet as a PDF of one page."""
    project = project_get(actor_of(request), pk)
    language = sheet_language(request.GET.get("lang"))
    response = HttpResponse(render_pdf(project, language), content_type="application/pdf")
    response["Content-Disposition"] = f'inline; filename="phasegate-sheet-{project.pk}-{language}.pdf"'
    return response


@page
def audience(request: HttpRequest, pk: int, audience: str) -> HttpResponse:
    """What one audience asks of the project (O3), each question answered with its source or plainly not."""
    project = project_get(actor_of(request), pk)
    context = {
        "project": project,
        "view": audience_view(project, audience_named(audience)),
        "audiences": Audience.choices,
    }
    return render(request, "reviews/audience.html", context)
