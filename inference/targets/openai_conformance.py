"""Which habits an endpoint has: a few small requests, and what was seen of each answer."""

import time
from collections.abc import Callable
from typing import Any

from inference.phases import derive
from inference.records import RequestRecord, Trace
from inference.requests import CancelRule, GenerationRequest
from inference.targets.base import TargetInfo
from inference.targets.habits import (
    Habit,
    characters,
    habit,
    model_habits,
    outcome_text,
    stream_habits,
    too_long_prompt,
    unknown_model,
)
from inference.targets.openai import OpenAITarget

SCHEMA = "phasegate-conformance/1"
UNKNOWN_MODEL = "no-such-model"
#: a prompt beyond the model's length is tried up to this length only; it costs nothing where it is refused
LONGEST_TRIED_TOKENS = 40_000
OnStep = Callable[[int, int], None]

#: the requests of one stream each: (name, text, fields)
STREAMED: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("plain", "Count from one to ten in words.", {"max_tokens": 16}),
    ("one", "Say yes.", {"max_tokens": 1}),
    ("chinese", "请用中文说：你好，世界。再写三个表情符号：😀🚀🎉", {"max_tokens": 24}),
    ("stop", "Count: one, two, three, four, five.", {"max_tokens": 32, "stop": (" ",)}),
    (
        "left",
        "Write a long story.",
        {"max_tokens": 64, "cancel": CancelRule(phase="decode", after_tokens=2)},
    ),
)


async def conformance(
    url: str,
    model: str,
    *,
    api_key: str | None = None,
    endpoint: str = "chat",
    on_step: OnStep | None = None,
) -> dict[str, Any]:
    """`{"schema", "target", "dialect", "habits"}`; a habit is as in `inference.targets.habits`.

    Sends eight requests of a few tokens; `on_step(done, of)` after each. Raises TargetUnavailable when the
    endpoint cannot be reached and InputError for a wrong URL.
    """
    steps, done = len(STREAMED) + 3, 0

    def step() -> None:
        nonlocal done
        done += 1
        if on_step:
            on_step(done, steps)

    options: dict[str, Any] = {"api_key": api_key, "endpoint": endpoint}
    target = OpenAITarget(url, model, **options)
    records: dict[str, RequestRecord] = {}
    try:
        info = await target.open()
        for name, text, fields in STREAMED:
            records[name] = await _ask(target, name, text, **fields)
            step()
        long_one = await _too_long(target, info)
        step()
    finally:
        await target.close()
    whole = await _once(OpenAITarget(url, model, streamed=False, **options), "whole")
    step()
    unknown = await _once(OpenAITarget(url, UNKNOWN_MODEL, **options), "unknown")
    step()
    return {
        "schema": SCHEMA,
        "target": {"kind": info.kind, "model": info.model, **info.configuration},
        "dialect": target.dialect_label,
        "habits": [*habits_of(records, model), *_of_refusals(whole, unknown, long_one)],
    }


def habits_of(records: dict[str, RequestRecord], model: str) -> list[Habit]:
    """The habits that the streamed answers show, the most telling one for each."""
    found: dict[str, Habit] = {}
    for name in ("plain", "chinese"):
        for one in stream_habits(records[name]):
            if one["code"] not in found or _weight(one) > _weight(found[one["code"]]):
                found[one["code"]] = one
    found["broken_characters"] = characters(records["chinese"])
    single = records["one"]
    ended = single.outcome == "success"
    found["one_token"] = habit("one_token", outcome_text(single), "harmless" if ended else "limits")
    found["stop_text"] = habit("stop_text", outcome_text(records["stop"]), "harmless")
    left = records["left"]
    cancelled = left.outcome == "cancelled"
    found["leaving"] = habit("leaving", outcome_text(left), "harmless" if cancelled else "limits")
    return [*found.values(), *model_habits(records["plain"], model)]


def _of_refusals(whole: RequestRecord, unknown: RequestRecord, long_one: RequestRecord | None) -> list[Habit]:
    not_streamed = habit(
        "not_streamed", outcome_text(whole), "harmless" if whole.outcome == "success" else "limits"
    )
    found = [not_streamed, unknown_model(unknown)]
    return found if long_one is None else [*found, too_long_prompt(long_one)]


def _weight(one: Habit) -> int:
    return ("not_seen", "harmless", "limits", "misleads").index(one["effect"])


async def _too_long(target: OpenAITarget, info: TargetInfo) -> RequestRecord | None:
    """A prompt that cannot fit; None where the longest possible is not told, or is too long to try."""
    longest = info.max_model_tokens
    if longest is None or longest > LONGEST_TRIED_TOKENS:
        return None
    return await _ask(target, "long", "word " * (longest + 64), max_tokens=1)


async def _once(target: OpenAITarget, name: str) -> RequestRecord:
    try:
        return await _ask(target, name, "Say yes.", max_tokens=4)
    finally:
        await target.close()


async def _ask(target: OpenAITarget, name: str, text: str, **fields: Any) -> RequestRecord:
    content: dict[str, Any] = (
        {"messages": ({"role": "user", "content": text},)}
        if target.endpoint != "completions"
        else {"prompt": text}
    )
    request = GenerationRequest(id=f"conformance-{name}", **content, **fields)
    now_ns = time.monotonic_ns()
    trace = Trace(request.id, scheduled_ns=now_ns, dispatched_ns=now_ns)
    await target.run(request, trace)
    return derive(trace, request, open_loop=False)
