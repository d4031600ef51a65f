"""Outcome, latencies and intervals of one request, from hand-made traces."""

from typing import Any

import pytest

from inference.phases import INTERVALS, PHASES_SHARE_STEPS, SUMMED, derive, outcome_of
from inference.records import RequestRecord, Trace
from inference.requests import GenerationRequest

MS = 1_000_000
REQUEST = GenerationRequest(id="r", prompt="x", tenant="north", application="search")


def ms(*values: float) -> list[int]:
    return [round(value * MS) for value in values]


def engine_trace(**changes: Any) -> Trace:
    """Scheduled at 0, sent at 1, queued at 2, admitted at 10, tokens at 30, 40, 60, freed at 61 ms."""
    trace = Trace("r", scheduled_ns=0, dispatched_ns=ms(0.5)[0], sent_ns=ms(1)[0])
    trace.queued_ns, trace.admitted_ns = ms(2)[0], ms(10)
    trace.chunks = [(*ms(12, 18), 256), (*ms(20, 30), 100)]
    trace.token_ns = ms(30, 40, 60)
    trace.decode_steps = [(*ms(32, 40),), (*ms(50, 60),)]  # type: ignore[list-item]
    trace.token_ids, trace.output_tokens, trace.output_tokens_source = [5, 6, 7], 3, "engine"
    trace.text, trace.finish_reason, trace.ended = "abc", "length", "orderly"
    trace.finished_ns, trace.freed_ns, trace.closed_ns = ms(60, 61, 62)
    for name, value in changes.items():
        setattr(trace, name, value)
    return trace


def endpoint_trace(**changes: Any) -> Trace:
    """Sent at 0, output at 100, 150 and 200 ms."""
    trace = Trace("r", scheduled_ns=0, dispatched_ns=0, sent_ns=0, headers_ns=ms(5)[0])
    trace.reads = [(ns, None) for ns in ms(100, 150, 200)]
    trace.first_visible_ns = trace.first_answer_ns = ms(100)[0]
    trace.output_tokens, trace.output_tokens_source = 3, "usage"
    trace.text, trace.finish_reason, trace.ended, trace.status = "abc", "stop", "orderly", 200
    trace.closed_ns = ms(205)[0]
    for name, value in changes.items():
        setattr(trace, name, value)
    return trace


def summed(record: RequestRecord) -> float:
    return sum(record.intervals_ms[name] or 0.0 for name in SUMMED)


def test_engine_intervals_add_up_to_the_end_to_end_time() -> None:
    record = derive(engine_trace(), REQUEST, open_loop=True)
    assert record.outcome == "success"
    assert record.e2e_ms == 60
    assert summed(record) == pytest.approx(60, abs=1e-6)
    expected = {
        "dispatch_delay": 1,
        "network": 1,
        "queue_wait": 8,
        "prefill": 20,
        "prefill_compute": 16,
        "prefill_wait": 4,
        "decode": 30,
        "decode_compute": 18,
        "decode_stall": 12,
        "release": 1,
        "unexplained": 0,
    }
    observed = {name: value for name, value in record.intervals_ms.items() if value is not None}
    assert observed == pytest.approx(expected)
    assert set(record.intervals_ms) == set(INTERVALS)


def test_steps_that_mix_phases_are_told_and_change_no_interval() -> None:
    plain = derive(engine_trace(), REQUEST, open_loop=True)
    steps = [(*ms(20, 30), 300, 4), (*ms(32, 40), 200, 5)]
    mixed = derive(engine_trace(mixed_steps=steps), REQUEST, open_loop=True)
    assert mixed.intervals_ms == plain.intervals_ms
    assert summed(mixed) == pytest.approx(60, abs=1e-6)
    assert (plain.flags, mixed.flags) == ([], [PHASES_SHARE_STEPS])
    assert mixed.detail["mixed_prefill_ms"] == pytest.approx(10)  # of the 16 that were computed
    assert mixed.detail["mixed_decode_ms"] == pytest.approx(8)  # of the 18
    assert mixed.detail["mixed_steps"] == [list(step) for step in steps]
    assert not any(name.startswith("mixed") for name in plain.detail)


def test_latencies_start_at_scheduled_in_open_loop_and_at_sent_in_closed() -> None:
    opened, closed = (derive(engine_trace(), REQUEST, open_loop=flag) for flag in (True, False))
    assert (opened.ttft_ms, closed.ttft_ms) == (30, 29)
    assert (opened.e2e_ms, closed.e2e_ms) == (60, 59)
    assert summed(closed) - (closed.intervals_ms["dispatch_delay"] or 0) == pytest.approx(59)


def test_stamps_have_exactly_the_contract_s_names() -> None:
    always = {
        "scheduled_ns", "dispatched_ns", "sent_ns", "queued_ns", "admitted_ns",
        "first_ns", "last_ns", "freed_ns", "closed_ns",
    }  # fmt: skip
    success = derive(engine_trace(), REQUEST, open_loop=True)
    assert set(success.stamps) == always | {"finished_ns"}
    assert success.stamps["first_ns"] == ms(30)[0]
    left = derive(
        engine_trace(ended="client", finished_ns=None, aborted_ns=ms(60)[0]), REQUEST, open_loop=True
    )
    assert set(left.stamps) == always | {"aborted_ns"}
    failed = derive(endpoint_trace(error="gone"), REQUEST, open_loop=True)
    assert set(failed.stamps) == always | {"failed_ns"}
    assert failed.stamps["admitted_ns"] is None  # not observed, unlike an empty list


def test_preemption_shows_as_waiting_to_be_admitted_again() -> None:
    trace = engine_trace(admitted_ns=ms(10, 48), preempted_ns=ms(42), recomputed_tokens=100)
    record = derive(trace, REQUEST, open_loop=True)
    assert record.intervals_ms["requeue_wait"] == 6
    assert record.intervals_ms["decode_stall"] == 6
    assert record.detail["recomputed_tokens"] == 100
    assert summed(record) == pytest.approx(60)


def test_one_token_has_a_decode_of_nothing_and_no_tpot() -> None:
    trace = engine_trace(
        token_ns=ms(30), decode_steps=[], token_ids=[5], output_tokens=1, finished_ns=ms(30)[0]
    )
    record = derive(trace, REQUEST, open_loop=True)
    assert record.intervals_ms["decode"] == 0
    assert record.tpot_ms is record.max_gap_ms is None


def test_tokens_of_one_step_are_one_read() -> None:
    record = derive(engine_trace(token_ns=ms(30, 30, 60)), REQUEST, open_loop=True)
    assert record.reads == [(ms(30)[0], 2), (ms(60)[0], 1)]
    assert record.tpot_ms == 30  # one token after the first read


def test_a_request_left_in_the_queue_has_no_later_interval() -> None:
    trace = Trace("r", scheduled_ns=0, dispatched_ns=0, sent_ns=MS, queued_ns=2 * MS, ended="client")
    trace.aborted_ns = trace.freed_ns = 5 * MS
    record = derive(trace, REQUEST, open_loop=True)
    assert record.outcome == "cancelled"
    assert record.stamps["admitted_ns"] == []
    assert record.intervals_ms["queue_wait"] is record.intervals_ms["unexplained"] is record.e2e_ms is None


def test_the_model_s_loading_is_a_part_of_the_queue_wait() -> None:
    record = derive(engine_trace(model_load_ns=5 * MS), REQUEST, open_loop=True)
    assert (record.intervals_ms["model_load"], record.intervals_ms["queue_wait"]) == (5, 8)


def test_an_endpoint_s_time_to_first_token_is_unexplained_unless_it_tells() -> None:
    record = derive(endpoint_trace(), REQUEST, open_loop=False)
    assert record.intervals_ms["queue_wait"] is record.intervals_ms["prefill"] is None
    assert record.intervals_ms["network"] is record.intervals_ms["release"] is None
    assert (record.intervals_ms["decode"], record.intervals_ms["unexplained"]) == (100, 100)
    told = endpoint_trace(server={"metrics": {"queue_time_ms": 30.0, "time_to_first_token_ms": 60.0}})
    record = derive(told, REQUEST, open_loop=False)
    assert (record.intervals_ms["queue_wait"], record.intervals_ms["prefill"]) == (30, 60)
    assert record.intervals_ms["unexplained"] == pytest.approx(10)
    llama = derive(endpoint_trace(server={"timings": {"prompt_ms": 40.0}}), REQUEST, open_loop=False)
    assert (llama.intervals_ms["queue_wait"], llama.intervals_ms["prefill"]) == (60, 40)


def test_server_phases_that_cannot_be_are_not_used() -> None:
    told = endpoint_trace(server={"metrics": {"queue_time_ms": 300.0, "time_to_first_token_ms": 60.0}})
    record = derive(told, REQUEST, open_loop=False)
    assert record.intervals_ms["queue_wait"] is None
    assert record.intervals_ms["unexplained"] == 100
    assert "server_phases_exceed_the_observed_time" in record.flags


def test_throttling_is_a_part_of_its_own() -> None:
    record = derive(endpoint_trace(throttled_ns=40 * MS), REQUEST, open_loop=False)
    assert (record.intervals_ms["throttled"], record.intervals_ms["unexplained"]) == (40, 60)


def test_tpot_counts_what_came_after_the_first_read() -> None:
    known = derive(
        endpoint_trace(reads=[(100 * MS, 2), (150 * MS, 2), (200 * MS, 4)], output_tokens=8),
        REQUEST,
        open_loop=False,
    )
    assert known.tpot_ms == pytest.approx(100 / 6)
    assert known.flags == []
    unknown = derive(endpoint_trace(output_tokens=8), REQUEST, open_loop=False)
    assert unknown.tpot_ms == pytest.approx(100 / 7)
    assert unknown.flags == ["tokens_per_read_unknown"]


@pytest.mark.parametrize(
    ("changes", "outcome"),
    [
        ({}, "success"),
        ({"error": "x"}, "failed"),
        ({"finish_reason": None}, "incomplete"),
        ({"ended": "cut"}, "incomplete"),
        ({"ended": "cut", "error": "reset"}, "failed"),
        ({"ended": "client"}, "cancelled"),
        ({"ended": "timeout", "error": "late"}, "timeout"),
        ({"ended": "refused", "status": 429}, "rate_limited"),
        ({"ended": "refused", "status": 503}, "rate_limited"),
        ({"ended": "refused", "status": 400}, "rejected"),
        ({"ended": "refused", "status": None}, "rejected"),
        ({"ended": "refused", "status": 401}, "failed"),
        ({"ended": "refused", "status": 500}, "failed"),
        ({"text": "", "reads": [], "output_tokens": 1}, "failed"),  # nothing but the end token
        ({"text": "", "output_tokens": 1, "finish_reason": "length"}, "success"),  # half a character
        ({"text": "", "output_tokens": None, "reads": []}, "failed"),
        ({"text": "", "tool_call_text": "f{}"}, "success"),
        ({"text": "", "reasoning_text": "hm"}, "success"),
    ],
)
def test_the_success_rule(changes: dict[str, Any], outcome: str) -> None:
    assert outcome_of(endpoint_trace(**changes)) == outcome


def test_a_record_survives_its_line() -> None:
    record = derive(engine_trace(), REQUEST, open_loop=True)
    assert RequestRecord.from_json({**record.as_json(), "later_field": 1}) == record
    assert (record.tenant, record.application) == ("north", "search")
