"""Ollama's native endpoint: one JSON object a line, durations in ns with the last one."""

import json
from typing import Any

import pytest

from inference.load.generator import LoadPlan, run_load
from inference.targets.openai import OpenAITarget

from .conftest import request
from .fake_server import FakeServer, Script

MS = 1_000_000


def line(**fields: Any) -> bytes:
    return (
        json.dumps(
            {"model": "m", "created_at": "2026-01-01T00:00:00Z", **fields}, ensure_ascii=False
        ).encode()
        + b"\n"
    )


def said(text: str, **more: str) -> bytes:
    return line(message={"role": "assistant", "content": text, **more}, done=False)


END = line(
    message={"role": "assistant", "content": ""},
    done=True,
    done_reason="stop",
    load_duration=10 * MS,
    prompt_eval_count=7,
    prompt_eval_duration=20 * MS,
    eval_count=3,
    eval_duration=9 * MS,
)


async def one(script: Script, **fields: Any) -> tuple[Any, FakeServer]:
    async with FakeServer(lambda body, n: script) as server:
        target = OpenAITarget(server.url, "m", endpoint="ollama", streamed=fields.pop("streamed", True))
        await target.open()
        try:
            result = await run_load(target, [request(**fields)], LoadPlan(concurrency=1))
        finally:
            await target.close()
    return result.records[0], server


async def test_lines_are_tokens_and_the_last_one_tells_the_phases() -> None:
    whole = said("你好") + said(", ") + said("world")
    middle = whole.index("好".encode()) + 1  # a character cut in two
    script = Script(
        [(60, whole[:middle]), (62, whole[middle : middle + 30]), (70, whole[middle + 30 :]), (80, END)],
        content_type="application/x-ndjson",
    )
    record, server = await one(script, max_tokens=5, seed=3)
    assert (record.outcome, record.text, record.finish_reason) == ("success", "你好, world", "stop")
    assert (record.input_tokens, record.output_tokens, record.output_tokens_source) == (7, 3, "usage")
    assert record.intervals_ms["prefill"] == 20.0
    assert record.intervals_ms["model_load"] == 10.0
    assert record.intervals_ms["queue_wait"] == pytest.approx(record.ttft_ms - 20.0)
    seen = server.seen[0]
    assert seen.path == "/api/chat"
    assert seen.body["options"] == {"num_predict": 5, "temperature": 0.0, "seed": 3}


async def test_an_error_in_the_middle_and_a_cut_are_no_success() -> None:
    failed, _ = await one(
        Script([(5, said("a")), (6, line(error="out of memory"))], content_type="application/x-ndjson")
    )
    assert (failed.outcome, failed.error) == ("failed", "out of memory")
    cut, _ = await one(Script([(5, said("a"))], content_type="application/x-ndjson"))
    assert cut.outcome == "incomplete"


async def test_an_answer_in_one_piece_has_no_first_token() -> None:
    body = json.loads(END) | {"message": {"role": "assistant", "content": "hello", "thinking": "hm"}}
    script = Script([(5, json.dumps(body).encode())], content_type="application/json")
    record, _ = await one(script, streamed=False)
    assert (record.outcome, record.text, record.reasoning_text, record.ttft_ms) == (
        "success",
        "hello",
        "hm",
        None,
    )
