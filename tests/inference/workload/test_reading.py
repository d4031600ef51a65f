"""Readers of request sets and traces: every format, every fault with file, line and column."""

import json
from typing import Any

import pytest

from inference.errors import InputError
from inference.workload.building import Rules, build_requests, texts_of
from inference.workload.reading import Workload, read_workload
from inference.workload.reading.stored import from_text, to_text
from inference.workload.report import report

AZURE = "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:17:03.9799600,4808,10\n"
BURST = (
    "Timestamp,Session ID,Elapsed time,Model,Request tokens,Response tokens,Total tokens,Log Type\n"
    "10,,3,GPT-4,472,18,490,Conversation log\n"
    "12.5,a,3,ChatGPT,0,0,0,Conversation log\n"
    "12.5,,3,ChatGPT,36,29,65,API log\n"
)


def rows(*objects: Any) -> str:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in objects)


def mooncake(*more: dict[str, Any]) -> str:
    first = {"timestamp": 0, "input_length": 600, "output_length": 5, "hash_ids": [0, 1]}
    return rows(first, *(first | changes for changes in more))


def read(text: str | bytes, name: str = "x.jsonl", **options: Any) -> Workload:
    return read_workload(text.encode() if isinstance(text, str) else text, name, **options)


def test_azure_moments_are_counted_from_the_first_in_the_digits_of_the_file() -> None:
    found = read(AZURE + "2023-11-16 18:17:04.0319610,3180,8\n", "a.csv")
    assert found.format == "azure-llm"
    assert [item.arrival_s for item in found.items] == [0.0, 0.052001]
    assert [(item.input_tokens, item.output_tokens) for item in found.items] == [(4808, 10), (3180, 8)]


def test_burstgpt_is_read_by_name_and_failures_at_the_source_are_counted() -> None:
    found = read(BURST, "b.csv")
    assert [(item.arrival_s, item.input_tokens) for item in found.items] == [(0.0, 472), (2.5, 36)]
    assert [(skipped.line, skipped.why[:12]) for skipped in found.skipped] == [(3, "no input and")]
    assert "field 'Model' was not used (3 lines)" in found.notes


def test_mooncake_is_in_milliseconds_with_blocks_of_512() -> None:
    found = read(mooncake({"timestamp": 3000}, {"timestamp": 3000}))
    assert [item.arrival_s for item in found.items] == [0, 3, 3]
    assert found.block_tokens == 512
    assert found.items[0].hash_ids == (0, 1)


def test_a_trace_without_ids_is_in_seconds_and_says_so() -> None:
    found = read(
        rows(
            {"timestamp": 0.5, "input_length": 9, "output_length": 1},
            {"timestamp": 2, "input_length": 9, "output_length": 1},
        )
    )
    assert [item.arrival_s for item in found.items] == [0, 1.5]
    assert "seconds" in found.notes[0]


def test_aiperf_turns_follow_with_their_delay() -> None:
    base = {"session_id": "s", "input_length": 10, "output_length": 2, "hash_ids": [1]}
    found = read(
        rows(
            base | {"timestamp": 2000.0},
            base | {"delay": 1500.0},
            base | {"session_id": "t", "timestamp": 2500},
        )
    )
    assert [(item.follows, item.think_s, item.arrival_s) for item in found.items] == [
        (None, 0, 0.0), ("s#1", 1.5, None), (None, 0, 0.5),
    ]  # fmt: skip


def batch(*bodies: dict[str, Any], url: str = "/v1/chat/completions") -> str:
    return rows(
        *({"custom_id": f"c{i}", "method": "POST", "url": url, "body": body} for i, body in enumerate(bodies))
    )


def test_a_batch_keeps_what_generates_and_counts_the_rest() -> None:
    chat = {
        "model": "m",
        "messages": [{"role": "user", "content": "hi"}],
        "max_completion_tokens": 7,
        "tools": [],
    }
    text = batch(chat) + rows({"custom_id": "e", "url": "/v1/embeddings", "body": {"input": "x"}})
    found = read(text)
    assert found.format == "openai-batch"
    assert found.items[0].request == {"messages": chat["messages"], "max_tokens": 7}
    assert found.skipped[0].line == 2
    assert found.notes == ["field 'tools' was not used (1 lines)"]


def test_chats_prompts_questions_and_lines() -> None:
    said = [{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}]
    found = read(rows({"messages": said}))
    assert found.items[0].request["messages"] == said[:1]
    assert found.items[0].reference == "a"
    assert read(rows({"prompt": "p", "output_tokens": 4})).items[0].output_tokens == 4
    found = read(rows({"system": "s", "query": "q", "response": "r"}))
    assert [m["content"] for m in found.items[0].request["messages"]] == ["s", "q"]
    assert found.items[0].reference == "r"
    assert read(rows({"question": "q"})).format == "evalscope-openqa"
    assert read(rows({"instruction": "q"})).format == "evalscope-longalpaca"
    assert [item.id for item in read("第一句\n\nsecond line\n", "x.txt").items] == ["l1", "l3"]
    assert read(rows({"id": "a", "prompt": "p", "max_tokens": 3})).format == "phasegate"


def test_conversations_become_turns_with_references() -> None:
    talk = {"id": "t", "conversations": [
        {"from": "system", "value": "s"}, {"from": "human", "value": "a"}, {"from": "gpt", "value": "b"},
        {"from": "human", "value": "c"}]}  # fmt: skip
    found = read(json.dumps([talk], indent=1))
    assert [(item.id, item.follows, item.reference) for item in found.items] == [
        ("t#1", None, "b"),
        ("t#2", "t#1", None),
    ]
    assert [m["role"] for m in found.items[0].request["messages"]] == ["system", "user"]
    found = read(rows({"question_id": 81, "turns": ["a", "b"], "reference": ["r"]}))
    assert [item.reference for item in found.items] == ["r", None]
    found = read(rows({"conversation": [{"human": "a", "assistant": "x"}, {"human": "b", "assistant": "y"}]}))
    assert [item.follows for item in found.items] == [None, "l1#1"]


def test_timed_bodies_take_numbers_and_iso_moments() -> None:
    body = {"messages": [{"role": "user", "content": "x"}], "stream": True}
    found = read(
        rows({"timestamp": 1764500000, "body": body}, {"timestamp": "2025-11-30T10:53:22.100Z", "body": body})
    )
    assert [item.arrival_s for item in found.items] == [0, 2.1]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "gb18030", "utf-16"])
def test_tables_in_any_encoding_and_with_columns_by_name(encoding: str) -> None:
    text = '编号,客户问题,备注,答案\r\n7,"发货,什么时候？\n急",x,明天\r\n8,退款,y,\r\n'
    found = read(text.encode(encoding), "问题.csv", columns={"prompt": "客户问题"})
    assert [item.id for item in found.items] == ["7", "8"]
    assert found.items[0].request["messages"][0]["content"] == "发货,什么时候？\n急"
    assert [item.reference for item in found.items] == ["明天", None]
    assert any("备注" in note for note in found.notes)
    assert (
        found.encoding
        == {"utf-8": "UTF-8", "utf-8-sig": "UTF-8 with BOM", "gb18030": "GBK", "utf-16": "UTF-16"}[encoding]
    )


FAULTS = [
    ("", "x.jsonl: the file is empty"),
    (b"PK\x03\x04rest", "Excel workbook"),
    (b"\x1f\x8b..", "compressed"),
    (b'{"prompt": "\xff\xff\xff"}\n', "x.jsonl, line 1, byte 13: neither UTF-8 nor GBK"),
    ('{"prompt": "a"}\n{"prompt": \n', "x.jsonl, line 2: not JSON"),
    ('{"prompt": "a"}\n[1]\n', "x.jsonl, line 2: a line is a JSON object"),
    ('{"prompt": "a"}\n{"prompt": "\\ud800"}\n', "line 2: a text has half of a character"),
    ('[{"prompt": "a"}\n {"prompt": "b"}]', "line 2: the JSON array ends here or lacks a comma"),
    ('{"a": 1, "b": 2}\n', "line 1: no known format has the fields a, b; known are"),
    ('{"prompt": "a"}\n{"prompt": 5}\n', "line 2, column prompt: must be a text"),
    ('{"prompt": "a"}\n{"question": "b"}\n', "line 2, column prompt: is missing"),
    (mooncake({"timestamp": -5}), "line 2, column timestamp: -5 is earlier than in line 1"),
    (mooncake({"input_length": -3}), "line 2, column input_length: -3 is negative"),
    (mooncake({"input_length": 10**12}), "input_length: 1000000000000 is above 1000000 tokens"),
    (mooncake({"output_length": 1e300}), "output_length: 1e+300 is above 1000000 tokens"),
    (mooncake({"output_length": 1.5}), "line 2, column output_length: 1.5 is no whole number"),
    (mooncake({"output_length": None}), "line 2, column output_length: is missing"),
    (mooncake({"input_length": 6000}), "line 2, column hash_ids: 2 blocks of 512 tokens do not fit 6000"),
    (mooncake({"input_length": "many"}), "line 2, column input_length: 'many' is no number"),
    (mooncake({"timestamp": "NaN"}), "line 2, column timestamp: 'NaN' is no number"),
    ('{"timestamp": 1, "input_length": 5}\n', "line 1, column output_length: is missing"),
    (batch({"messages": []}), "line 1: messages must be a list that is not empty"),
    (batch({"prompt": "x", "temperature": 900}), "line 1: temperature must be"),
    (batch({"prompt": "x"}) * 2, "line 2, column custom_id: 'c0' was already used in line 1"),
    (
        rows({"conversations": [{"from": "human", "value": ""}]}),
        "line 1, column conversations: turn 1 has no text",
    ),
    (rows({"conversations": [{"from": "cat", "value": "m"}]}), "turn 1 is from 'cat'"),
]
TABLE_FAULTS = [
    ("TIMESTAMP,ContextTokens\n2023-11-16 18:17:03,5\n", "x.csv, line 1: column 'GeneratedTokens' is"),
    (AZURE + "2023-11-16 18:17:03.0,1,1\n", "x.csv, line 3, column TIMESTAMP: 2023-11-16 18:17:03.0 is ear"),
    (AZURE + "yesterday,1,1\n", "line 3, column TIMESTAMP: 'yesterday' is no moment of time"),
    (AZURE + "2023-11-16 18:17:05,1\n", "line 3: has 2 columns, the header has 3"),
    (AZURE + "2023-11-16 18:17:05,,1\n", "line 3, column ContextTokens: is empty"),
    (BURST.replace("Request tokens", "Asked"), "line 1: column 'Request tokens' is missing"),
    ("a,b\n1,2\n", "line 1: no column holds the prompt (there are a, b); name it, as in prompt=a"),
    ("prompt,prompt\nx,y\n", "line 1: column 'prompt' is there twice"),
    ('prompt,id\n"open,1\n', "line 2: no CSV"),
    ("prompt,id\n,1\n", "line 2, column prompt: is empty"),
    ("prompt,max_tokens\nhi,lots\n", "line 2, column max_tokens: 'lots' is no number"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "fault"), FAULTS)
def test_a_fault_is_one_sentence_with_its_place(text: str | bytes, fault: str) -> None:
    with pytest.raises(InputError) as caught:
        read(text)
    assert fault in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(("text", "fault"), TABLE_FAULTS)
def test_a_fault_of_a_table_is_one_sentence_with_its_place(text: str, fault: str) -> None:
    with pytest.raises(InputError) as caught:
        read(text, "x.csv")
    assert fault in str(caught.value)


def test_faulty_lines_are_passed_over_only_where_asked_and_all_are_listed() -> None:
    text = mooncake(
        {"input_length": -3}, {"timestamp": 9}, {"timestamp": 5}, {"output_length": 0, "timestamp": 10}
    )
    found = read(text + "{broken\n", skip_faulty=True)
    assert [item.line for item in found.items] == [1, 4, 3]
    assert [skipped.line for skipped in found.skipped] == [2, 5, 6]
    assert any("out of order" in note for note in found.notes)
    with pytest.raises(InputError, match="no request that could be sent: 1 lines were skipped"):
        read(rows({"prompt": ""}), skip_faulty=True)


def test_named_columns_and_formats_must_exist() -> None:
    with pytest.raises(InputError, match="column 'x' is none of"):
        read("q\nhi\n", "x.csv", columns={"x": "q"})
    with pytest.raises(InputError, match="column 'nix' is missing"):
        read("q\nhi\n", "x.csv", columns={"prompt": "nix"})
    with pytest.raises(InputError, match="format must be one of"):
        read("q\nhi\n", format_name="word")


def test_everything_is_redacted_and_counted_before_it_is_kept() -> None:
    found = read("id,prompt,answer,tenant\n13812345678,call 13912345679,mail a@b.cn,x@y.cn\n", "x.csv")
    kept = to_text(found)
    assert not any(secret in kept for secret in ("13812345678", "13912345679", "a@b.cn", "x@y.cn"))
    assert found.redactions == {"phone": 2, "email": 2}
    talk = {
        "id": "t",
        "conversations": [{"from": "human", "value": "13812345678"}, {"from": "gpt", "value": "a@b.cn"}],
    }
    assert read(json.dumps([talk])).redactions == {"phone": 1, "email": 1}


@pytest.mark.parametrize(
    "text", [mooncake({"timestamp": 3000}), batch({"prompt": "x"}), rows({"turns": ["a", "b"]})]
)
def test_the_kept_form_is_the_workload(text: str) -> None:
    found = read(text)
    kept = to_text(found)
    assert from_text(kept, "x") == found
    assert read(kept) == found
    assert to_text(from_text(kept, "x")) == kept
    with pytest.raises(InputError, match=r"x: no phasegate-workload/1 file"):
        from_text(kept[:-9], "x")


def by_word(text: str) -> list[int]:
    return [hash(word) for word in text.split()]


def common(a: str, b: str) -> int:
    pairs = zip(by_word(a), by_word(b), strict=False)
    return next((i for i, (x, y) in enumerate(pairs) if x != y), min(len(by_word(a)), len(by_word(b))))


def test_prompts_of_a_trace_have_their_length_and_share_what_it_says() -> None:
    found = read(mooncake(
        {"timestamp": 1, "hash_ids": [0, 2], "input_length": 1000},
        {"timestamp": 2, "hash_ids": [3, 1], "input_length": 1000},
        {"timestamp": 3, "hash_ids": [0, 1], "input_length": 700},
    ))  # fmt: skip
    requests, _ = build_requests(found, Rules(), by_word)
    texts = [(request.messages or ())[0]["content"] for request in requests]
    assert [len(by_word(text)) for text in texts] == [600, 1000, 1000, 700]
    assert common(texts[0], texts[1]) == 512
    assert common(texts[0], texts[2]) == 0
    assert common(texts[0], texts[3]) == 600
    assert all(request.ignore_eos for request in requests)
    again, _ = build_requests(found, Rules(), by_word)
    assert requests == again


def test_a_trace_without_ids_shares_nothing() -> None:
    found = read(AZURE + "2023-11-16 18:17:05,4808,8\n", "a.csv")
    requests, _ = build_requests(found, Rules(), by_word)
    first, second = [(request.messages or ())[0]["content"] for request in requests]
    assert common(first, second) == 0
    assert len(by_word(first)) == 4808


def test_more_requests_than_rows_go_round_again_after_the_end() -> None:
    found = read(mooncake({"timestamp": 2000}, {"timestamp": 4000}))
    requests, facts = build_requests(found, Rules(n=5), by_word)
    assert [request.arrival_s for request in requests] == [0, 2, 4, 6, 8]
    assert [request.id for request in requests][3:] == ["l1~2", "l2~2"]
    assert facts["rounds"] == 2


def test_what_does_not_fit_is_left_out_or_clipped_and_counted() -> None:
    found = read(mooncake({"timestamp": 1, "hash_ids": [1, 2, 3], "input_length": 1500}))
    requests, facts = build_requests(found, Rules(context_tokens=1000), by_word)
    assert [request.id for request in requests] == ["l1"]
    assert facts["too_long"] == {"left_out": 1, "clipped": 0}
    requests, facts = build_requests(found, Rules(context_tokens=1000, too_long="clip"), by_word)
    assert facts["too_long"] == {"left_out": 0, "clipped": 1}
    assert len(by_word((requests[1].messages or ())[0]["content"])) == 1000 - 64 - 5
    talk = read(rows({"turns": ["word " * 300, "word " * 900, "more"]}, {"turns": ["short"]}))
    requests, facts = build_requests(talk, Rules(context_tokens=1000, too_long="clip"), by_word)
    assert [request.id for request in requests] == ["l1#1", "l2#1"]  # a history cannot be clipped
    assert facts["too_long"]["left_out"] == 2
    with pytest.raises(InputError, match="fits the context"):
        build_requests(found, Rules(context_tokens=70), by_word)


def test_the_report_says_what_a_person_wants_to_see() -> None:
    found = report(
        read(mooncake({"timestamp": 500, "output_length": 0}, {"timestamp": 2000, "hash_ids": [0, 2]}))
    )
    assert found["kind"] == "trace"
    assert found["input_tokens"]["source"] == "file"
    assert (found["input_tokens"]["n"], found["input_tokens"]["p50"]) == (2, 600)
    assert found["arrivals"]["per_second"] == 0.5
    assert found["prefixes"]["shared_tokens_share"] == pytest.approx(512 / 1200)
    assert found["skipped"][0]["lines"] == [2]
    found = report(read(rows({"turns": ["call 13812345678", "b"]})))
    assert found["conversations"]["turns"]["max"] == 2
    assert found["input_tokens"]["source"] == "estimate"
    assert found["output_tokens"] is None
    assert found["arrivals"] is None
    assert found["samples"] == ["call [phone]", "b"]


def test_texts_of_a_request() -> None:
    assert texts_of({"prompt": "a"}) == ["a"]
    parts = [{"type": "text", "text": "b"}, {"type": "image_url", "image_url": {}}]
    assert texts_of({"messages": [{"content": "a"}, {"content": parts}, {"content": None}]}) == ["a", "b"]
