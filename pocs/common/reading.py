"""Reads that many parts of one page repeat: remembered while the page is being made, and never beyond.

A page asks twelve gates and as many sections, each of which reads what it needs without knowing of the
others. Inside `one_reading` a function marked `remembered` is asked once for the same arguments. Only a
request that reads enters it, so nothing remembered can be overtaken by a change of the same request.
"""

from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from django.db.models import Model
from django.utils.translation import get_language

P = ParamSpec("P")
R = TypeVar("R")

_memory: ContextVar[dict[Hashable, Any] | None] = ContextVar("reading", default=None)


@contextmanager
def one_reading() -> Iterator[None]:
    """Remember what `remembered` functions answer until the block ends."""
    token = _memory.set({})
    try:
        yield
    finally:
        _memory.reset(token)


def remembered(function: Callable[P, R]) -> Callable[P, R]:
    """Ask `function` once for the same arguments inside `one_reading`, each time outside of it.

    Arguments are rows of the database, which count as the same by table and number, or hashable values.
    Callers share the answer and must not change it.
    """

    @wraps(function)
    def asked(*args: P.args, **kwargs: P.kwargs) -> R:
        memory = _memory.get()
        if memory is None:
            return function(*args, **kwargs)
        named = tuple((name, _key(value)) for name, value in sorted(kwargs.items()))
        # answers may hold translated text
        key = (function, get_language(), tuple(map(_key, args)), named)
        if key not in memory:
            memory[key] = function(*args, **kwargs)
        found: R = memory[key]
        return found

    return asked


def _key(value: Any) -> Hashable:
    return (value._meta.label, value.pk) if isinstance(value, Model) else value
