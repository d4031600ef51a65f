"""Endpoints that answer nonsense: each request ends in a named outcome, and the files can be written."""

import json
from pathlib import Path
from typing import Any

import pytest

from inference.errors import InputError
from inference.load.session import write_json
from inference.load.simulator import SimulatedTimes
from inference.records import Trace
from inference.targets.openai_answer import AnswerReader, parse_json

from .conftest import Ask
from .fake_server import DONE, Script, event

FINISH = b'data: {"choices": [{"delta": {}, "finish_reason": "stop"}], "usage": %s}\n\n'
WORD = event({"choices": [{"index": 0, "delta": {"content": "word"}, "finish_reason": None}]})


def ended(usage: bytes) -> list[tuple[float, bytes]]:
    return [(0, WORD), (1, FINISH % usage), (1, DONE)]


@pytest.mark.parametrize(
    "usage",
    [
        b'{"completion_tokens": NaN, "prompt_tokens": 1e400}',
        b'{"completion_tokens": Infinity, "prompt_tokens": -3}',
        b'{"completion_tokens": "five", "prompt_tokens": []}',
        b'{"completion_tokens": -1, "prompt_tokens_details": 7}',
        b"5",
    ],
)
async def test_a_count_that_is_none_was_not_observed(ask: Ask, usage: bytes, tmp_path: Path) -> None:
    result = await ask(Script(ended(usage)))
    (record,) = result.records
    assert (record.outcome, record.input_tokens) == ("success", None)
    assert (record.output_tokens, record.output_tokens_source) == (1, "reads")
    write_json(tmp_path / "record.json", record.as_json())


@pytest.mark.parametrize(
    "data",
    [
        b"data: " + b"[" * 100_000 + b"\n\n",
        b'data: {"choices": 5}\n\n',
        b'data: {"choices": [{"index": [], "delta": {"content": "word"}}]}\n\n',
        b'data: {"choices": [{"delta": {"tool_calls": 5}}]}\n\n',
    ],
)
async def test_what_has_another_shape_is_no_crash(ask: Ask, data: bytes) -> None:
    (record,) = (await ask(Script([(0, data)]))).records
    assert record.outcome == "incomplete"
    assert record.error


async def test_figures_that_are_not_finite_are_null_in_the_file(ask: Ask, tmp_path: Path) -> None:
    timings = b'data: {"choices": [], "timings": {"prompt_ms": NaN, "predicted_ms": 1e999, "cache_n": 4}}\n\n'
    (record,) = (await ask(Script([(0, WORD), (1, timings), *ended(b"null")[1:]]))).records
    write_json(tmp_path / "record.json", record.as_json())
    kept: Any = json.loads((tmp_path / "record.json").read_text())
    assert kept["server"]["timings"] == {"prompt_ms": None, "predicted_ms": None, "cache_n": 4}


@pytest.mark.parametrize("seconds", ["²", "9" * 400, "-5", "1.2.3", "soon"])
async def test_a_wait_that_is_none_is_not_obeyed(ask: Ask, seconds: str) -> None:
    script = Script([(0, b"{}")], status=429, headers={"Retry-After": seconds.encode().decode("latin-1")})
    (record,) = (await ask(script)).records
    assert record.outcome == "rate_limited"
    assert "retry_after_s" not in record.server


def test_halves_of_a_character_are_put_together_over_events() -> None:
    trace = Trace("a")
    reader = AnswerReader(trace)
    for half in ("\\ud83d", "\\ude00", "\\ud800"):
        reader.feed(1, b'data: {"choices": [{"delta": {"content": "%s"}}]}\n\n' % half.encode())
    reader.finish()
    assert trace.text == "\U0001f600\N{REPLACEMENT CHARACTER}"


def test_too_deep_json_is_no_json() -> None:
    with pytest.raises(ValueError, match="nested too deeply"):
        parse_json("[" * 100_000)


def test_an_infinite_figure_never_loses_a_measurement(tmp_path: Path) -> None:
    write_json(tmp_path / "summary.json", {"memory": [{"peak": float("inf")}, 3.5]})
    assert json.loads((tmp_path / "summary.json").read_text()) == {"memory": [{"peak": None}, 3.5]}


@pytest.mark.parametrize("ms", [float("nan"), float("inf"), -1.0])
def test_a_simulator_needs_times(ms: float) -> None:
    with pytest.raises(InputError):
        SimulatedTimes(ttft_ms=ms)
