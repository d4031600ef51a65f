"""Ollama's native answer, one JSON object a line, told as the chunks of an OpenAI answer."""

from collections.abc import Mapping
from typing import Any

#: of the last object: what the server tells of the request, durations in ns
TOLD = (
    "total_duration",
    "load_duration",
    "prompt_eval_count",
    "prompt_eval_duration",
    "eval_count",
    "eval_duration",
)


def as_chunk(line: Mapping[str, Any], *, whole: bool) -> dict[str, Any]:
    """The same as a chunk (or, `whole`, an answer in one piece); an error stays as it is."""
    if "error" in line:
        return dict(line)
    said = line.get("message")
    message: Mapping[str, Any] = said if isinstance(said, dict) else {}
    part = {
        "role": message.get("role"),
        "content": message.get("content"),
        "reasoning": message.get("thinking"),
        "tool_calls": message.get("tool_calls"),
    }
    ended = line.get("done") is True
    choice = {
        "index": 0,
        "message" if whole else "delta": part,
        "finish_reason": (line.get("done_reason") or "stop") if ended else None,
    }
    chunk: dict[str, Any] = {"model": line.get("model"), "choices": [choice]}
    if ended:
        chunk["ollama"] = {name: line[name] for name in TOLD if name in line}
        chunk["usage"] = {
            "prompt_tokens": line.get("prompt_eval_count"),
            "completion_tokens": line.get("eval_count"),
        }
    return chunk


def native_options(fields: Mapping[str, Any]) -> dict[str, Any]:
    """The body of `/api/chat` for the fields of a chat request; unknown options are passed over there."""
    renamed = {"max_tokens": "num_predict", "repetition_penalty": "repeat_penalty"}
    apart = ("model", "messages", "stream", "stream_options")
    options = {renamed.get(name, name): value for name, value in fields.items() if name not in apart}
    return {
        "model": fields["model"],
        "messages": fields["messages"],
        "stream": fields["stream"],
        "options": options,
    }
