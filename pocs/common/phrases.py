"""Sentences with values that are put together when they are read, in the language of each reader."""

from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.utils.functional import Promise
from django.utils.translation import gettext, gettext_lazy, override

from pocs.common.errors import Text


@dataclass(frozen=True)
class Said:
    """A sentence to be kept: in English, with its values beside it, to be read in any language later.

    A value that is itself translated (the label of a choice, another sentence) is kept by its English words
    and marked, so that a name which somebody gave is never translated.
    """

    text: Text
    values: dict[str, Any]

    def stored(self) -> dict[str, Any]:
        """The form for the database."""
        with override("en"):
            values = {name: _kept(value) for name, value in self.values.items()}
            return {"text": str(self.text), "values": values}

    def __str__(self) -> str:
        values = {
            name: str(value) if isinstance(value, (Promise, Said)) else value
            for name, value in self.values.items()
        }
        return str(self.text) % values if values else str(self.text)


def said(text: Text, /, **values: Any) -> Said:
    """`said(gettext_lazy("%(item)s changed"), item=Kind.LOGS.label)`: text and labels must be lazy."""
    return Said(text, values)


def said_again(stored: dict[str, Any]) -> Said:
    """What was kept, to be said as part of something else."""
    values = {
        name: said_again(value) if isinstance(value, dict) else value
        for name, value in stored.get("values", {}).items()
    }
    return Said(gettext_lazy(stored["text"]) if stored.get("text") else "", values)


def read_said(stored: dict[str, Any]) -> str:
    """What was said, in the language of the reader."""
    values = {
        name: read_said(value) if isinstance(value, dict) else value
        for name, value in stored.get("values", {}).items()
    }
    text = gettext(stored["text"]) if stored.get("text") else ""
    return text % values if values else text


def kept(reason: str | Said) -> tuple[str, dict[str, Any] | None]:
    """A reason for its two columns: the English words, cut to their length, and what they were made of."""
    if isinstance(reason, str):
        return reason[:300], None
    with override("en"):
        return str(reason)[:300], reason.stored()


def reason_facts(reason: str | Said) -> dict[str, Any]:
    """The same for an audit entry, whose readers see it in their language."""
    if isinstance(reason, str):
        return {"reason": reason}
    with override("en"):
        return {"reason": str(reason), "said": reason.stored()}


def _kept(value: Any) -> Any:
    if value is None or isinstance(value, (int, float)):
        return value
    if isinstance(value, Said):
        return value.stored()
    english = str(value)
    translated = isinstance(value, Promise)
    for language, _name in settings.LANGUAGES:
        with override(language):
            translated = translated or str(value) != english
    return {"text": english} if translated else english
