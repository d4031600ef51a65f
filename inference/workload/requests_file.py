"""Reads a request file: one JSON object a line, each fault reported with its line and what is wrong."""

import json
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from inference.errors import InputError
from inference.requests import MAX_LOGPROBS, PRIORITIES, CancelRule, GenerationRequest

CONTENT_FIELDS = ("messages", "prompt", "prompt_token_ids")
ROLES = ("system", "developer", "user", "assistant", "tool")
PHASES = ("queue", "prefill", "decode")
_HIGHEST_TOKEN_ID = 2**31 - 1
_LONGEST_BITS = 128  # a longer whole number has no float to compare with

#: name → (kind, lowest, highest, lowest itself allowed)
_NUMBERS: dict[str, tuple[type, float, float, bool]] = {
    "max_tokens": (int, 1, 1_000_000, True),
    "min_tokens": (int, 0, 1_000_000, True),
    "temperature": (float, 0, 100, True),
    "top_p": (float, 0, 1, False),
    "top_k": (int, -1, 10_000_000, True),  # -1 and 0: all
    "seed": (int, -(2**63), 2**64 - 1, True),
    "presence_penalty": (float, -2, 2, True),
    "frequency_penalty": (float, -2, 2, True),
    "repetition_penalty": (float, 0, 100, False),
    "min_p": (float, 0, 1, True),
    "logprobs": (int, 0, MAX_LOGPROBS, True),  # alternatives told beside each token
    "arrival_s": (float, 0, 10_000_000, True),
    "think_s": (float, 0, 86_400, True),
}


def read_requests(path: str | Path) -> list[GenerationRequest]:
    """All requests of a file, in its order; blank lines are passed over.

    Raises InputError naming file, line and fault: no JSON, no request, an unknown or ill-typed field, a
    value out of range, an id used twice, or a file without any request.
    """
    try:
        raw = Path(path).read_bytes()
    except OSError as fault:
        raise InputError(f"cannot read request file {path}: {fault.strerror or fault}") from fault
    requests: list[GenerationRequest] = []
    line_of_id: dict[str, int] = {}
    position: dict[str, int] = {}
    followed: set[str] = set()
    for number, line in enumerate(raw.removeprefix(b"\xef\xbb\xbf").split(b"\n"), start=1):
        where = f"{path}, line {number}"
        try:
            text = line.decode("utf-8").strip()
        except UnicodeDecodeError as fault:
            raise InputError(f"{where}: not UTF-8 text") from fault
        if not text:
            continue
        request = parse_request(_json_object(text, where), where=where)
        if request.id in line_of_id:
            raise InputError(f"{where}: id {request.id!r} was already used in line {line_of_id[request.id]}")
        if request.follows is not None:
            before = requests[position[request.follows]] if request.follows in position else None
            _check_turn(request, before, request.follows in followed, where)
            followed.add(request.follows)
        position[request.id] = len(requests)
        line_of_id[request.id] = number
        requests.append(request)
    if not requests:
        raise InputError(f"{path}: the file has no request")
    return requests


def _check_turn(
    request: GenerationRequest, before: GenerationRequest | None, taken: bool, where: str
) -> None:
    """A turn follows one request before it, which nothing else follows, and both are chats."""
    if before is None:
        raise InputError(f"{where}: follows {request.follows!r}, which is no earlier line")
    if before.messages is None or request.messages is None:
        raise InputError(f"{where}: a turn that follows another needs messages, and so does the other")
    if taken:
        raise InputError(f"{where}: follows {request.follows!r}, which another line follows already")


def parse_request(row: Mapping[str, Any], *, where: str) -> GenerationRequest:
    """One request from its JSON object; `where` opens the message of the InputError."""
    unknown = sorted(set(row) - {"id", *CONTENT_FIELDS, *_READERS})
    if unknown:
        raise InputError(f"{where}: unknown field {unknown[0]!r}")
    identity = row.get("id")
    if not isinstance(identity, str | int) or isinstance(identity, bool) or identity == "":
        raise InputError(f"{where}: id is missing" if identity is None else f"{where}: id must be a text")
    given = [name for name in CONTENT_FIELDS if row.get(name) is not None]
    if len(given) != 1:
        found = " and ".join(given) if given else "none of them"
        raise InputError(f"{where}: needs exactly one of {', '.join(CONTENT_FIELDS)}, has {found}")
    values: dict[str, Any] = {"id": str(identity), given[0]: _content(row, given[0], where)}
    for name, read in _READERS.items():
        if row.get(name) is not None:
            values[name] = read(row[name], name, where)
    values["top_k"] = max(0, values.get("top_k", 0))
    if values.get("min_tokens", 0) > values.get("max_tokens", GenerationRequest.max_tokens):
        raise InputError(f"{where}: min_tokens is above max_tokens")
    return GenerationRequest(**values)


def _json_object(text: str, where: str) -> Mapping[str, Any]:
    try:
        row = json.loads(text)
    except (ValueError, RecursionError) as fault:
        raise InputError(f"{where}: not JSON ({fault})") from fault
    if "\\u" in text and not _writable(row):
        raise InputError(f"{where}: a text has half of a character (a lone surrogate)")
    if not isinstance(row, dict):
        raise InputError(f"{where}: a request is a JSON object, this is {_kind(row)}")
    return row


def _writable(row: Any) -> bool:
    """Whether every text in it can be sent: JSON's escapes can name halves of characters, UTF-8 cannot."""
    try:
        json.dumps(row, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return False
    return True


def _content(row: Mapping[str, Any], name: str, where: str) -> Any:
    value = row[name]
    if name == "prompt":
        if not isinstance(value, str) or not value:
            raise InputError(f"{where}: prompt must be a text that is not empty")
        return value
    if not isinstance(value, list) or not value:
        raise InputError(f"{where}: {name} must be a list that is not empty")
    if name == "prompt_token_ids":
        return _token_ids(value, name, where)
    for position, message in enumerate(value, start=1):
        if not isinstance(message, dict):
            raise InputError(f"{where}: message {position} must be an object, is {_kind(message)}")
        if message.get("role") not in ROLES:
            raise InputError(f"{where}: message {position} has no role of {', '.join(ROLES)}")
        content = message.get("content")
        if not isinstance(content, str | list) and not message.get("tool_calls"):
            raise InputError(f"{where}: message {position} has no content")
    return tuple(value)


def _token_ids(value: Any, name: str, where: str) -> tuple[int, ...]:
    whole = isinstance(value, list) and all(isinstance(i, int) and not isinstance(i, bool) for i in value)
    if not whole or not value or not 0 <= min(value) <= max(value) <= _HIGHEST_TOKEN_ID:
        raise InputError(f"{where}: {name} must be whole numbers from 0 to {_HIGHEST_TOKEN_ID}")
    return tuple(value)


def _priority(value: Any, name: str, where: str) -> str:
    if value not in PRIORITIES:
        raise InputError(f"{where}: {name} must be one of {', '.join(PRIORITIES)}")
    return str(value)


def _number(value: Any, name: str, where: str) -> int | float:
    kind, lowest, highest, lowest_allowed = _NUMBERS[name]
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InputError(f"{where}: {name} must be a number, is {_kind(value)}")
    if isinstance(value, int) and not lowest <= value <= highest and value.bit_length() > _LONGEST_BITS:
        raise InputError(f"{where}: {name} must be at most {highest:g}, has {len(str(value))} digits")
    if not math.isfinite(value) or (kind is int and value != int(value)):
        raise InputError(
            f"{where}: {name} must be a {'whole' if kind is int else 'finite'} number, is {value}"
        )
    if not lowest <= value <= highest or (value == lowest and not lowest_allowed):
        bound = f"from {lowest:g}" if lowest_allowed else f"above {lowest:g}"
        raise InputError(f"{where}: {name} must be {bound} to {highest:g}, is {value}")
    return kind(value)


def _flag(value: Any, name: str, where: str) -> bool:
    if not isinstance(value, bool):
        raise InputError(f"{where}: {name} must be true or false")
    return value


def _text(value: Any, name: str, where: str) -> str:
    if not isinstance(value, str):
        raise InputError(f"{where}: {name} must be a text")
    return value


def _stop(value: Any, name: str, where: str) -> tuple[str, ...]:
    texts = [value] if isinstance(value, str) else value
    if not isinstance(texts, list) or not all(isinstance(text, str) and text for text in texts):
        raise InputError(f"{where}: {name} must be a text or a list of texts that are not empty")
    return tuple(texts)


def _cancel(value: Any, name: str, where: str) -> CancelRule:
    if not isinstance(value, dict) or value.get("phase") not in PHASES:
        raise InputError(f"{where}: {name} needs a phase of {', '.join(PHASES)}")
    after_tokens = value.get("after_tokens", 0)
    if not isinstance(after_tokens, int) or isinstance(after_tokens, bool) or after_tokens < 0:
        raise InputError(f"{where}: {name}.after_tokens must be a whole number from 0")
    return CancelRule(phase=value["phase"], after_tokens=after_tokens)


def _kind(value: Any) -> str:
    names = {str: "a text", bool: "true or false", list: "a list", dict: "an object", type(None): "null"}
    return names.get(type(value), "a number")


_READERS: dict[str, Callable[[Any, str, str], Any]] = {
    **dict.fromkeys(_NUMBERS, _number),
    "stop": _stop,
    "stop_token_ids": _token_ids,
    "priority": _priority,
    "ignore_eos": _flag,
    "tenant": _text,
    "application": _text,
    "namespace": _text,
    "follows": _text,
    "cancel": _cancel,
}
