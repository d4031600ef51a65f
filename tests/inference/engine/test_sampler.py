"""Sampling by the rules of each request alone."""

import math
from typing import Any

import pytest
import torch

from inference.engine import sampler
from inference.engine.detokenise import Detokeniser
from inference.engine.engine import _generator
from inference.engine.sequence import Sequence
from inference.requests import GenerationRequest

NO_ENDS: frozenset[int] = frozenset()


def sequence(output: tuple[int, ...] = (), prompt: tuple[int, ...] = (0,), **fields: Any) -> Sequence:
    request = GenerationRequest(id="r", **fields)
    return Sequence(
        handle=1,
        request=request,
        tokens=[*prompt, *output],
        prompt_length=len(prompt),
        detokeniser=Detokeniser(lambda _: ""),
        generator=_generator(request),
        queued_ns=0,
    )


def draw(
    logits: list[float], times: int = 1, ends: frozenset[int] = NO_ENDS, **fields: Any
) -> list[int | None]:
    one = sequence(**fields)
    return [sampler.sample(torch.tensor([logits]), [one], ends)[0] for _ in range(times)]


def test_a_tiny_temperature_is_argmax_and_never_nan() -> None:
    assert set(draw([1.0, 1.0001, 0.5], 50, temperature=1e-4)) == {1}
    assert set(draw([100.0, 3e4, -3e4], 50, temperature=1e-3)) == {1}


def test_a_seed_holds_beside_unseeded_neighbours() -> None:
    logits = torch.randn(3, 50, generator=torch.Generator().manual_seed(1))
    alone = sequence(temperature=1.0, seed=42)
    expected = [sampler.sample(logits[1:2], [alone], NO_ENDS)[0] for _ in range(20)]
    beside = [sequence(temperature=1.0), sequence(temperature=1.0, seed=42), sequence(temperature=0.7)]
    assert [sampler.sample(logits, beside, NO_ENDS)[1] for _ in range(20)] == expected
    assert len(set(expected)) > 3


def test_draws_follow_the_distribution() -> None:
    drawn = draw([math.log(0.7), math.log(0.2), math.log(0.1)], 4000, temperature=1.0, seed=3)
    shares = [drawn.count(token_id) / len(drawn) for token_id in range(3)]
    assert shares == pytest.approx([0.7, 0.2, 0.1], abs=0.03)


def test_top_k_and_top_p_cut_the_tail() -> None:
    logits = [math.log(p) for p in (0.5, 0.3, 0.15, 0.05)]
    assert set(draw(logits, 300, temperature=1.0, top_k=2)) == {0, 1}
    assert set(draw(logits, 300, temperature=1.0, top_p=0.6)) == {0, 1}
    assert set(draw(logits, 100, temperature=1.0, top_p=1e-9)) == {0}
    assert set(draw(logits, 300, temperature=1.0, top_k=3, top_p=0.9)) == {0, 1, 2}


def test_a_wide_nucleus_sorts_everything() -> None:
    drawn = draw([0.0] * 2000, 300, temperature=1.0, top_p=0.95, seed=5)
    assert len(set(drawn)) > 250


def test_penalties() -> None:
    assert draw([2.0, 1.9], output=(0,), presence_penalty=0.2) == [1]
    assert draw([2.0, 1.5], output=(0,), frequency_penalty=0.2) == [0]
    assert draw([2.0, 1.5], output=(0, 0, 0), frequency_penalty=0.2) == [1]
    assert draw([2.0, 1.9], prompt=(0,), presence_penalty=2.0) == [0]  # the prompt is no output
    assert draw([2.0, 1.9], prompt=(0,), repetition_penalty=1.2) == [1]
    assert draw([-2.0, -2.1], prompt=(0,), repetition_penalty=1.2) == [1]


def test_min_tokens_suppresses_every_end_token() -> None:
    ends = frozenset({0, 1})
    assert draw([9.0, 8.0, 1.0], ends=ends, min_tokens=1) == [2]
    assert draw([9.0, 8.0, 1.0], ends=ends, min_tokens=1, output=(2,)) == [0]
    assert set(draw([9.0, 8.0, 1.0], 50, ends=ends, min_tokens=1, temperature=2.0)) == {2}


def test_logits_that_are_no_numbers_are_told_apart_by_row() -> None:
    logits = torch.tensor([[1.0, math.nan], [1.0, 2.0], [math.inf, 0.0]])
    assert sampler.sample(logits, [sequence(), sequence(), sequence()], NO_ENDS) == [None, 1, None]
