"""What streams of real servers must be read as: outcome, first token, tokens, text."""

import pytest

from inference.load.generator import LoadPlan, LoadResult
from inference.records import RequestRecord
from inference.stats import summarise

from .conftest import Ask, request
from .fake_server import DONE, FakeServer, Script, answer, chunk, event, usage

WORDS = ["one ", "two ", "three ", "four"]
SLACK_MS = 60  # a busy machine may deliver a read this much late, never early


def only(result: LoadResult) -> RequestRecord:
    (record,) = result.records
    return record


def assert_about(value: float | None, expected_ms: float) -> None:
    assert value is not None
    assert expected_ms - 2 <= value <= expected_ms + SLACK_MS


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("space", [" ", ""])
async def test_line_ends_and_the_missing_space(ask: Ask, end: str, space: str) -> None:
    record = only(await ask(Script(answer(WORDS, end=end, space=space))))
    assert (record.outcome, record.output_tokens, record.text) == ("success", 4, "one two three four")
    assert record.output_tokens_source == "usage"
    assert [tokens for _, tokens in record.reads] == [1, 1, 1, 1]
    assert_about(record.ttft_ms, 40)


async def test_a_role_chunk_is_no_token(ask: Ask) -> None:
    role = (5, event(chunk({"role": "assistant", "content": ""})))
    record = only(await ask(Script([role, *answer(WORDS)])))
    assert_about(record.ttft_ms, 40)
    assert len(record.reads) == 4
    assert record.detail["role_ns"] < record.reads[0][0]


async def test_an_error_event_then_done_is_a_failure_that_keeps_its_tokens(ask: Ask) -> None:
    writes = answer(WORDS[:2], finish=None, with_usage=False, done=False)
    writes += [(60, event({"error": {"message": "the engine died", "code": 500}})), (60, DONE)]
    record = only(await ask(Script(writes)))
    assert (record.outcome, record.error, record.output_tokens) == ("failed", "the engine died", 2)
    assert record.text == "one two "
    assert record.output_tokens_source == "reads"


async def test_a_cut_stream_is_incomplete(ask: Ask) -> None:
    writes = answer(WORDS[:2], finish=None, with_usage=False, done=False)
    for script in (Script(writes, ended=False), Script(writes, ended=False, chunked=False), Script(writes)):
        record = only(await ask(script))
        assert (record.outcome, record.output_tokens) == ("incomplete", 2)
        assert record.error


async def test_done_without_a_finish_reason_is_incomplete(ask: Ask) -> None:
    record = only(await ask(Script(answer(WORDS, finish=None))))
    assert (record.outcome, record.finish_reason) == ("incomplete", None)


async def test_comments_are_ignored(ask: Ask) -> None:
    writes = [(5.0, b": ping\n\n"), (10.0, b":\n\n"), *answer(WORDS), (200.0, b": ping\n\n")]
    record = only(await ask(Script(sorted(writes, key=lambda write: write[0]))))
    assert (record.outcome, record.text, len(record.reads)) == ("success", "one two three four", 4)


@pytest.mark.parametrize("name", ["reasoning_content", "reasoning"])
async def test_reasoning_is_a_first_token_but_no_answer(ask: Ask, name: str) -> None:
    writes = [
        (40, event(chunk({name: "hm"}))),
        (90, event(chunk({"content": "yes"}))),
        (90, event(chunk({}, finish="stop"))),
        (90, DONE),
    ]
    record = only(await ask(Script(writes)))
    assert (record.outcome, record.reasoning_text, record.text) == ("success", "hm", "yes")
    assert_about(record.ttft_ms, 40)
    assert_about(record.ttfot_ms, 90)
    assert record.ttfv_ms == record.ttft_ms


async def test_tool_calls_alone_are_a_success(ask: Ask) -> None:
    call = {"index": 0, "id": "c", "type": "function", "function": {"name": "weather"}}
    more = {"index": 0, "function": {"arguments": '{"city": "Oslo"}'}}
    writes = [
        (40, event(chunk({"tool_calls": [call]}))),
        (60, event(chunk({"tool_calls": [more]}))),
        (60, event(chunk({}, finish="tool_calls"))),
        (60, DONE),
    ]
    record = only(await ask(Script(writes)))
    assert (record.outcome, record.finish_reason, record.text) == ("success", "tool_calls", "")
    assert record.tool_call_text == 'weather{"city": "Oslo"}'
    assert_about(record.ttft_ms, 40)
    assert record.ttfot_ms is None


async def test_growing_usage_counts_once(ask: Ask) -> None:
    writes = [
        (40 + 10 * i, event(chunk({"content": word}, usage=usage(7, i + 1)))) for i, word in enumerate(WORDS)
    ]
    writes += [(80, event(chunk({}, finish="stop", usage=usage(7, 4)))), (80, DONE)]
    record = only(await ask(Script(writes)))
    assert (record.output_tokens, record.input_tokens) == (4, 7)
    assert [tokens for _, tokens in record.reads] == [1, 1, 1, 1]
    assert record.flags == []


async def test_empty_content_with_a_rising_count_is_the_first_token(ask: Ask) -> None:
    writes = [
        (5, event(chunk({"role": "assistant", "content": ""}, usage=usage(7, 0)))),
        (40, event(chunk({"content": ""}, usage=usage(7, 1)))),
        (80, event(chunk({"content": "中"}, usage=usage(7, 2)))),
        (80, event(chunk({}, finish="stop", usage=usage(7, 2)))),
        (80, DONE),
    ]
    record = only(await ask(Script(writes)))
    assert_about(record.ttft_ms, 40)
    assert_about(record.ttfv_ms, 80)
    assert [tokens for _, tokens in record.reads] == [1, 1]


async def test_without_usage_tokens_come_from_tokenizer_or_reads(ask: Ask) -> None:
    script = Script(answer(WORDS, with_usage=False))
    by_reads = only(await ask(script, requests=[request(max_tokens=100)]))
    assert (by_reads.output_tokens, by_reads.output_tokens_source) == (4, "reads")
    assert by_reads.flags == ["tokens_per_read_unknown"]
    assert by_reads.tpot_ms is not None
    by_tokenizer = only(await ask(script, tokenize=lambda text: list(text.encode())))
    assert (by_tokenizer.output_tokens, by_tokenizer.output_tokens_source) == (18, "tokenizer")
    assert by_tokenizer.server["token_counts"] == {"usage": None, "tokenizer": 18, "reads": 4}


async def test_a_whole_answer_in_one_chunk_has_no_tpot(ask: Ask) -> None:
    content = chunk({"content": "one two three four"}, finish="stop", usage=usage(7, 4))
    record = only(await ask(Script([(40, event(content) + DONE)])))
    assert (record.outcome, record.output_tokens, record.tpot_ms) == ("success", 4, None)
    assert record.reads[0][1] == 4
    assert_about(record.ttft_ms, 40)


async def test_characters_split_over_writes_stay_whole(ask: Ask) -> None:
    data = event(chunk({"content": "中"}))
    at = data.index("中".encode()) + 1
    face = event(chunk({"content": "😀"}))
    cut = face.index("😀".encode())
    writes = [
        (20, data[:at]),
        (30, data[at:]),
        (35, face[: cut + 1]),
        (40, face[cut + 1 : cut + 3]),
        (45, face[cut + 3 :]),
        (45, event(chunk({}, finish="stop"))),
        (45, DONE),
    ]
    record = only(await ask(Script(writes)))
    assert record.text == "中😀"
    assert record.outcome == "success"


async def test_two_events_in_one_write_are_two_reads_with_gap_zero(ask: Ask) -> None:
    both = event(chunk({"content": "a"})) + event(chunk({"content": "b"}))
    record = only(await ask(Script([(20, both), (20, event(chunk({}, finish="stop"))), (20, DONE)])))
    assert len(record.reads) == 2
    assert record.max_gap_ms == 0


async def test_too_many_requests_is_rate_limited(ask: Ask) -> None:
    refused = Script([(1, b'{"error": "slow down"}')], 429, "application/json", {"Retry-After": "3"})
    record = only(await ask(refused))
    assert (record.outcome, record.error) == ("rate_limited", "slow down")
    assert record.server["retry_after_s"] == 3.0
    assert record.ttft_ms is record.e2e_ms is None


async def test_a_full_queue_without_retry_after_is_rate_limited(ask: Ask) -> None:
    record = only(await ask(Script([(1, b"")], 503)))
    assert (record.outcome, record.error) == ("rate_limited", "HTTP 503")


async def test_throttling_is_repeated_when_asked_and_its_wait_kept_apart(ask: Ask) -> None:
    def choose(body: object, n: int) -> Script:
        if n == 1:
            return Script([(1, b"{}")], 429, "application/json", {"Retry-After": "0.05"})
        return Script(answer(WORDS, first_ms=20))

    record = only(await ask(choose, throttle_retries=1))
    assert record.outcome == "success"
    throttled = record.intervals_ms["throttled"]
    assert_about(throttled, 50)
    assert_about(record.ttft_ms, 70)


@pytest.mark.parametrize(
    ("status", "body", "outcome", "error"),
    [
        (500, b'{"error": {"message": "out of memory", "code": 500}}', "failed", "out of memory"),
        (500, b"Internal Server Error", "failed", "Internal Server Error"),
        (400, b'{"error": {"message": "too long"}}', "rejected", "too long"),
        (422, b'{"detail": [{"loc": ["x"]}]}', "rejected", '[{"loc": ["x"]}]'),
        (404, b'{"detail": "Not Found"}', "failed", "Not Found"),
        (400, b'{"object": "error", "message": "bad"}', "rejected", "bad"),
        (502, b"", "failed", "HTTP 502"),
    ],
)
async def test_error_answers_keep_the_server_s_words(
    ask: Ask, status: int, body: bytes, outcome: str, error: str
) -> None:
    record = only(await ask(Script([(1, body)] if body else [], status, "application/json")))
    assert (record.outcome, record.error, record.status) == (outcome, error, status)


async def test_the_client_s_own_queue_is_not_hidden(ask: Ask) -> None:
    """The case of 500 ms service at 10 requests/s with one slot, ten times faster."""
    script = Script(answer(["x"], first_ms=50))
    plan = LoadPlan(rate=100, concurrency=1)
    result = await ask(script, requests=[request(i) for i in range(8)], plan=plan)
    from_scheduled = [record.e2e_ms or 0 for record in result.records]
    from_sent = [
        (record.stamps["last_ns"] - record.stamps["sent_ns"]) / 1e6  # type: ignore[operator]
        for record in result.records
    ]
    assert 188 <= sum(from_scheduled) / 8 <= 260
    assert 48 <= sum(from_sent) / 8 <= 70
    summary = summarise(result.records, load=result.load, self_check=result.self_check)
    assert summary["latency_from"] == "scheduled"
    assert summary["validity"]["valid"] is True  # a slot asked for is no late client


# -- inputs of people who do this job ------------------------------------------------------------------


@pytest.mark.parametrize("writes", [[], [(5.0, DONE)]])
async def test_nothing_in_a_clean_stream_is_no_success(ask: Ask, writes: list[tuple[float, bytes]]) -> None:
    def choose(body: object, n: int) -> Script:
        return Script(writes) if n == 2 else Script(answer(WORDS))

    result = await ask(choose, requests=[request(i) for i in range(4)])
    empty = result.records[1]
    assert empty.outcome == "incomplete"
    assert empty.output_tokens is empty.ttft_ms is empty.e2e_ms is empty.tpot_ms is None
    assert summarise(result.records)["error_rate"] == 0.25


async def test_an_opening_event_without_choices_is_kept_and_is_no_token(ask: Ask) -> None:
    opening = {
        "choices": [],
        "id": "",
        "model": "",
        "usage": None,
        "prompt_filter_results": [{"prompt_index": 0, "content_filter_results": {}}],
    }
    writes = [
        (10.0, event(opening)),
        (20.0, event(chunk({"role": "assistant"}))),
        *answer(WORDS, first_ms=60),
    ]
    record = only(await ask(Script(writes)))
    assert_about(record.ttft_ms, 60)
    assert (record.outcome, record.output_tokens) == ("success", 4)
    assert "prompt_filter_results" in record.server["other_events"][0]
    without_usage = only(await ask(Script([writes[0], *answer(WORDS, with_usage=False)])))
    assert (without_usage.output_tokens, without_usage.output_tokens_source) == (4, "reads")


async def test_ids_do_not_group_and_a_late_error_keeps_the_partial_text(ask: Ask) -> None:
    writes = [(10.0 + i, event(chunk({"content": f"{i} "}, id=f"c{i}"))) for i in range(24)]
    writes.append((40.0, event({"error": {"message": "gone"}, "id": "c24"})))
    record = only(await ask(Script(writes)))
    assert (record.outcome, record.error, len(record.reads)) == ("failed", "gone", 24)
    assert record.text.split() == [str(i) for i in range(24)]


async def test_a_role_chunk_after_the_first_prefill_chunk_is_no_gap(ask: Ask) -> None:
    role = (60.0, event(chunk({"role": "assistant", "content": ""})))
    writes = [role, *answer(["w "] * 10, first_ms=150, gap_ms=10)]
    record = only(await ask(Script(writes)))
    assert_about(record.ttft_ms, 150)
    assert record.max_gap_ms is not None
    assert record.max_gap_ms < 90
    assert record.tpot_ms == pytest.approx(10, abs=4)


async def test_refusals_stay_out_of_the_percentiles(ask: Ask) -> None:
    def choose(body: object, n: int) -> Script:
        if n % 6 == 0:
            return Script([(1, b'{"error": {"message": "busy"}}')], 429, "application/json")
        return Script(answer(["x"], first_ms=40))

    plan = LoadPlan(concurrency=3)
    result = await ask(choose, requests=[request(i) for i in range(30)], plan=plan)
    limits = [{"metric": "ttft_ms", "percentile": "p95", "max": 5000}]
    summary = summarise(result.records, load=result.load, limits=limits)
    assert summary["requests"]["rate_limited"] == 5
    assert summary["ttft_ms"]["n"] == 25
    assert summary["ttft_ms"]["p50"] >= 38
    assert summary["error_rate"] == pytest.approx(5 / 30)
    assert summary["goodput"] == pytest.approx(25 / 30)


async def test_an_answer_that_was_not_streamed_has_no_first_token(ask: Ask) -> None:
    whole = {
        "choices": [{"index": 0, "message": {"content": "one two"}, "finish_reason": "stop"}],
        "usage": usage(7, 2),
    }
    script = Script([(50, event(whole)[6:].strip())], content_type="application/json", head_at_ms=50)
    result = await ask(script, requests=[request(i) for i in range(5)], plan=LoadPlan(concurrency=5))
    for record in result.records:
        assert (record.outcome, record.text, record.output_tokens) == ("success", "one two", 2)
        assert record.ttft_ms is record.ttfv_ms is record.ttfot_ms is record.tpot_ms is None
        assert_about(record.e2e_ms, 50)
        assert "not_streamed" in record.flags
        assert record.intervals_ms["decode"] is None
    summary = summarise(result.records)
    assert summary["ttft_ms"]["n"] == 0
    assert summary["itl_ms"]["n"] == 0
    assert "first token" in summary["validity"]["lacks"][0]


async def test_an_endpoint_without_usage_has_a_throughput(ask: Ask) -> None:
    script = Script(answer(["w "] * 12, first_ms=20, gap_ms=5, with_usage=False))
    result = await ask(script, requests=[request(i) for i in range(10)], plan=LoadPlan(concurrency=5))
    summary = summarise(result.records, load=result.load)
    assert summary["output_tokens"] == 120
    assert summary["output_tokens_source"] == ["reads"]
    assert summary["output_tokens_per_second"] > 0
    assert summary["tpot_ms"]["p50"] == pytest.approx(5, abs=3)
    assert summary["flags"] == {"tokens_per_read_unknown": 10}


# -- leaving on purpose, time-outs, connections --------------------------------------------------------


@pytest.mark.parametrize("phase", ["queue", "prefill", "decode"])
async def test_a_request_left_on_purpose_is_cancelled_and_the_server_sees_it(ask: Ask, phase: str) -> None:
    from inference.requests import CancelRule

    servers: list[FakeServer] = []
    script = Script(answer(["w "] * 50, first_ms=60, gap_ms=20))
    rule = CancelRule(phase=phase, after_tokens=2)  # type: ignore[arg-type]
    others = [request(1, cancel=rule), request(2, messages=({"role": "user", "content": "hi"},))]

    def choose(body: dict[str, object], n: int) -> Script:
        return script if n == 1 else Script(answer(WORDS))

    result = await ask(choose, requests=others, servers=servers)
    left, other = result.records
    assert left.outcome == "cancelled"
    assert len(left.reads) == (2 if phase == "decode" else 0)
    assert "aborted_ns" in left.stamps
    assert other.outcome == "success"
    assert servers[0].seen[0].left_ns is not None
    assert summarise(result.records)["error_rate"] == 0


async def test_a_request_over_its_time_is_a_timeout(ask: Ask) -> None:
    plan = LoadPlan(concurrency=1, timeout_s=0.1)
    record = only(await ask(Script(answer(WORDS, first_ms=20, gap_ms=5000)), plan=plan))
    assert (record.outcome, record.text) == ("timeout", "one ")
    assert record.error == "no complete answer within 0.1 s"


async def test_connections_are_used_again(ask: Ask) -> None:
    servers: list[FakeServer] = []
    result = await ask(
        Script(answer(WORDS, first_ms=5, gap_ms=1)), requests=[request(i) for i in range(3)], servers=servers
    )
    assert [record.outcome for record in result.records] == ["success"] * 3
    assert servers[0].peak == 1


async def test_an_idle_connection_that_was_closed_is_replaced_unnoticed(ask: Ask) -> None:
    """The server ends each connection after an answer without saying so."""
    script = Script(answer(WORDS, first_ms=5, gap_ms=1), headers={"Connection": "keep-alive"})
    closing = Script(
        script.writes, chunked=False, headers={"Content-Length": str(sum(len(d) for _, d in script.writes))}
    )
    closing.ended = False
    result = await ask(closing, requests=[request(i) for i in range(3)])
    assert [record.outcome for record in result.records] == ["success"] * 3


async def test_a_stream_whose_body_never_ends_after_done_is_complete(ask: Ask) -> None:
    script = Script([*answer(WORDS, first_ms=5, gap_ms=1), (5000, b": ping\n\n")])
    record = only(await ask(script))
    assert record.outcome == "success"
