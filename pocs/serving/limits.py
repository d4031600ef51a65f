"""How much live inference takes on, before it says 429; each may be set in the settings."""

from dataclasses import dataclass

from django.conf import settings


@dataclass(frozen=True)
class Limits:
    """`queue`: requests that wait for an engine; `open`: requests that one engine has at once.

    Per token: requests at once, and requests begun in a minute.
    """

    queue: int
    open: int
    token_open: int
    token_per_minute: int
    patience_s: float  # what a run that starts leaves open live requests to end
    default_tokens: int  # output tokens of a chat request that asks for no number
    body_bytes: int


def limits() -> Limits:
    """The limits in force."""
    return Limits(**settings.PHASEGATE_LIVE)
