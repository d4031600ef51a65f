"""How a CI token signs in: `Authorization: Bearer …`; people use their session, with CSRF."""

from django.utils.translation import gettext as _
from drf_spectacular.extensions import OpenApiAuthenticationExtension
from rest_framework.authentication import BaseAuthentication, get_authorization_header
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.request import Request

from pocs.people.models import User
from pocs.projects import tokens
from pocs.projects.models import CIToken


class CITokenAuthentication(BaseAuthentication):
    """Sets `request.user` to the sponsor and `request.auth` to the token, which is the actor."""

    keyword = "Bearer"

    def authenticate(self, request: Request) -> tuple[User, CIToken] | None:
        parts = get_authorization_header(request).split()
        if not parts or parts[0].lower() != self.keyword.lower().encode():
            return None
        if len(parts) != 2:
            raise AuthenticationFailed(_("Send the token as “Authorization: Bearer <token>”."))
        try:
            plaintext = parts[1].decode("ascii")
        except UnicodeDecodeError:
            raise AuthenticationFailed(_("The token holds characters that no token has.")) from None
        token = tokens.find_usable(plaintext)
        if token is None:
            raise AuthenticationFailed(_("The token is unknown, expired or revoked."))
        if not tokens.address_allowed(token, request.META.get("REMOTE_ADDR", "")):
            raise AuthenticationFailed(_("The token may not be used from this address."))
        tokens.note_use(token)
        return token.sponsor, token

    def authenticate_header(self, request: Request) -> str:
        return self.keyword


class CITokenScheme(OpenApiAuthenticationExtension):
    """The token in the API's schema."""

    target_class = CITokenAuthentication
    name = "ciToken"

    def get_security_definition(self, auto_schema: object) -> dict[str, str]:
        return {"type": "http", "scheme": "bearer", "description": _("CI token of one project.")}
