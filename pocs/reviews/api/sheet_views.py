"""The one-page sheet and the views of its audiences over REST."""

from django.conf import settings
from django.utils import translation
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from pocs.common.api.views import ActorAPIView
from pocs.projects.selectors import project_get
from pocs.reviews.api.package_views import REFUSALS
from pocs.reviews.api.serializers import AudienceViewSerializer, SheetSerializer
from pocs.reviews.audiences.answering import audience_view
from pocs.reviews.audiences.questions import Audience, audience_named
from pocs.reviews.sheet.content import sheet_of
from pocs.reviews.sheet.language import sheet_language

LANGUAGE = OpenApiParameter("lang", enum=[code for code, _name in settings.LANGUAGES])


class SheetView(ActorAPIView):
    @extend_schema(
        responses={200: SheetSerializer} | REFUSALS, parameters=[LANGUAGE], summary="The one-page sheet"
    )
    def get(self, request: Request, pk: int) -> Response:
        project = project_get(self.actor, pk)
        with translation.override(sheet_language(request.query_params.get("lang"))):
            return Response(SheetSerializer(sheet_of(project)).data)


class AudienceView(ActorAPIView):
    @extend_schema(
        operation_id="projects_audience_retrieve",
        responses={200: AudienceViewSerializer} | REFUSALS,
        parameters=[
            LANGUAGE,
            OpenApiParameter("audience", location="path", enum=Audience.values),
        ],
        summary="What one audience asks of the project (Q1–Q28), each answered with its source or not",
    )
    def get(self, request: Request, pk: int, audience: str) -> Response:
        project = project_get(self.actor, pk)
        with translation.override(sheet_language(request.query_params.get("lang"))):
            view = audience_view(project, audience_named(audience))
            return Response(AudienceViewSerializer(view).data)
