"""The diagnosis of single requests: the place of their time, and who else was there."""

import pytest

from inference.diagnosis import diagnose, diagnose_request
from inference.diagnosis.crowd import Crowd, Span
from tests.inference.diagnosis.making import START_NS, timed
from tests.inference.diagnosis.test_verdict import summary


def test_a_request_that_waited_while_others_ran() -> None:
    """The whole wait of 2.5 s, 32 others were in the batch."""
    crowd = Crowd([Span(0.0, 0.0, 10_000.0)] * 32 + [Span(100.0, 2600.0, 4100.0)])

    found = diagnose_request(
        {"queue_wait": 2500.0, "prefill": 500.0, "decode": 1000.0},
        e2e_ms=4000.0,
        sent_ms=100.0,
        crowd=crowd,
        samples=[{"at_ms": 500.0, "kv_usage": 0.9}, {"at_ms": 5000.0, "kv_usage": 1.0}],
    )

    main = found["main"]
    assert main["code"] == "request_queue"
    assert main["figures"]["share"] == pytest.approx(0.625)
    assert main["figures"]["running"] == 32
    assert main["figures"]["kv_usage_peak"] == 0.9
    assert [item["code"] for item in found["also"]] == ["request_decode"]
    assert found["also"][0]["figures"]["running"] == 32


def test_a_preemption_is_named_however_short() -> None:
    found = diagnose_request(
        {"prefill": 10.0, "decode": 990.0, "requeue_wait": 50.0},
        e2e_ms=1000.0,
        facts={"preemptions": 1, "recomputed_tokens": 40},
    )

    assert found["main"]["code"] == "request_decode"
    assert found["also"][0]["code"] == "request_preemption"
    assert found["also"][0]["figures"]["recomputed_tokens"] == 40


def test_the_clients_own_delay_is_part_of_an_open_loop_only() -> None:
    intervals = {"dispatch_delay": 900.0, "decode": 100.0}

    assert diagnose_request(intervals, e2e_ms=1000.0)["main"]["code"] == "request_dispatch"
    assert diagnose_request(intervals, e2e_ms=100.0)["main"]["code"] == "request_decode"


def test_a_request_without_intervals_is_not_observed() -> None:
    assert diagnose_request({}, e2e_ms=None)["main"]["code"] == "request_not_observed"


def test_a_run_names_its_slowest_requests_with_their_place() -> None:
    records = [timed(i, sent_ms=0.0, queue_wait=i * 100.0, prefill=50.0, decode=100.0) for i in range(30)]
    telemetry = [{"at_ms": 100.0, "kv_usage": 0.5}]

    found = diagnose(records, summary(), telemetry=telemetry, started_ns=START_NS)["slowest"]

    assert [item["index"] for item in found] == list(range(29, 19, -1))
    assert found[0]["main"]["code"] == "request_queue"
    assert found[0]["main"]["figures"]["kv_usage_peak"] == 0.5
    assert found[0]["main"]["figures"]["running"] == 1
