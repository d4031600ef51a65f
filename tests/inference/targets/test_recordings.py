"""Every recorded answer of a real server, replayed through the reader and held against its facts."""

import base64
import json
from pathlib import Path
from typing import Any

import h11
import pytest

from inference.phases import derive
from inference.records import RequestRecord, Trace
from inference.requests import GenerationRequest
from inference.targets.http_answer import HttpAnswer
from inference.targets.openai_answer import AnswerReader

FOLDER = Path(__file__).parents[2] / "data" / "recordings"
FACTS: dict[str, dict[str, Any]] = json.loads((FOLDER / "facts.json").read_text(encoding="utf-8"))
SENT_NS = 1_000_000_000
REQUEST = GenerationRequest(id="replayed", prompt="x")


def at(ms: float | None) -> int | None:
    return None if ms is None else SENT_NS + round(ms * 1e6)


def replay(name: str) -> tuple[RequestRecord, AnswerReader]:
    recording = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    trace = Trace("replayed", scheduled_ns=SENT_NS, sent_ns=SENT_NS)
    reader = AnswerReader(trace)
    answer = HttpAnswer(trace, reader)
    if recording["status"] is not None:
        head = h11.Response(status_code=recording["status"], headers=list(recording["headers"].items()))
        answer.take(at(recording["headers_ms"]) or 0, head)
    for ms, data, *encoding in recording["chunks"]:
        raw = base64.b64decode(data) if encoding else data.encode()
        answer.take(at(ms) or 0, h11.Data(data=raw))
    if recording["end"] == "complete":
        answer.take(at(recording["end_ms"]) or 0, h11.EndOfMessage())
    else:
        trace.ended = "client" if recording["end"] == "client_closed" else "cut"
    trace.closed_ns = at(recording["end_ms"])
    reader.finish()
    return derive(trace, REQUEST, open_loop=False), reader


STREAMS = [name for name, facts in FACTS.items() if facts["kind"] == "stream"]
OTHERS = [name for name in FACTS if name not in STREAMS]


@pytest.mark.parametrize("name", STREAMS)
def test_streams_hold_what_the_facts_say(name: str) -> None:
    facts = FACTS[name]
    record, reader = replay(name)
    assert [reader.choice_texts[i] for i in sorted(reader.choice_texts)] == facts["text"]
    assert record.reasoning_text == "".join(facts.get("reasoning", []))
    assert (reader.events, reader.comments) == (facts["events"], facts["comments"])
    assert reader.done_seen == facts["done_marker"]
    if facts["finish"]:
        assert record.finish_reason == facts["finish"][0]
    expected_first = min(
        (
            facts[key]
            for key in (
                "first_token_by_usage_ms",
                "first_text_ms",
                "first_reasoning_ms",
                "first_tool_call_ms",
            )
            if facts.get(key) is not None
        ),
        default=None,
    )
    assert record.stamps["first_ns"] == at(expected_first)
    assert record.detail.get("first_answer_ns") == at(facts["first_text_ms"])
    if facts.get("usage_final"):
        sent = facts["usage_final"]
        assert record.output_tokens == (sum(count for _, count in sent) if len(sent) > 1 else sent[-1][1])
        assert record.input_tokens == sent[-1][0]
        assert record.output_tokens_source == "usage"
    if "error" in facts:
        assert record.error == facts["error"]


@pytest.mark.parametrize("name", STREAMS)
def test_streams_have_the_outcome_of_the_success_rule(name: str) -> None:
    facts = FACTS[name]
    record, _ = replay(name)
    if facts["end"] == "client_closed":
        assert record.outcome == "cancelled"
    elif "error" in facts:
        assert record.outcome == "failed"
    elif not facts["finish"] or facts["end"] == "connection_closed":
        assert record.outcome == "incomplete"
    else:
        assert record.outcome == "success"
    total = sum(
        value or 0.0 for key, value in record.intervals_ms.items() if key in ("decode", "unexplained")
    )
    if record.e2e_ms is not None:
        known = (record.intervals_ms["queue_wait"] or 0.0) + (record.intervals_ms["prefill"] or 0.0)
        assert total + known == pytest.approx(record.e2e_ms, abs=1e-3)
        assert (record.intervals_ms["unexplained"] or 0.0) >= 0.0


@pytest.mark.parametrize("name", OTHERS)
def test_other_answers_keep_error_and_usage(name: str) -> None:
    facts = FACTS[name]
    record, _ = replay(name)
    assert record.ttft_ms is None
    if facts["status"] is None:
        assert record.outcome == "cancelled"
        return
    if facts["status"] == 200:
        assert record.outcome == "success"
        assert [record.input_tokens, record.output_tokens] == facts["usage"]
        return
    assert record.outcome == {400: "rejected", 503: "rate_limited"}.get(facts["status"], "failed")
    if facts.get("error"):
        assert record.error == facts["error"]


def test_running_counts_show_tokens_whose_text_is_held_back() -> None:
    """Emoji in several tokens: the count rises while `content` is empty."""
    record, _ = replay("vllm-0.32/stream_emoji")
    assert sum(tokens or 0 for _, tokens in record.reads) == record.output_tokens == 24
    hidden, _ = replay("vllm-0.32/reasoning/stream_reasoning_hidden")
    assert hidden.reads[0][1] == 7


def test_the_server_s_own_phases_split_the_time_before_the_first_token() -> None:
    record, _ = replay("vllm-0.32/per_request_metrics/queue/request_7")
    queue_ms, prefill_ms = record.intervals_ms["queue_wait"], record.intervals_ms["prefill"]
    assert queue_ms is not None
    assert queue_ms > 3000
    assert prefill_ms is not None
    assert 60 < prefill_ms < 90
    held, _ = replay("llama-cpp/native/load/request_3")
    assert held.intervals_ms["queue_wait"] is not None
    assert held.intervals_ms["queue_wait"] > 1000


def test_an_unchunked_neighbour_is_a_gap_of_seconds() -> None:
    record, _ = replay("vllm-0.32/stall/decoding")
    assert record.max_gap_ms is not None
    assert record.max_gap_ms > 4000
