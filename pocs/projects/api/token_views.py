"""CI tokens over REST: for people alone; a token neither issues, lists nor revokes tokens."""

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.permissions import IsAuthenticated
from rest_framework.request import Request
from rest_framework.response import Response

from pocs.common.api.permissions import PeopleOnly
from pocs.common.api.serializers import ProblemSerializer, StrictSerializer
from pocs.common.api.views import ActorAPIView, ActorGenericView
from pocs.people.roles import SCOPES
from pocs.projects import selectors, services

REFUSALS = dict.fromkeys((400, 403, 404, 409), ProblemSerializer)


class TokenSerializer(serializers.Serializer):
    """A token as everybody who manages it may see it: never the token itself."""

    id = serializers.IntegerField()
    name = serializers.CharField()
    prefix = serializers.CharField()
    scopes = serializers.ListField(child=serializers.CharField())
    sponsor = serializers.IntegerField(source="sponsor_id")
    allowed_addresses = serializers.ListField(child=serializers.CharField())
    created_at = serializers.DateTimeField()
    expires_at = serializers.DateTimeField()
    revoked_at = serializers.DateTimeField(allow_null=True)
    last_used_at = serializers.DateTimeField(allow_null=True)


class IssuedTokenSerializer(TokenSerializer):
    token = serializers.CharField(help_text="shown only in this answer")


class TokenWriteSerializer(StrictSerializer):
    name = serializers.CharField(max_length=80)
    scopes = serializers.ListField(child=serializers.ChoiceField(choices=SCOPES))
    expires_at = serializers.DateTimeField()
    allowed_addresses = serializers.ListField(child=serializers.CharField(), required=False, default=list)
    sponsor = serializers.IntegerField(required=False, allow_null=True, default=None)


class TokensView(ActorGenericView):
    serializer_class = TokenSerializer
    permission_classes = [IsAuthenticated, PeopleOnly]

    @extend_schema(responses=TokenSerializer(many=True), summary="CI tokens of a project")
    def get(self, request: Request, pk: int) -> Response:
        project = selectors.project_get(self.actor, pk, "project.tokens")
        return self.page(selectors.tokens_of(self.actor, project))

    @extend_schema(
        request=TokenWriteSerializer,
        responses={201: IssuedTokenSerializer} | REFUSALS,
        summary="Issue a CI token; it is shown only in this answer",
    )
    def post(self, request: Request, pk: int) -> Response:
        project = selectors.project_get(self.actor, pk, "project.tokens")
        serializer = TokenWriteSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        given = dict(serializer.validated_data)
        sponsor = given.pop("sponsor")
        token, plaintext = services.token_issue(
            actor=self.actor,
            project=project,
            sponsor=None if sponsor is None else selectors.person_for_sponsor(self.actor, sponsor),
            **given,
        )
        data = TokenSerializer(token).data | {"token": plaintext}
        return Response(data, status=201, headers={"Cache-Control": "no-store"})


class TokenRevokeView(ActorAPIView):
    permission_classes = [IsAuthenticated, PeopleOnly]

    @extend_schema(request=None, responses={200: TokenSerializer} | REFUSALS, summary="End a CI token now")
    def post(self, request: Request, pk: int, token: int) -> Response:
        project = selectors.project_get(self.actor, pk, "project.tokens")
        row = selectors.token_get(self.actor, project, token)
        row = services.token_revoke(actor=self.actor, project=project, token=row)
        return Response(TokenSerializer(row).data)
