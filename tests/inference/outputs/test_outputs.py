"""Checks of answers: what passes, what fails, and that nothing can hold them up."""

import json
import time
from typing import Any

import pytest

from inference.outputs import evaluate, quality_requests
from inference.outputs.checks import Undecided, check_of
from inference.records import RequestRecord


def record(index: int, text: str, outcome: Any = "success") -> RequestRecord:
    return RequestRecord(
        id=f"r{index}", outcome=outcome, finish_reason="stop", error=None, text=text, reasoning_text="",
        token_ids=None, input_tokens=1, cached_tokens=None, output_tokens=1, output_tokens_source="usage",
        ttft_ms=1.0, ttfv_ms=None, ttfot_ms=None, tpot_ms=None, e2e_ms=1.0, max_gap_ms=None,
        stamps={}, intervals_ms={}, reads=[], index=index,
    )  # fmt: skip


SCHEMA = json.dumps({"type": "object", "required": ["a"], "properties": {"a": {"type": "integer"}}})


@pytest.mark.parametrize(
    ("kind", "value", "answer", "found"),
    [
        ("contains", "退款  申请", "请提交退款 申请。", None),
        ("contains", "Refund", "no REFUND today", None),
        ("contains", "refund", "nothing", "text_absent"),
        ("pattern", r"\b\d{4}\b", "in 2026 again", None),
        ("pattern", r"^\d+$", "no number", "pattern_absent"),
        ("json_schema", SCHEMA, '{"a": 1}', None),
        ("json_schema", SCHEMA, 'Here:\n```json\n{"a": 1}\n```', None),
        ("json_schema", SCHEMA, '{"a": "1"}', "schema_broken"),
        ("json_schema", SCHEMA, "Sorry, no.", "no_json"),
        ("similarity", "The pump lost pressure.", "the pump  lost pressure", None),
        ("similarity", "The pump lost pressure.", "Everything is fine here", "too_different"),
    ],
)
def test_a_check_says_what_is_wrong(kind: str, value: str, answer: str, found: str | None) -> None:
    assert check_of({"kind": kind, "value": value})(answer) == found


@pytest.mark.parametrize(
    ("kind", "value", "answer"),
    [
        ("pattern", r"^(a|a)*$", "a" * 60 + "b"),
        ("json_schema", json.dumps({"pattern": r"^(\w|\w)*$"}), json.dumps("a" * 60 + "!")),
        (
            "json_schema",
            json.dumps(
                {"$ref": "#/$defs/d0"}
                | {"$defs": {f"d{i}": {"allOf": [{"$ref": f"#/$defs/d{i + 1}"}] * 2} for i in range(40)}
                   | {"d40": {}}}
            ),
            "1",
        ),
        ("json_schema", json.dumps({"$ref": "http://localhost:1/schema.json"}), "1"),
    ],
)  # fmt: skip
def test_no_check_hangs(kind: str, value: str, answer: str) -> None:
    begun = time.monotonic()
    with pytest.raises(Undecided):
        check_of({"kind": kind, "value": value})(answer)
    assert time.monotonic() - begun < 5


def test_shares_come_with_n_and_an_interval() -> None:
    spec = {"checks": [{"kind": "contains", "value": "yes"}, {"kind": "contains", "value": "sir"}]}
    records = [record(0, "yes sir"), record(1, "yes"), record(2, "no"), record(3, "", outcome="failed")]
    found = evaluate(spec, records)
    assert found is not None
    assert [row["passed"] for row in found["checks"]] == [2, 1]
    assert (found["n"], found["passed"]) == (3, 1)
    assert found["pass_rate"] == pytest.approx(1 / 3)
    assert found["interval"][0] < 1 / 3 < found["interval"][1]
    assert [(one["check"], one["index"], one["reason"]) for one in found["failures"]] == [
        (0, 2, "text_absent"), (1, 1, "text_absent"), (1, 2, "text_absent"),
    ]  # fmt: skip
    assert evaluate({}, records) is None


def test_a_slow_pattern_is_given_up_and_left_undecided() -> None:
    spec = {"checks": [{"kind": "pattern", "value": r"^(a|a)*$"}]}
    found = evaluate(spec, [record(i, "a" * 60 + "b") for i in range(20)])
    assert found is not None
    row = found["checks"][0]
    assert (row["n"], row["undecided"], row["pass_share"]) == (0, 20, None)
    assert found["pass_rate"] is None
    assert row["undecided_reasons"] == ["pattern_time", "time"]


def test_the_quality_set_counts_what_is_right() -> None:
    items = [
        {"prompt": "6×7?", "answer": "42"},
        {"prompt": "首都？", "answer": "北京"},
        {"prompt": "x", "answer": "y"},
    ]
    spec = {"quality": items, "output_tokens": 8}
    assert [request.temperature for request in quality_requests(spec)] == [0.0] * 3
    answers = [record(0, " 42. "), record(1, "首都是北京。"), record(2, "y", outcome="timeout")]
    found = evaluate(spec, [], answers)
    assert found is not None
    assert (found["quality"]["right"], found["quality"]["n"]) == (1, 3)
    assert [row["item"] for row in found["quality"]["wrong"]] == [2, 3]
    found = evaluate(spec | {"quality_match": "contains"}, [], answers)
    assert found is not None
    assert found["quality"]["right"] == 2
    assert found["checks"] == []
    assert found["pass_rate"] is None
