"""CI tokens: their form, and how a presented one is found; issuing lives in the services."""

import hashlib
import ipaddress
import secrets
from datetime import timedelta

from django.db.models import Q
from django.utils import timezone

from pocs.projects.models import CIToken

TOKEN_PREFIX = "pgt_"  # noqa: S105 a public marker by which secret scanners know the kind
SHOWN_CHARACTERS = 12
#: a busy token writes its last use at most this often
LAST_USE_RESOLUTION_S = 60


def new_plaintext() -> str:
    """A fresh token of 256 random bits."""
    return TOKEN_PREFIX + secrets.token_urlsafe(32)


def digest_of(plaintext: str) -> str:
    """What is stored of a token: SHA-256; the token itself has too much entropy to need a slow hash."""
    return hashlib.sha256(plaintext.encode()).hexdigest()


def find_usable(plaintext: str) -> CIToken | None:
    """The token, unless it is unknown, revoked, expired, or its sponsor no longer stands for it."""
    token = (
        CIToken.objects.select_related("project", "sponsor")
        .filter(token_digest=digest_of(plaintext), revoked_at=None, expires_at__gt=timezone.now())
        .first()
    )
    if token is None or not token.sponsor.is_active:
        return None
    if not token.project.members.filter(user_id=token.sponsor_id).exists():
        return None
    return token


def address_allowed(token: CIToken, address: str) -> bool:
    """Whether the token may be used from this address; an empty list allows every address."""
    if not token.allowed_addresses:
        return True
    try:
        caller = ipaddress.ip_address(address)
    except ValueError:
        return False
    return any(caller in ipaddress.ip_network(network, strict=False) for network in token.allowed_addresses)


def note_use(token: CIToken) -> None:
    """Keep when the token was last used, to the minute."""
    now = timezone.now()
    stale = Q(last_used_at=None) | Q(last_used_at__lt=now - timedelta(seconds=LAST_USE_RESOLUTION_S))
    CIToken.objects.filter(stale, pk=token.pk).update(last_used_at=now)
