"""Secrets and signatures of webhooks: HMAC-SHA256 over time and body, so that a copy cannot be sent again."""

import hashlib
import hmac
import secrets

SIGNATURE_HEADER = "PhaseGate-Signature"
DELIVERY_HEADER = "PhaseGate-Delivery"
KIND_HEADER = "PhaseGate-Kind"
SECRET_PREFIX = "pgw_"  # noqa: S105 a public marker by which secret scanners know the kind


def new_secret() -> str:
    """A fresh secret of 256 random bits."""
    return SECRET_PREFIX + secrets.token_urlsafe(32)


def signature(secret: str, body: bytes, at_s: int) -> str:
    """`t=<seconds>,v1=<hex>` over `<seconds>.<body>`, as the receiver computes it again."""
    signed = hmac.new(secret.encode(), f"{at_s}.".encode() + body, hashlib.sha256).hexdigest()
    return f"t={at_s},v1={signed}"
