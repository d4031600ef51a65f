"""Slows down password guessing: per person and address, so that nobody locks anyone else out."""

import hashlib

from django.core.cache import cache

#: failures after which one waits, and for how long the count is kept after the last of them
FREE_FAILURES = 5
WINDOW_S = 300


def _key(username: str, address: str) -> str:
    mark = hashlib.sha256(f"{username.casefold()}\0{address}".encode()).hexdigest()
    return f"signin-failures:{mark}"


def is_blocked(username: str, address: str) -> bool:
    """Whether this address has failed too often for this name within the last five minutes."""
    return cache.get(_key(username, address), 0) >= FREE_FAILURES


def note_failure(username: str, address: str) -> None:
    """Count one wrong password."""
    key = _key(username, address)
    cache.add(key, 0, WINDOW_S)
    try:
        cache.incr(key)
    except ValueError:
        cache.set(key, 1, WINDOW_S)  # it expired in between
    cache.touch(key, WINDOW_S)


def forget(username: str, address: str) -> None:
    """Start anew after a right password."""
    cache.delete(_key(username, address))
