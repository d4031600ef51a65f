"""Turns: sent after the answer before, with the history and the target's real words."""

import json
from pathlib import Path
from typing import Any

import pytest

from inference.errors import InputError
from inference.load.generator import LoadPlan, run_load
from inference.records import Trace
from inference.requests import GenerationRequest
from inference.targets.base import TargetInfo
from inference.workload.conversations import conversations
from inference.workload.requests_file import read_requests


class Answering:
    """Answers at once with a sentence of its own, except to what it refuses; keeps what it was sent."""

    def __init__(self, refuse: str = "") -> None:
        self.refuse = refuse
        self.sent: dict[str, tuple[dict[str, Any], ...]] = {}
        self.order: list[str] = []

    async def open(self) -> TargetInfo:
        return TargetInfo("http", "fake")

    async def run(self, request: GenerationRequest, trace: Trace) -> None:
        self.sent[request.id] = request.messages or ()
        self.order.append(request.id)
        trace.sent_ns = trace.dispatched_ns
        trace.ended = "orderly"
        if request.id == self.refuse:
            trace.error = "no"
            return
        trace.finish_reason, trace.text = "stop", f"answer to {request.id}"
        trace.reads.append(((trace.dispatched_ns or 0) + 1, 1))

    async def telemetry(self) -> dict[str, Any]:
        return {}

    def tokenize(self, text: str) -> list[int] | None:
        return None

    async def close(self) -> None: ...


def said(text: str) -> tuple[dict[str, Any], ...]:
    return ({"role": "user", "content": text},)


def two_talks() -> list[GenerationRequest]:
    return [
        GenerationRequest(id="a1", messages=({"role": "system", "content": "short"}, *said("one"))),
        GenerationRequest(id="b1", messages=said("eins")),
        GenerationRequest(id="a2", messages=said("two"), follows="a1", think_s=0.01),
        GenerationRequest(id="a3", messages=said("three"), follows="a2"),
        GenerationRequest(id="b2", messages=said("zwei"), follows="b1"),
    ]


@pytest.mark.parametrize(
    "plan", [LoadPlan(concurrency=1), LoadPlan(concurrency=2), LoadPlan(), LoadPlan(rate=500, concurrency=1)]
)
async def test_a_turn_carries_the_real_answers_before_it(plan: LoadPlan) -> None:
    target = Answering()
    result = await run_load(target, two_talks(), plan)
    assert [record.id for record in result.records] == ["a1", "b1", "a2", "a3", "b2"]
    assert [message["content"] for message in target.sent["a3"]] == [
        "short", "one", "answer to a1", "two", "answer to a2", "three",
    ]  # fmt: skip
    assert [message["role"] for message in target.sent["b2"]] == ["user", "assistant", "user"]
    for earlier, later in (("a1", "a2"), ("a2", "a3"), ("b1", "b2")):
        assert target.order.index(earlier) < target.order.index(later)
    think = next(record for record in result.records if record.id == "a2")
    before = next(record for record in result.records if record.id == "a1")
    dispatched, closed = think.stamps["dispatched_ns"], before.stamps["closed_ns"]
    assert isinstance(dispatched, int)
    assert isinstance(closed, int)
    assert dispatched - closed >= 10_000_000


async def test_a_conversation_without_an_answer_ends_and_its_other_turns_are_counted() -> None:
    target = Answering(refuse="a1")
    result = await run_load(target, two_talks(), LoadPlan(concurrency=1))
    assert target.order == ["a1", "b1", "b2"]
    assert result.self_check["unsent_turns"] == 2


def test_requests_without_turns_are_conversations_of_one() -> None:
    alone = [GenerationRequest(id=str(i), prompt="x") for i in range(3)]
    assert conversations(alone) == [[(0, alone[0])], [(1, alone[1])], [(2, alone[2])]]


@pytest.mark.parametrize(
    ("rows", "fault"),
    [
        ([{"id": "b", "follows": "a"}, {"id": "a"}], "line 1: follows 'a', which is no earlier line"),
        ([{"id": "a"}, {"id": "b", "follows": "a"}, {"id": "c", "follows": "a"}], "line 3: .* already"),
        ([{"id": "a", "prompt": "x"}, {"id": "b", "follows": "a"}], "line 2: .* needs messages"),
        ([{"id": "a", "think_s": -1}], "line 1: think_s must be"),
    ],
)
def test_turns_that_follow_nothing_are_refused(tmp_path: Path, rows: list[Any], fault: str) -> None:
    path = tmp_path / "turns.jsonl"
    content = [row if "prompt" in row else row | {"messages": list(said("x"))} for row in rows]
    path.write_text("".join(json.dumps(row) + "\n" for row in content), encoding="utf-8")
    with pytest.raises(InputError, match=fault):
        read_requests(path)
