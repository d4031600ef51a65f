"""Sampling by the rules of each request alone."""

import math
from typing import Any

import pytest
import torch
from transformers.generation.logits_process import (
    MinPLogitsWarper,
    TemperatureLogitsWarper,
    TopKLogitsWarper,
    TopPLogitsWarper,
)

from inference.engine import sampler
from inference.engine.detokenise import Detokeniser, WindowJoiner
from inference.engine.device import CpuDevice
from inference.engine.engine import _seed
from inference.engine.scheduler import Work
from inference.engine.sequence import Sequence, new_sequence
from inference.requests import GenerationRequest

NO_ENDS: frozenset[int] = frozenset()


def sequence(
    output: tuple[int, ...] = (),
    prompt: tuple[int, ...] = (0,),
    ends: frozenset[int] = NO_ENDS,
    **fields: Any,
) -> Sequence:
    """A sequence whose tokens are all computed but the last."""
    request = GenerationRequest(id="r", **fields)
    detokeniser = Detokeniser(WindowJoiner(lambda _: ""))
    one = new_sequence(1, request, list(prompt), detokeniser, end_ids=ends, seed=_seed(request), queued_ns=0)
    for token_id in output:
        append(one, token_id)
    one.num_computed = len(one.tokens) - 1
    return one


def append(one: Sequence, token_id: int) -> None:
    one.tokens.append(token_id)
    one.num_computed += 1
    if one.history is not None:
        one.history.add(token_id)


def sample(logits: Any, sequences: list[Sequence]) -> list[int | None]:
    """The next token of each."""
    choices = sampler.choose(torch.as_tensor(logits), [Work(one, 1) for one in sequences], CpuDevice())
    return [None if choice is None else choice.tokens[0] for choice in choices]


def draw(logits: list[float], times: int = 1, **fields: Any) -> list[int | None]:
    """So many draws from one distribution: by as many seeds, where any are drawn."""
    seeds = range(times) if fields.get("temperature") else [None] * times
    return [sample([logits], [sequence(**fields, seed=seed)])[0] for seed in seeds]


def test_case_10_a_tiny_temperature_is_argmax_and_never_nan() -> None:
    assert set(draw([1.0, 1.0001, 0.5], 50, temperature=1e-4)) == {1}
    assert set(draw([100.0, 3e4, -3e4], 50, temperature=1e-3)) == {1}


def test_case_9_a_seed_holds_beside_unseeded_neighbours() -> None:
    logits = torch.randn(20, 50, generator=torch.Generator().manual_seed(1))

    def answer(neighbours: int) -> list[int | None]:
        """Twenty tokens of the seeded request, from row after row of logits."""
        seeded = sequence(temperature=1.0, seed=42)
        others = [sequence(temperature=1.2) for _ in range(neighbours)]
        tokens = []
        for row in logits:
            rows = torch.stack([row] * (neighbours + 1))
            tokens.append(sample(rows, [*others, seeded])[-1])
            append(seeded, tokens[-1] or 0)
        return tokens

    assert answer(3) == answer(0)
    assert len(set(answer(0))) > 3


def test_draws_follow_the_distribution() -> None:
    drawn = draw([math.log(0.7), math.log(0.2), math.log(0.1)], 4000, temperature=1.0)
    assert shares(drawn, 3) == pytest.approx([0.7, 0.2, 0.1], abs=0.03)


def shares(drawn: list[int | None], of: int) -> list[float]:
    return [drawn.count(token_id) / len(drawn) for token_id in range(of)]


def test_the_draws_of_one_answer_are_independent() -> None:
    """Pairs of consecutive places fall into the cells of a square evenly."""
    pairs = [(sampler.uniform(7, place), sampler.uniform(7, place + 1)) for place in range(0, 8000, 2)]
    cells = [int(a * 4) * 4 + int(b * 4) for a, b in pairs]
    counts = [cells.count(cell) for cell in range(16)]
    assert sum((count - 250) ** 2 / 250 for count in counts) < 38  # chi-square, 15 degrees: 1 in 1,000


def test_top_k_top_p_and_min_p_cut_the_tail() -> None:
    logits = [math.log(p) for p in (0.5, 0.3, 0.15, 0.05)]
    assert set(draw(logits, 300, temperature=1.0, top_k=2)) == {0, 1}
    assert set(draw(logits, 300, temperature=1.0, top_p=0.6)) == {0, 1}
    assert set(draw(logits, 100, temperature=1.0, top_p=1e-9)) == {0}
    assert set(draw(logits, 300, temperature=1.0, top_k=3, top_p=0.9)) == {0, 1, 2}
    assert set(draw(logits, 300, temperature=1.0, min_p=0.29)) == {0, 1, 2}
    assert set(draw(logits, 300, temperature=1.0, min_p=0.31)) == {0, 1}
    assert set(draw(logits, 300, temperature=1.0, min_p=1.0)) == {0}


def test_what_is_left_keeps_its_proportions() -> None:
    logits = [math.log(p) for p in (0.05, 0.5, 0.15, 0.3)]
    drawn = draw(logits, 4000, temperature=1.0, top_p=0.7)
    assert shares(drawn, 4) == pytest.approx([0, 0.625, 0, 0.375], abs=0.03)


@pytest.mark.parametrize(
    ("fields", "warpers"),
    [
        ({"top_k": 7}, [TopKLogitsWarper(7)]),
        ({"top_p": 0.8}, [TopPLogitsWarper(0.8)]),
        ({"min_p": 0.2}, [MinPLogitsWarper(0.2)]),
        (
            {"top_k": 40, "top_p": 0.9, "min_p": 0.05},
            [TopKLogitsWarper(40), TopPLogitsWarper(0.9), MinPLogitsWarper(0.05)],
        ),
    ],
)
def test_large_vocabularies_are_cut_as_transformers_does(fields: dict[str, Any], warpers: list[Any]) -> None:
    """The candidates of a vocabulary that is searched in chunks, over several shapes of distribution."""
    for spread in (0.1, 1.0, 4.0):
        logits = spread * torch.randn(1, 5000, generator=torch.Generator().manual_seed(3))
        wanted = logits
        for warper in [TemperatureLogitsWarper(0.7), *warpers]:
            wanted = warper(None, wanted)
        allowed = set(torch.isfinite(wanted[0]).nonzero().flatten().tolist())
        drawn = draw(logits[0].tolist(), 400, temperature=0.7, **fields)
        assert set(drawn) <= allowed
        likely = (wanted[0].softmax(-1) > 0.02).nonzero().flatten().tolist()
        assert set(likely) <= set(drawn)


def test_a_wide_nucleus_sorts_everything() -> None:
    drawn = draw([0.0] * 2000, 300, temperature=1.0, top_p=0.95)
    assert len(set(drawn)) > 250


def test_a_sum_over_chunks_draws_as_one_sum_does() -> None:
    weights = torch.rand(3000, generator=torch.Generator().manual_seed(5)).numpy()
    weights[1000:2600] = 0
    running = weights.astype("float64").cumsum()
    for place in range(300):
        u = sampler.uniform(1, place)
        assert sampler._pass(weights, u) == int((running > u * running[-1]).argmax())
    assert sampler._pass(weights, 0.0) == 0
    assert sampler._pass(weights, 1 - 2.0**-52) == 2999


def test_penalties() -> None:
    assert draw([2.0, 1.9], output=(0,), presence_penalty=0.2) == [1]
    assert draw([2.0, 1.5], output=(0,), frequency_penalty=0.2) == [0]
    assert draw([2.0, 1.5], output=(0, 0, 0), frequency_penalty=0.2) == [1]
    assert draw([2.0, 1.9], prompt=(0,), presence_penalty=2.0) == [0]  # the prompt is no output
    assert draw([2.0, 1.9], prompt=(0,), repetition_penalty=1.2) == [1]
    assert draw([-2.0, -2.1], prompt=(0,), repetition_penalty=1.2) == [1]


def test_case_11_min_tokens_suppresses_every_end_token() -> None:
    ends = frozenset({0, 1})
    assert draw([9.0, 8.0, 1.0], ends=ends, min_tokens=1) == [2]
    assert draw([9.0, 8.0, 1.0], ends=ends, min_tokens=1, output=(2,)) == [0]
    assert draw([9.0, 8.0, 1.0], stop_token_ids=(0, 1), min_tokens=1) == [2]
    assert set(draw([9.0, 8.0, 1.0], 50, ends=ends, min_tokens=1, temperature=2.0)) == {2}


def test_logits_that_are_no_numbers_are_told_apart_by_row() -> None:
    logits = torch.tensor([[1.0, math.nan], [1.0, 2.0], [math.inf, 0.0]])
    assert sample(logits, [sequence(), sequence(), sequence()]) == [None, 1, None]


def test_logprobs_are_those_of_the_model() -> None:
    logits = torch.randn(1, 3000, generator=torch.Generator().manual_seed(2))
    one = sequence(logprobs=3, temperature=0.3, seed=1, repetition_penalty=1.5, top_k=2)
    choice = sampler.choose(logits, [Work(one, 1)], CpuDevice())[0]
    assert choice is not None
    assert choice.logprobs is not None
    wanted = logits[0].double().log_softmax(-1)
    (chosen, *alternatives) = choice.logprobs[0]
    assert chosen[0] == choice.tokens[0]
    assert [token_id for token_id, _ in alternatives] == wanted.topk(3).indices.tolist()
    for token_id, logprob in choice.logprobs[0]:
        assert logprob == pytest.approx(float(wanted[token_id]), abs=1e-5)
    alone = sampler.choose(logits, [Work(sequence(logprobs=0), 1)], CpuDevice())[0]
    assert alone is not None
    assert [len(told) for told in alone.logprobs or []] == [1]


# -- drafts -----------------------------------------------------------------------------------------------


def test_greedy_drafts_are_right_up_to_the_first_that_argmax_would_not_choose() -> None:
    logits = torch.eye(4)[[2, 0, 3]]
    choices = [
        sampler.choose(logits, [Work(sequence(), 1, drafts)], CpuDevice())[0]
        for drafts in ((2, 0), (2, 1), (1, 0))
    ]
    assert [choice and choice.tokens for choice in choices] == [[2, 0, 3], [2, 0], [2]]


def test_drafts_do_not_change_the_distribution() -> None:
    """Two tokens from a chain whose second step depends on the first, with drafts of every kind."""
    first = [0.5, 0.3, 0.2]
    second = [[0.1, 0.6, 0.3], [0.8, 0.1, 0.1], [0.3, 0.3, 0.4]]
    seen: dict[tuple[int, int], int] = {}
    for seed in range(4000):
        draft = seed % 3
        one = sequence(temperature=1.0, seed=seed)
        logits = torch.tensor([first, second[draft]]).log()
        choice = sampler.choose(logits, [Work(one, 1, (draft,))], CpuDevice())[0]
        assert choice is not None
        tokens = choice.tokens
        if len(tokens) == 1:  # the draft was wrong: the next step computes the second token
            append(one, tokens[0])
            tokens = [*tokens, sample(torch.tensor([second[tokens[0]]]).log(), [one])[0] or 0]
        seen[tokens[0], tokens[1]] = seen.get((tokens[0], tokens[1]), 0) + 1
    for a in range(3):
        for b in range(3):
            assert seen[a, b] / 4000 == pytest.approx(first[a] * second[a][b], abs=0.025)


def test_drafts_do_not_change_a_seeded_answer() -> None:
    logits = torch.randn(4, 30, generator=torch.Generator().manual_seed(9))
    fields: dict[str, Any] = {"temperature": 1.3, "seed": 5, "frequency_penalty": 0.7, "min_tokens": 2}
    one = sequence(ends=frozenset({0}), **fields)
    plain = []
    for row in logits:
        token_id = sample(row[None], [one])[0] or 0
        plain.append(token_id)
        one.tokens.append(token_id)
        one.num_computed += 1
    for right in range(4):
        drafts = tuple(plain[:right]) + ((plain[right] + 1) % 30,) * (3 - right)
        choice = sampler.choose(
            logits, [Work(sequence(ends=frozenset({0}), **fields), 1, drafts)], CpuDevice()
        )[0]
        assert choice is not None
        assert choice.tokens == plain[: right + 1]
