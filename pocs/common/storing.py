"""Text and JSON as every database takes it: PostgreSQL stores neither NUL nor half of a surrogate pair."""

import re
from typing import Any

#: NUL, and halves of characters that JSON's escapes can name and UTF-8 cannot
NO_TEXT = re.compile("[\x00\ud800-\udfff]")
REPLACEMENT = "\ufffd"


def storable_text(text: str) -> str:
    """The text with U+FFFD for each character that is none."""
    return NO_TEXT.sub(REPLACEMENT, text)


def storable(value: Any) -> Any:
    """A JSON value with such texts, keys too."""
    if isinstance(value, str):
        return storable_text(value)
    if isinstance(value, dict):
        return {storable_text(str(key)): storable(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [storable(item) for item in value]
    return value
