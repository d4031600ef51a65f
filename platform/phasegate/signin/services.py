"""What a person sets for themselves; no right of anyone depends on it, so it is not audited."""

from pocs.people.models import User


def preferences_set(*, user: User, language: str, time_zone: str) -> User:
    """Store language (`""`: as the browser asks) and IANA time zone name."""
    user.language = language
    user.time_zone = time_zone
    user.save(update_fields=["language", "time_zone"])
    return user
