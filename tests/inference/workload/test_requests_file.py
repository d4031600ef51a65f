"""Request files: what is read, and how each fault is named."""

from pathlib import Path

import pytest

from inference.errors import InputError
from inference.requests import CancelRule
from inference.workload.requests_file import read_requests


def written(folder: Path, *lines: str) -> Path:
    path = folder / "requests.jsonl"
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


def test_all_fields_are_read(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        '{"id": "a", "messages": [{"role": "user", "content": "你好"}], "max_tokens": 5, "temperature": 1}',
        "",
        '{"id": 7, "prompt_token_ids": [1, 2], "stop": "x", "top_k": -1, "ignore_eos": true, "seed": 3, '
        '"arrival_s": 0.5, "tenant": "t", "application": "p", '
        '"cancel": {"phase": "decode", "after_tokens": 2}}',
        '{"id": "c", "prompt": "hi"}\r',
        '{"id": "d", "prompt": "hi", "min_p": 0.1, "stop_token_ids": [5, 6], "logprobs": 3, '
        '"priority": "live"}',
    )
    first, second, third, fourth = read_requests(path)
    assert (fourth.min_p, fourth.stop_token_ids, fourth.logprobs, fourth.priority) == (0.1, (5, 6), 3, "live")
    assert (first.messages or ())[0]["content"] == "你好"
    assert (second.id, second.prompt_token_ids, second.stop, second.top_k) == ("7", (1, 2), ("x",), 0)
    assert second.cancel == CancelRule(phase="decode", after_tokens=2)
    assert (third.prompt, third.temperature, third.max_tokens) == ("hi", 0.0, 128)


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ("{", "not JSON"),
        ("[]", "a request is a JSON object, this is a list"),
        ('{"prompt": "x"}', "id is missing"),
        ('{"id": "b"}', "has none of them"),
        (
            '{"id": "b", "prompt": "x", "messages": [{"role": "user", "content": "x"}]}',
            "has messages and prompt",
        ),
        ('{"id": "b", "prompt": ""}', "prompt must be a text that is not empty"),
        ('{"id": "b", "messages": []}', "messages must be a list that is not empty"),
        ('{"id": "b", "messages": [{"content": "x"}]}', "message 1 has no role"),
        ('{"id": "b", "messages": [{"role": "user"}]}', "message 1 has no content"),
        ('{"id": "b", "prompt_token_ids": [1, -2]}', "prompt_token_ids must be whole numbers"),
        ('{"id": "b", "prompt": "x", "max_tokens": 0}', "max_tokens must be from 1"),
        ('{"id": "b", "prompt": "x", "min_p": 1.5}', "min_p must be from 0 to 1"),
        ('{"id": "b", "prompt": "x", "logprobs": 21}', "logprobs must be from 0 to 20"),
        ('{"id": "b", "prompt": "x", "stop_token_ids": ["a"]}', "stop_token_ids must be whole numbers"),
        ('{"id": "b", "prompt": "x", "priority": "high"}', "priority must be one of measured, live"),
        ('{"id": "b", "prompt": "x", "max_tokens": 1.5}', "max_tokens must be a whole number"),
        ('{"id": "b", "prompt": "x", "max_tokens": "9"}', "max_tokens must be a number, is a text"),
        ('{"id": "b", "prompt": "x", "temperature": -1}', "temperature must be from 0"),
        ('{"id": "b", "prompt": "x", "temperature": NaN}', "temperature must be a finite number"),
        ('{"id": "b", "prompt": "x", "temperature": 1' + "0" * 400 + "}", "temperature must be at most 100"),
        ('{"id": "b", "prompt": "x", "max_tokens": 1' + "0" * 400 + "}", "max_tokens must be at most"),
        ('{"id": "b", "prompt": "\\ud800"}', "half of a character"),
        ('{"id": "\\udc00", "prompt": "x"}', "half of a character"),
        ('{"id": "b", "prompt_token_ids": [1, 99999999999999999999]}', "prompt_token_ids must be"),
        ('{"id": "b", "prompt": "x", "top_p": 0}', "top_p must be above 0"),
        ('{"id": "b", "prompt": "x", "top_p": 1.1}', "top_p must be above 0 to 1"),
        ('{"id": "b", "prompt": "x", "arrival_s": -0.1}', "arrival_s must be from 0"),
        ('{"id": "b", "prompt": "x", "min_tokens": 300}', "min_tokens is above max_tokens"),
        ('{"id": "b", "prompt": "x", "stop": [""]}', "stop must be"),
        ('{"id": "b", "prompt": "x", "ignore_eos": 1}', "ignore_eos must be true or false"),
        ('{"id": "b", "prompt": "x", "cancel": {"phase": "later"}}', "cancel needs a phase"),
        (
            '{"id": "b", "prompt": "x", "cancel": {"phase": "decode", "after_tokens": -1}}',
            "cancel.after_tokens",
        ),
        ('{"id": "b", "prompt": "x", "max_token": 5}', "unknown field 'max_token'"),
        ('{"id": "a", "prompt": "x"}', "id 'a' was already used in line 1"),
    ],
)
def test_a_bad_line_is_named(tmp_path: Path, line: str, fault: str) -> None:
    path = written(tmp_path, '{"id": "a", "prompt": "x"}', line)
    with pytest.raises(InputError) as caught:
        read_requests(path)
    assert "line 2:" in str(caught.value)
    assert fault in str(caught.value)


def test_a_line_that_is_no_text_is_named(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    path.write_bytes(b'{"id": "a", "prompt": "x"}\n{"id": "\xff"}\n')
    with pytest.raises(InputError, match="line 2: not UTF-8"):
        read_requests(path)


def test_an_empty_and_a_missing_file_are_said(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="has no request"):
        read_requests(written(tmp_path, "", "  "))
    with pytest.raises(InputError, match="cannot read request file"):
        read_requests(tmp_path / "nowhere.jsonl")


def test_an_escaped_character_in_two_halves_is_one_character(tmp_path: Path) -> None:
    (request,) = read_requests(written(tmp_path, '{"id": "a", "prompt": "\\ud83d\\ude00"}'))
    assert request.prompt == "\U0001f600"
