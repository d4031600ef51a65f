"""Sentences with values that are put together only when they are read, in the language of the reader."""

from typing import Any

from django.utils.functional import Promise, lazy

from pocs.common.errors import Text


def _put_together(text: Text, values: dict[str, Any]) -> str:
    return str(text) % {
        name: str(value) if isinstance(value, Promise) else value for name, value in values.items()
    }


_lazily = lazy(_put_together, str)


def phrase(text: Text, /, **values: Any) -> Text:
    """`phrase(gettext_lazy("Sign %(package)s"), package=package)`: lazy where `text` and `values` are."""
    return _lazily(text, values)
