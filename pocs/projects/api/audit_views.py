"""The organisation's audit over REST: reading it narrowed, and verifying the whole chain."""

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.permissions import IsAuthenticated
from rest_framework.request import Request
from rest_framework.response import Response

from pocs.common import checkpoints
from pocs.common.api.permissions import PeopleOnly
from pocs.common.api.serializers import ProblemSerializer, StrictSerializer
from pocs.common.api.views import ActorAPIView, ActorGenericView
from pocs.projects import selectors
from pocs.projects.api.serializers import HistorySerializer
from pocs.projects.api.views import HistoryPages
from pocs.projects.audit_filter import AuditFilter

REFUSED = dict.fromkeys((400, 403), ProblemSerializer)


class AuditQuerySerializer(StrictSerializer):
    """What to narrow the audit to; `verb` is one, or its first part (`signoff`)."""

    project = serializers.IntegerField(required=False)
    person = serializers.IntegerField(required=False)
    verb = serializers.CharField(required=False, max_length=80)
    object_type = serializers.CharField(required=False, max_length=80)
    object_id = serializers.CharField(required=False, max_length=64)
    since = serializers.DateField(required=False)
    until = serializers.DateField(required=False)


class FindingSerializer(serializers.Serializer):
    code = serializers.CharField()
    sequence = serializers.IntegerField(allow_null=True)
    text = serializers.CharField()


class VerificationSerializer(serializers.Serializer):
    holds = serializers.BooleanField()
    public_key = serializers.CharField()
    problems = FindingSerializer(many=True)


class AuditView(ActorGenericView):
    serializer_class = HistorySerializer
    pagination_class = HistoryPages
    permission_classes = [IsAuthenticated, PeopleOnly]

    @extend_schema(
        parameters=[AuditQuerySerializer],
        responses={200: HistorySerializer(many=True)} | REFUSED,
        summary="Audit entries that the caller may read, newest first",
    )
    def get(self, request: Request) -> Response:
        paging = (HistoryPages.cursor_query_param, HistoryPages.page_size_query_param)
        given = {name: value for name, value in request.query_params.items() if name not in paging}
        serializer = AuditQuerySerializer(data=given)
        rows = selectors.organisation_history(self.actor)
        serializer.is_valid(raise_exception=True)
        return self.page(AuditFilter(**serializer.validated_data).apply(rows))


class VerificationView(ActorAPIView):
    permission_classes = [IsAuthenticated, PeopleOnly]

    @extend_schema(
        request=None,
        responses={200: VerificationSerializer} | REFUSED,
        summary="Verify the organisation's whole chain",
    )
    def post(self, request: Request) -> Response:
        problems = selectors.audit_problems(self.actor)
        found = {"holds": not problems, "public_key": checkpoints.public_key(), "problems": problems}
        return Response(VerificationSerializer(found).data)
