"""Prompts, arrivals, warm-up variants and scenarios."""

import statistics
from itertools import pairwise
from typing import Any

import pytest

from inference.errors import InputError
from inference.requests import CancelRule, GenerationRequest
from inference.workload.arrivals import arrival_offsets_s
from inference.workload.prompts import generate_prompts
from inference.workload.scenario import plan_for
from inference.workload.warmup import warmup_requests


def by_word(text: str) -> list[int]:
    """A tokenizer of words and single Chinese characters, separators included."""
    spaced = "".join(f" {char} " if ord(char) > 0x2E80 else char for char in text)
    return [hash(word) for word in spaced.split()]


@pytest.mark.parametrize("language", ["en", "zh", "mixed"])
@pytest.mark.parametrize("tokens", [8, 64, 700])
def test_prompts_have_their_length_and_are_the_same_every_time(language: str, tokens: int) -> None:
    prompts = generate_prompts(6, tokens, language=language, distinct=4, tokenize=by_word, seed=2)
    for prompt in prompts:
        assert tokens - 2 <= len(by_word(prompt)) <= tokens
    assert len(set(prompts)) == 4
    assert prompts[0] == prompts[4]
    assert prompts == generate_prompts(6, tokens, language=language, distinct=4, tokenize=by_word, seed=2)


def test_a_shared_prefix_is_shared_and_what_follows_differs() -> None:
    prompts = generate_prompts(3, 200, shared_prefix_tokens=80, tokenize=by_word)
    heads = {tuple(by_word(prompt)[:80]) for prompt in prompts}
    assert len(heads) == 1
    assert len({tuple(by_word(prompt)[80:84]) for prompt in prompts}) == 3
    with pytest.raises(InputError, match="shorter than"):
        generate_prompts(1, 80, shared_prefix_tokens=80)


def test_lengths_are_estimated_without_a_tokenizer() -> None:
    (prompt,) = generate_prompts(1, 100)
    assert 350 <= len(prompt) <= 400
    with pytest.raises(InputError, match="language"):
        generate_prompts(1, 100, language="fr")


def requests(n: int, **fields: Any) -> list[GenerationRequest]:
    return [GenerationRequest(id=str(i), prompt="x", **fields) for i in range(n)]


def test_arrivals_are_constant_random_or_from_the_file() -> None:
    assert arrival_offsets_s(requests(4), rate=2) == [0, 0.5, 1.0, 1.5]
    assert arrival_offsets_s(requests(2), rate=None) == [0, 0]
    assert arrival_offsets_s(requests(2, arrival_s=0.3), rate=None) == [0.3, 0.3]
    for arrival, spread in (("poisson", 1.0), ("gamma:4", 0.5)):
        offsets = arrival_offsets_s(requests(4000), rate=10, arrival=arrival, seed=1)
        gaps = [b - a for a, b in pairwise(offsets)]
        assert statistics.mean(gaps) == pytest.approx(0.1, rel=0.05)
        assert statistics.stdev(gaps) / statistics.mean(gaps) == pytest.approx(spread, rel=0.1)
        assert offsets == arrival_offsets_s(requests(4000), rate=10, arrival=arrival, seed=1)
    for wrong in ("uniform", "gamma:0", "gamma:x", "gamma"):
        with pytest.raises(InputError, match="arrival must be"):
            arrival_offsets_s(requests(1), rate=1, arrival=wrong)


def test_warm_up_cannot_fill_the_prefix_cache() -> None:
    originals = [
        GenerationRequest(
            id="a", messages=({"role": "user", "content": "hello"},), cancel=CancelRule(phase="queue")
        ),
        GenerationRequest(id="b", prompt_token_ids=(1, 2, 3)),
        GenerationRequest(id="c", prompt="text"),
    ]
    first, second, third, fourth = warmup_requests(originals, 4)
    assert (first.messages or ())[0]["content"] == "(1) hello"
    assert first.cancel is None
    assert second.prompt_token_ids == (2, 3, 1)
    assert third.prompt == "(3) text"
    assert [first.id, fourth.id] == ["warmup-1", "warmup-4"]
    assert {first.namespace, second.namespace} == {"warmup"}


SPEC: dict[str, Any] = {
    "input_tokens": 50,
    "output_tokens": 20,
    "concurrency": 4,
    "requests": 12,
    "rate": None,
    "warmup_requests": 2,
    "distinct_prompts": 3,
    "shared_prefix_tokens": 0,
    "language": "en",
    "prompts": [],
    "temperature": 0.0,
    "seed": 5,
    "timeout_s": 30.0,
    "tenants": ["north", "south"],
    "applications": ["chat"],
    "interruptions": [],
    "limits": [],
}


def test_a_scenario_becomes_requests_and_a_plan() -> None:
    planned, plan = plan_for(SPEC, by_word)
    assert (len(planned), plan.concurrency, plan.open_loop, plan.warmup, plan.timeout_s) == (
        12,
        4,
        False,
        2,
        30,
    )
    assert [r.tenant for r in planned[:3]] == ["north", "south", "north"]
    assert {(r.application, r.max_tokens, r.ignore_eos, r.seed) for r in planned} == {
        ("chat", 20, True, None)
    }
    assert len({r.messages[0]["content"] for r in planned if r.messages}) == 3
    assert len({r.id for r in planned}) == 12
    assert planned == plan_for(SPEC, by_word)[0]


def test_a_scenario_with_a_rate_is_an_open_loop() -> None:
    _, plan = plan_for({**SPEC, "rate": 2.5})
    assert (plan.open_loop, plan.rate, plan.arrival, plan.concurrency) == (True, 2.5, "poisson", None)


def test_real_prompts_are_used_as_they_are_and_end_freely() -> None:
    planned, _ = plan_for({**SPEC, "prompts": ["one", "two"], "temperature": 0.7})
    assert [r.messages[0]["content"] for r in planned[:3] if r.messages] == ["one", "two", "one"]
    assert planned[0].ignore_eos is False
    assert [r.seed for r in planned[:2]] == [5, 6]


def test_interruptions_leave_in_every_phase_without_hiding_each_other() -> None:
    rules = [{"phase": phase, "every": 4, "after_tokens": 3} for phase in ("queue", "prefill", "decode")]
    planned, _ = plan_for({**SPEC, "interruptions": rules})
    left = [r.cancel for r in planned if r.cancel]
    assert [sum(c.phase == phase for c in left) for phase in ("queue", "prefill", "decode")] == [3, 3, 3]
    assert {c.after_tokens for c in left if c.phase == "decode"} == {3}


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"requests": 0}, "requests"),
        ({"input_tokens": None}, "input_tokens"),
        ({"concurrency": "4"}, "concurrency"),
    ],
)
def test_a_wrong_field_is_named(change: dict[str, Any], field: str) -> None:
    with pytest.raises(InputError, match=f"scenario field {field}"):
        plan_for({**SPEC, **change})
    with pytest.raises(InputError, match="interruption phase"):
        plan_for({**SPEC, "interruptions": [{"phase": "later", "every": 1}]})
