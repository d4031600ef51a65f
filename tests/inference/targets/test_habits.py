"""Habits told from recorded answers, and what would mislead a client that reads naively."""

from typing import Any

import pytest

from inference.targets.habits import HABITS, model_habits, stream_habits, too_long_prompt, unknown_model

from .recorded import LLAMA, VLLM
from .test_recordings import replay


def effects(name: str) -> dict[str, str]:
    return {habit["code"]: habit["effect"] for habit in stream_habits(replay(name)[0])}


@pytest.mark.parametrize(
    ("name", "code", "effect"),
    [
        (f"{VLLM}/stream_plain", "answers", "harmless"),
        (f"{VLLM}/stream_plain", "early_headers", "misleads"),  # 200 within milliseconds, even when queued
        (f"{VLLM}/stream_plain", "one_piece", "not_seen"),
        (f"{VLLM}/stream_usage", "no_usage", "not_seen"),
        (f"{VLLM}/stream_emoji", "held_back", "misleads"),
        (f"{VLLM}/stream_emoji", "broken_characters", "not_seen"),
        (f"{VLLM}/stream_usage_continuous", "running_usage", "misleads"),
        (f"{VLLM}/stream_interval_4/stream_continuous", "many_tokens_a_read", "misleads"),
        (f"{VLLM}/reasoning/stream_reasoning_then_content", "reasoning", "misleads"),
        (f"{VLLM}/per_request_metrics/queue/request_7", "phases", "harmless"),
        (f"{VLLM}/per_request_metrics/queue/request_7", "comments", "misleads"),
        (f"{VLLM}/stream_plain", "phases", "limits"),
        (f"{VLLM}/engine_crash/request_0", "done_after_failure", "misleads"),
        (f"{VLLM}/tools/stream_required", "answers", "harmless"),
        (f"{LLAMA}/stream_usage", "phases", "harmless"),
        (f"{LLAMA}/stream_usage", "cached_tokens", "harmless"),
        ("llama-cpp/python/stream_usage", "no_usage", "misleads"),  # asked for, and not sent
        ("llama-cpp/python/two_at_once/request_0", "no_finish_reason", "misleads"),
        ("llama-cpp/python/two_at_once/request_0", "done_after_failure", "misleads"),
        (f"{VLLM}/full_plain", "one_piece", "misleads"),
    ],
)
def test_a_habit_is_seen_in_what_was_recorded(name: str, code: str, effect: str) -> None:
    assert effects(name)[code] == effect


def test_a_model_that_nobody_has_is_answered_by_one_server_and_refused_by_the_other() -> None:
    assert unknown_model(replay(f"{LLAMA}/accepted_unknown_model")[0])["effect"] == "misleads"
    assert unknown_model(replay(f"{VLLM}/error_unknown_model")[0])["effect"] == "not_seen"


def test_a_refusal_in_the_guise_of_a_success() -> None:
    assert too_long_prompt(replay("llama-cpp/python/error_prompt_too_long_stream")[0])["effect"] == "misleads"
    assert too_long_prompt(replay(f"{VLLM}/error_prompt_too_long_stream")[0])["effect"] == "not_seen"


def test_an_answer_that_names_another_model() -> None:
    record = replay(f"{VLLM}/stream_plain")[0]
    assert model_habits(record, "smollm2")[0]["effect"] == "not_seen"
    assert model_habits(record, "gpt-9")[0]["effect"] == "misleads"


def test_each_habit_says_why_and_what_is_done() -> None:
    seen: dict[str, Any] = {}
    for name in (f"{VLLM}/stream_plain", f"{VLLM}/full_plain", "llama-cpp/python/two_at_once/request_0"):
        for habit in stream_habits(replay(name)[0]):
            seen[habit["code"]] = habit
    assert set(seen) <= set(HABITS)
    assert all(habit["why_it_matters"] and habit["handled"] and habit["name"] for habit in seen.values())
