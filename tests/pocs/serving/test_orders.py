"""What a body must be, and how each refusal names its parameter."""

from typing import Any

import pytest

from pocs.serving.errors import ApiError
from pocs.serving.orders import parse

CHAT: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "Hi"}]}
TEXT: dict[str, Any] = {"model": "m", "prompt": "Hi"}

WRONG_CHATS: list[tuple[dict[str, Any], str, str]] = [
    ({"model": None}, "model", "missing_required_parameter"),
    ({"model": 3}, "model", "invalid_type"),
    ({"messages": None}, "messages", "missing_required_parameter"),
    ({"messages": []}, "messages", "empty_array"),
    ({"messages": "Hi"}, "messages", "invalid_type"),
    ({"messages": ["Hi"]}, "messages[0]", "invalid_type"),
    ({"messages": [{"role": "robot", "content": "Hi"}]}, "messages[0].role", "invalid_value"),
    ({"messages": [{"role": "tool", "content": "Hi"}]}, "messages[0].role", "unsupported_value"),
    ({"messages": [{"role": "user"}]}, "messages[0].content", "invalid_type"),
    ({"messages": [{"role": "user", "content": 3}]}, "messages[0].content", "invalid_type"),
    ({"messages": [{"role": "user", "content": "\ud83d"}]}, "messages[0].content", "invalid_value"),
    (
        {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}]},
        "messages[0].content[0].type",
        "unsupported_value",
    ),
    (
        {"messages": [{"role": "user", "content": [{"type": "text"}]}]},
        "messages[0].content[0].text",
        "invalid_type",
    ),
    ({"temperature": 2.5}, "temperature", "decimal_above_max_value"),
    ({"temperature": "hot"}, "temperature", "invalid_type"),
    ({"temperature": True}, "temperature", "invalid_type"),
    ({"top_p": -0.1}, "top_p", "decimal_below_min_value"),
    ({"presence_penalty": 3}, "presence_penalty", "decimal_above_max_value"),
    ({"max_tokens": 0}, "max_tokens", "integer_below_min_value"),
    ({"max_tokens": 1.5}, "max_tokens", "invalid_type"),
    ({"max_tokens": 10**30}, "max_tokens", "integer_above_max_value"),
    ({"max_tokens": 4, "max_completion_tokens": 5}, "max_tokens", "invalid_value"),
    ({"max_tokens": 4, "min_tokens": 5}, "min_tokens", "invalid_value"),
    ({"n": 2}, "n", "unsupported_value"),
    ({"n": 0}, "n", "integer_below_min_value"),
    ({"stop": 3}, "stop", "invalid_type"),
    ({"stop": ["a", ""]}, "stop", "invalid_value"),
    ({"stop": ["a", "b", "c", "d", "e"]}, "stop", "array_above_max_length"),
    ({"seed": "x"}, "seed", "invalid_type"),
    ({"stream": "yes"}, "stream", "invalid_type"),
    ({"stream_options": {"include_usage": True}}, "stream_options", "invalid_value"),
    ({"stream": True, "stream_options": {"include": 1}}, "stream_options.include", "unknown_parameter"),
    ({"stream": True, "stream_options": 1}, "stream_options", "invalid_type"),
    ({"top_logprobs": 3}, "top_logprobs", "invalid_value"),
    ({"logprobs": True, "top_logprobs": 21}, "top_logprobs", "integer_above_max_value"),
    ({"tools": [{"type": "function"}]}, "tools", "unsupported_parameter"),
    ({"response_format": {"type": "json_object"}}, "response_format", "unsupported_parameter"),
    ({"logit_bias": {"5": 1}}, "logit_bias", "unsupported_parameter"),
    ({"store": True}, "store", "unsupported_parameter"),
    ({"frobnicate": 1}, "frobnicate", "unknown_parameter"),
]


@pytest.mark.parametrize(("change", "param", "code"), WRONG_CHATS, ids=lambda value: str(value)[:40])
def test_a_wrong_chat_names_its_parameter(change: dict[str, Any], param: str, code: str) -> None:
    with pytest.raises(ApiError) as refused:
        parse("chat", CHAT | change)
    error = refused.value.body()["error"]
    assert refused.value.status == 400
    assert (error["param"], error["code"]) == (param, code)
    assert error["type"] == "invalid_request_error"
    assert error["message"]


@pytest.mark.parametrize(
    ("change", "param"),
    [
        ({"prompt": None}, "prompt"),
        ({"prompt": ["one", "two"]}, "prompt"),
        ({"prompt": []}, "prompt"),
        ({"prompt": [1, -2]}, "prompt"),
        ({"prompt": [1, True]}, "prompt"),
        ({"best_of": 2}, "best_of"),
        ({"echo": True}, "echo"),
        ({"suffix": "end"}, "suffix"),
        ({"logprobs": 6}, "logprobs"),
        ({"messages": []}, "messages"),
    ],
)
def test_a_wrong_completion_names_its_parameter(change: dict[str, Any], param: str) -> None:
    with pytest.raises(ApiError) as refused:
        parse("text", TEXT | change)
    assert refused.value.param == param


@pytest.mark.parametrize("body", [[], "x", 3, None])
def test_a_body_must_be_an_object(body: Any) -> None:
    with pytest.raises(ApiError):
        parse("chat", body)


def test_what_asks_for_nothing_is_taken() -> None:
    calm = {
        "n": 1,
        "tools": [],
        "tool_choice": "none",
        "response_format": {"type": "text"},
        "logit_bias": {},
        "store": False,
        "user": "someone",
        "metadata": {"a": "b"},
        "service_tier": "auto",
        "stop": None,
        "temperature": None,
        "stream_options": None,
    }
    order = parse("chat", CHAT | calm)
    assert order.fields["temperature"] == 1.0
    assert order.fields["stop"] == []


def test_prompts_in_their_forms() -> None:
    assert parse("text", TEXT | {"prompt": ["one"]}).fields["prompt"] == "one"
    assert parse("text", TEXT | {"prompt": [1, 2]}).fields["prompt_token_ids"] == [1, 2]
    assert parse("text", TEXT | {"prompt": [[1, 2]]}).fields["prompt_token_ids"] == [1, 2]
    assert parse("text", TEXT | {"prompt": "one"}).fields["prompt"] == "one"


def test_a_top_p_of_nothing_takes_the_most_probable_token() -> None:
    fields = parse("chat", CHAT | {"top_p": 0}).fields
    assert (fields["top_p"], fields["top_k"]) == (1.0, 1)


def test_an_order_shows_nothing_of_its_prompt() -> None:
    assert "Hi" not in repr(parse("chat", CHAT))
