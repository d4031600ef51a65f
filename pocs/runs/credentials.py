"""Credentials of endpoints: encrypted at rest, decrypted only where a request is sent."""

import base64

from cryptography.fernet import Fernet, InvalidToken
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from django.conf import settings
from django.utils.translation import gettext as _

from pocs.common.errors import Conflict


def _fernet() -> Fernet:
    """The cipher under PHASEGATE_CREDENTIAL_KEY, or under a key derived from SECRET_KEY (HKDF, RFC 5869)."""
    configured = getattr(settings, "PHASEGATE_CREDENTIAL_KEY", "")
    if configured:
        return Fernet(configured.encode())
    derived = HKDF(algorithm=SHA256(), length=32, salt=None, info=b"phasegate target credential v1")
    return Fernet(base64.urlsafe_b64encode(derived.derive(settings.SECRET_KEY.encode())))


def seal(credential: str) -> bytes | None:
    """The encrypted form to store; None for an empty credential."""
    return _fernet().encrypt(credential.encode()) if credential else None


def unseal(stored: bytes | memoryview | None) -> str | None:
    """The credential in clear; raises Conflict when the key has changed since it was stored."""
    if stored is None:
        return None
    try:
        return _fernet().decrypt(bytes(stored)).decode()
    except InvalidToken as error:
        raise Conflict(_("The stored credential cannot be decrypted any more: enter it again.")) from error
