"""From the fields of a scenario to requests: shapes of load, lengths, conversations, prefixes, files."""

import json
from typing import Any

import pytest

from inference.errors import InputError
from inference.workload.reading import read_workload
from inference.workload.reading.stored import to_text
from inference.workload.scenario import plan_for

BASE: dict[str, Any] = {"input_tokens": 40, "output_tokens": 8, "concurrency": 3, "requests": 12}


def by_word(text: str) -> list[int]:
    return [hash(word) for word in text.split()]


def said(request: Any) -> str:
    return str(request.messages[0]["content"])


def test_a_scenario_of_old_is_as_it_was() -> None:
    requests, plan = plan_for(BASE, by_word)
    assert (plan.concurrency, plan.rate, plan.open_loop, plan.workload) == (3, None, False, {})
    assert {len(by_word(said(request))) for request in requests} == {40}
    assert "workload" not in plan.as_json()
    assert plan_for(BASE | {"rate": 5}, by_word)[1].arrival == "poisson"


@pytest.mark.parametrize("arrival", ["burst:4/2", "ramp:1-5/10", "steps:1x5,4x5,poisson", "trace:2"])
def test_shapes_with_own_times_open_the_loop(arrival: str) -> None:
    _, plan = plan_for(BASE | {"arrival": arrival}, by_word)
    assert (plan.arrival, plan.open_loop, plan.concurrency) == (arrival, True, None)
    _, plan = plan_for(BASE | {"arrival": arrival, "rate": 3}, by_word)
    assert (plan.arrival, plan.rate) == ("poisson", 3)  # a search over rates asks for its own


def test_rated_shapes_need_a_rate() -> None:
    assert plan_for(BASE | {"arrival": "gamma:0.5", "rate": 3}, by_word)[1].arrival == "gamma:0.5"
    with pytest.raises(InputError, match="needs a rate"):
        plan_for(BASE | {"arrival": "gamma:0.5"}, by_word)


def test_lengths_are_drawn_for_prompts_and_answers() -> None:
    spec = BASE | {
        "requests": 40,
        "input_lengths": "uniform:min=30,max=60",
        "output_lengths": "lognormal:p50=8,p95=30,max=40",
        "shared_prefix_tokens": 20,
    }
    requests, _ = plan_for(spec, by_word)
    lengths = [len(by_word(said(request))) for request in requests]
    assert min(lengths) >= 30
    assert max(lengths) <= 60
    assert len(set(lengths)) > 10
    assert len({request.max_tokens for request in requests}) > 8
    assert requests == plan_for(spec, by_word)[0]


def test_conversations_have_turns_and_prefixes_stand_before_the_first() -> None:
    spec = BASE | {"turns": 3, "think_time_s": 1.5, "shared_prefix_tokens": 12, "distinct_prompts": 12}
    requests, _ = plan_for(spec, by_word)
    assert [request.follows for request in requests[:4]] == [None, "r0001", "r0002", None]
    assert [request.think_s for request in requests[:3]] == [0, 1.5, 1.5]
    heads = {tuple(by_word(said(request))[:12]) for request in requests[::3]}
    assert len(heads) == 1
    assert tuple(by_word(said(requests[1]))[:12]) not in heads


def test_a_share_of_prompts_has_one_of_several_prefixes() -> None:
    spec = BASE | {
        "shared_prefix_tokens": 12,
        "distinct_prefixes": 2,
        "prefix_share": 0.5,
        "distinct_prompts": 12,
    }
    requests, _ = plan_for(spec, by_word)
    heads = [tuple(by_word(said(request))[:12]) for request in requests]
    assert sorted(heads.count(head) for head in set(heads)) == [1] * 6 + [3, 3]


def test_a_request_set_or_trace_gives_the_requests() -> None:
    rows = [
        {"timestamp": 1000 * i, "input_length": 30 + i, "output_length": 4 + i, "hash_ids": [0]}
        for i in range(5)
    ]
    text = to_text(read_workload("".join(json.dumps(row) + "\n" for row in rows).encode(), "t.jsonl"))
    spec = BASE | {"requests": 5, "workload_text": text, "arrival": "trace:2", "tenants": ["a", "b"]}
    requests, plan = plan_for(spec, by_word)
    assert [len(by_word(said(request))) for request in requests] == [30, 31, 32, 33, 34]
    assert [request.max_tokens for request in requests] == [4, 5, 6, 7, 8]
    assert [request.tenant for request in requests[:3]] == ["a", "b", "a"]
    assert plan.workload["format"] == "mooncake"
    assert plan.as_json()["workload"]["rows"] == 5
    fitting, plan = plan_for(spec, by_word, context_tokens=38)
    assert len(fitting) == 3
    assert plan.workload["too_long"]["left_out"] == 2
    questions = to_text(read_workload(b'{"turns": ["a", "b"]}\n', "q.jsonl"))
    requests, _ = plan_for(BASE | {"requests": 2, "workload_text": questions}, by_word)
    assert [(request.follows, request.max_tokens, request.ignore_eos) for request in requests] == [
        (None, 8, False), ("l1#1", 8, False),
    ]  # fmt: skip
