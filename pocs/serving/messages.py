"""The messages of a chat: roles and text that a chat template can take."""

from typing import Any

from pocs.serving.body import wrong
from pocs.serving.errors import ApiError

#: roles of the API and what chat templates know them as
ROLES = {"system": "system", "developer": "system", "user": "user", "assistant": "assistant"}
MESSAGES_MAX = 2048


def checked_messages(raw: Any) -> list[dict[str, str]]:
    """`[{"role", "content"}]` with content as plain text; raises ApiError that names the place."""
    if raw is None:
        raise wrong("messages", "Missing required parameter: 'messages'.", "missing_required_parameter")
    if not isinstance(raw, list):
        raise wrong("messages", "Invalid type for 'messages': expected an array of objects.", "invalid_type")
    if not raw:
        text = "Invalid 'messages': empty array. Expected an array with minimum length 1."
        raise wrong("messages", text, "empty_array")
    if len(raw) > MESSAGES_MAX:
        text = f"Invalid 'messages': at most {MESSAGES_MAX} messages."
        raise wrong("messages", text, "array_above_max_length")
    return [_message(f"messages[{index}]", message) for index, message in enumerate(raw)]


def _message(place: str, raw: Any) -> dict[str, str]:
    if not isinstance(raw, dict):
        raise wrong(place, f"Invalid type for '{place}': expected an object.", "invalid_type")
    role = raw.get("role")
    if role in ("tool", "function") or raw.get("tool_calls") or raw.get("function_call"):
        text = f"Invalid '{place}': the engine calls no tools."
        raise wrong(f"{place}.role", text, "unsupported_value")
    if not isinstance(role, str) or role not in ROLES:
        text = f"Invalid value for '{place}.role': supported values are {', '.join(map(repr, ROLES))}."
        raise wrong(f"{place}.role", text, "invalid_value")
    return {"role": ROLES[role], "content": _content(f"{place}.content", raw.get("content"), role)}


def _content(place: str, raw: Any, role: str) -> str:
    """The text of a message; several text parts are lines of it."""
    if raw is None and role == "assistant":
        return ""
    if isinstance(raw, str):
        return _text(place, raw)
    if isinstance(raw, list) and raw:
        return "\n".join(_part(f"{place}[{index}]", part) for index, part in enumerate(raw))
    raise wrong(place, f"Invalid type for '{place}': expected a string or an array of parts.", "invalid_type")


def _part(place: str, raw: Any) -> str:
    if not isinstance(raw, dict) or not isinstance(raw.get("type"), str):
        raise wrong(place, f"Invalid '{place}': expected an object with a 'type'.", "invalid_type")
    if raw["type"] != "text":
        shown = raw["type"][:40]
        text = f"Invalid '{place}': a part of type '{shown}' is not supported; the engine reads text only."
        raise wrong(f"{place}.type", text, "unsupported_value")
    if not isinstance(raw.get("text"), str):
        raise wrong(f"{place}.text", f"Invalid type for '{place}.text': expected a string.", "invalid_type")
    return _text(f"{place}.text", raw["text"])


def _text(place: str, text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise _half_character(place) from None
    return text


def _half_character(place: str) -> ApiError:
    return wrong(place, f"Invalid '{place}': it holds half a character.", "invalid_value")
