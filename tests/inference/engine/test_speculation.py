"""Guessed tokens change how fast an answer comes and never what it is."""

import asyncio
import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from inference.engine.detokenise import Detokeniser, WindowJoiner
from inference.engine.loading import LoadedModel
from inference.engine.options import EngineOptions
from inference.engine.scheduler import Step
from inference.engine.sequence import Sequence, new_sequence
from inference.engine.speculation import LONGEST_PAUSE_TOKENS, Adaptive, DraftModel, PromptLookup
from inference.errors import InputError, TargetUnavailable
from inference.records import Trace
from inference.requests import GenerationRequest
from inference.targets.base import TargetInfo
from inference.targets.embedded import EngineTarget
from tests.inference.engine.conftest import (
    PLAIN,
    VOCABULARY,
    Bench,
    byte_tokenizer,
    loaded,
    reference,
    tiny_config,
    tiny_model,
)

Make = Callable[..., Bench]


def prompt(length: int, seed: int = 0) -> list[int]:
    rng = random.Random(seed)
    return [rng.choice(PLAIN) for _ in range(length)]


REPEATING = prompt(7) * 3  # what it says next it has said before


@pytest.fixture(scope="module")
def exact() -> LoadedModel:
    """A draft model that is always right: the target itself."""
    return loaded(tiny_model(tiny_config()))


@pytest.fixture(scope="module")
def fair() -> LoadedModel:
    """A draft model that is right now and then."""
    model, other = tiny_model(tiny_config()), tiny_model(tiny_config(), seed=7)
    for parameter, noise in zip(model.parameters(), other.parameters(), strict=True):
        parameter.data += 0.02 * noise.data
    return loaded(model)


@pytest.fixture(params=["ngram", "exact", "fair"])
def speculating(request: pytest.FixtureRequest, bench: Make) -> Make:
    """Makes engines that guess, by each method."""
    method: dict[str, Any] = {"speculate": "ngram"}
    if request.param != "ngram":
        method = {"draft": request.getfixturevalue(request.param)}
    return lambda **options: bench(**({"speculate_max_batch": 8} | method | options))


def steps_of(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> list[list[tuple[int, int]]]:
    """For each step from now on: (tokens known, tokens guessed) of its sequences."""
    seen: list[list[tuple[int, int]]] = []
    run = bench.engine.runner.run

    def spy(step: Step) -> torch.Tensor:
        seen.append([(work.sequence.num_tokens, len(work.drafts)) for work in step.work])
        return run(step)

    monkeypatch.setattr(bench.engine.runner, "run", spy)
    return seen


# -- case 12 -------------------------------------------------------------------------------------------


def test_case_12_speculative_greedy_is_plain_greedy(speculating: Make, llama: LoadedModel) -> None:
    engine = speculating()
    prompts = [REPEATING, prompt(1), prompt(9, 1), prompt(30, 2), [*prompt(30, 2)[:20], *prompt(4, 3)]]
    results = [engine.submit(ids, max_tokens=24) for ids in prompts]
    engine.finish()
    assert [result.ids for result in results] == [reference(llama.model, ids, 24) for ids in prompts]
    assert engine.engine.statistics.drafted > 0
    again = [engine.run(ids, max_tokens=24) for ids in prompts]  # alone, and from the prefix cache
    assert [result.ids for result in again] == [result.ids for result in results]


def test_case_12_right_guesses_save_steps(bench: Make, exact: LoadedModel) -> None:
    engine = bench(draft=exact, speculate_tokens=5)
    result = engine.run(prompt(9), max_tokens=31)
    assert engine.engine.statistics.steps["decode"] == 5  # of 6 tokens each, after the prompt's own
    assert engine.engine.statistics.accepted == engine.engine.statistics.drafted == 25
    stamps = {event[2] for event in result.of("token")}
    assert len(stamps) == 6  # tokens of one step have its stamps


def test_case_12_a_text_that_repeats_itself_is_looked_up() -> None:
    model = tiny_model(tiny_config())
    for layer in model.model.layers:
        layer.self_attn.o_proj.weight.data.zero_()  # each token follows from the one before: soon a cycle
    engine = Bench(loaded(model), speculate="ngram", speculate_tokens=7)
    ids = prompt(5)
    assert engine.run(ids, max_tokens=100).ids == reference(model, ids, 100)
    assert engine.engine.statistics.steps["decode"] < 60
    assert engine.engine.statistics.accepted > 40


def test_case_12_nothing_follows_an_end_token(llama: LoadedModel, exact: LoadedModel) -> None:
    ids = prompt(9, 4)
    plain = reference(llama.model, ids, 20)
    for end in plain[1:6]:
        ends = frozenset({end})
        target, draft = loaded(llama.model, end_ids=ends), replace(exact, end_ids=ends)
        engine = Bench(target, draft=draft, speculate_tokens=8)
        result = engine.run(ids, max_tokens=20, ignore_eos=False)
        assert result.ids == plain[: plain.index(end) + 1]
        assert result.reason == "stop"
        by_id = Bench(llama, draft=exact, speculate_tokens=8).run(ids, max_tokens=20, stop_token_ids=(end,))
        assert by_id.ids == result.ids
        assert by_id.text == result.text


def test_case_12_a_stop_string_ends_the_answer_among_right_guesses(bench: Make, exact: LoadedModel) -> None:
    ids = prompt(9, 5)
    free = bench().run(ids, max_tokens=40)
    stop = free.text[10:14]
    plain = bench().run(ids, max_tokens=40, stop=(stop,))
    result = bench(draft=exact, speculate_tokens=8).run(ids, max_tokens=40, stop=(stop,))
    assert (result.ids, result.text, result.reason) == (plain.ids, plain.text, "stop")


@pytest.mark.parametrize("max_tokens", [1, 2, 3, 6, 7])
def test_case_12_guesses_end_with_max_tokens(
    bench: Make, exact: LoadedModel, monkeypatch: pytest.MonkeyPatch, max_tokens: int
) -> None:
    engine = bench(draft=exact, speculate_tokens=5)
    steps = steps_of(engine, monkeypatch)
    assert len(engine.run(prompt(9), max_tokens=max_tokens).ids) == max_tokens
    assert all(known + guessed <= 9 + max_tokens - 1 for step in steps for known, guessed in step)


def test_case_12_guesses_end_with_the_model(monkeypatch: pytest.MonkeyPatch) -> None:
    model = loaded(tiny_model(tiny_config(max_position_embeddings=40)))
    engine = Bench(model, draft=model, speculate_tokens=8)
    steps = steps_of(engine, monkeypatch)
    ids = prompt(20)
    assert engine.run(ids, max_tokens=20).ids == reference(model.model, ids, 20)
    assert max(known + guessed for step in steps for known, guessed in step) == 39


def test_a_shorter_draft_model_stops_guessing_at_its_end(llama: LoadedModel) -> None:
    short = loaded(tiny_model(tiny_config()))
    short.max_model_tokens = 24
    engine = Bench(llama, draft=short)
    ids = prompt(20)
    assert engine.run(ids, max_tokens=20).ids == reference(llama.model, ids, 20)
    assert engine.engine.statistics.drafted <= 8


# -- with everything else ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "fields",
    [
        {"temperature": 1.0, "seed": 42},
        {"temperature": 0.8, "seed": 1, "top_p": 0.9, "top_k": 20, "min_p": 0.02},
        {"repetition_penalty": 1.3, "presence_penalty": 0.5, "frequency_penalty": 0.4},
        {"temperature": 1.2, "seed": 3, "frequency_penalty": 1.0, "min_tokens": 9},
        {"ignore_eos": False, "min_tokens": 12},
        {"logprobs": 2},
        {"logprobs": 0, "temperature": 0.7, "seed": 9},
    ],
)
def test_every_way_to_sample_gives_the_same_with_guesses(
    bench: Make, speculating: Make, fields: dict[str, Any]
) -> None:
    for ids in (REPEATING, prompt(9, 1)):
        plain = bench().run(ids, max_tokens=25, **fields)
        guessed = speculating().run(ids, max_tokens=25, **fields)
        assert guessed.ids == plain.ids
        assert guessed.text == plain.text
        if "logprobs" in fields:
            assert [[one[0] for one in event[6]] for event in guessed.of("token")] == [
                [one[0] for one in event[6]] for event in plain.of("token")
            ]


def test_preemption_and_shared_prefixes(speculating: Make, llama: LoadedModel) -> None:
    engine = speculating(kv_blocks=14, speculate_max_batch=4)
    prompts = [REPEATING[:9], [*REPEATING[:8], *prompt(4, 1)], prompt(7, 2), REPEATING[:14]]
    results = [engine.submit(ids, max_tokens=24) for ids in prompts]
    engine.finish()
    assert engine.engine.scheduler.preemptions > 0
    assert [result.ids for result in results] == [reference(llama.model, ids, 24) for ids in prompts]


def test_guesses_cost_nobody_a_place(bench: Make, exact: LoadedModel) -> None:
    """Where the last blocks are needed to go on, nothing is guessed into them."""
    plain, guessing = bench(kv_blocks=9), bench(kv_blocks=9, draft=exact)
    for engine in (plain, guessing):
        for seed in range(2):
            engine.submit(prompt(4, seed), max_tokens=12)
        engine.finish()
    assert guessing.engine.scheduler.preemptions <= plain.engine.scheduler.preemptions


def test_whoever_leaves_while_tokens_are_guessed_frees_everything(
    bench: Make, exact: LoadedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = bench(draft=exact)
    leaves, stays = engine.submit(prompt(9), max_tokens=40), engine.submit(prompt(9, 1), max_tokens=12)
    engine.step(2)
    run = engine.engine.runner.run

    def run_and_leave(step: Step) -> torch.Tensor:
        engine.abort(leaves)
        return run(step)

    monkeypatch.setattr(engine.engine.runner, "run", run_and_leave)
    before = len(leaves.ids)
    engine.step()
    assert leaves.kinds[-2:] == ["aborted", "freed"]
    assert len(leaves.ids) == before
    engine.finish()
    assert len(stays.ids) == 12


def test_nothing_is_guessed_in_a_large_batch(bench: Make, exact: LoadedModel) -> None:
    engine = bench(draft=exact, speculate_max_batch=2)
    for seed in range(3):
        engine.submit(prompt(5, seed), max_tokens=6)
    engine.finish()
    assert engine.engine.statistics.drafted == 0
    engine.run(prompt(5), max_tokens=6)
    assert engine.engine.statistics.drafted > 0


def test_a_draft_model_that_breaks_ends_nothing(
    bench: Make, llama: LoadedModel, exact: LoadedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = bench(draft=exact)
    drafter = engine.engine.drafter
    assert isinstance(drafter, DraftModel)

    def broken(step: Step) -> torch.Tensor:
        raise RuntimeError("no memory")

    monkeypatch.setattr(drafter._runner, "run", broken)
    assert engine.run(prompt(5), max_tokens=8).ids == reference(llama.model, prompt(5), 8)
    assert "no memory" in (drafter.failure or "")
    assert engine.engine.statistics.drafted == 0


def test_a_long_prompt_is_caught_up_with_in_chunks(
    bench: Make, exact: LoadedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = bench(draft=exact, prefill_chunk_tokens=8)
    drafter = engine.engine.drafter
    assert isinstance(drafter, DraftModel)
    counts: list[int] = []
    run = drafter._runner.run

    def spy(step: Step) -> torch.Tensor:
        counts.append(step.tokens)
        return run(step)

    monkeypatch.setattr(drafter._runner, "run", spy)
    result = engine.run(prompt(20), max_tokens=30)
    assert max(counts) <= 8
    assert engine.engine.statistics.accepted > 0
    assert len(result.ids) == 30


def test_a_shared_prefix_is_drafted_from_once(bench: Make, exact: LoadedModel) -> None:
    engine = bench(draft=exact)
    drafter = engine.engine.drafter
    assert isinstance(drafter, DraftModel)
    ids = prompt(40)
    first = engine.run(ids, max_tokens=20)
    found: list[int] = []
    drafter._found = lambda sequence: found.append(DraftModel._found(drafter, sequence)) or found[-1]  # type: ignore[method-assign,func-returns-value]
    assert engine.run(ids, max_tokens=20).ids == first.ids
    assert found == [36]  # the last block was copied, since its last token is computed again
    drafter.reset()
    assert engine.run(ids, max_tokens=20).ids == first.ids
    assert found == [36, 0]


# -- how to guess --------------------------------------------------------------------------------------


def sequence(tokens: list[int]) -> Sequence:
    detokeniser = Detokeniser(WindowJoiner(lambda _: ""))
    request = GenerationRequest(id="r", max_tokens=100)
    return new_sequence(1, request, tokens, detokeniser, end_ids=frozenset(), seed=None, queued_ns=0)


@pytest.mark.parametrize(
    ("tokens", "guess"),
    [
        ([1, 2, 3, 4, 5, 6, 1, 2], (3, 4, 5)),
        ([1, 2, 9, 1, 2, 8, 1, 2], (8, 1, 2)),  # the latest place
        ([7, 1, 2, 9, 5, 1, 2, 8, 7, 1, 2], (9, 5, 1)),  # the longest match first
        ([1, 2, 3, 1, 2, 3, 1], (2, 3, 1)),  # on into its own guess
        ([5, 5, 5], (5, 5, 5)),
        ([1, 2, 3, 4, 5], ()),
        ([1], ()),
        ([256, 1, 65536, 256, 1], (65536, 256, 1)),  # numbers whose bytes look alike
    ],
)
def test_the_lookup_goes_on_as_the_text_did(tokens: list[int], guess: tuple[int, ...]) -> None:
    assert PromptLookup(3, 8).propose([sequence(tokens)], [3]) == [guess]


def test_the_lookup_follows_a_growing_text() -> None:
    lookup, rng = PromptLookup(4, 8), random.Random(3)
    one = sequence([rng.randrange(4) for _ in range(8)])
    for _ in range(60):
        fresh = sequence(list(one.tokens))
        assert lookup.propose([one], [4]) == lookup.propose([fresh], [4])
        one.tokens.append(rng.randrange(4))


def test_wrong_guesses_make_the_next_shorter_and_then_pause() -> None:
    adaptive, one = Adaptive(8, 4), sequence([1, 2, 3])
    assert adaptive.wanted(one) == 8
    adaptive.learn(one, 8, 2)
    assert adaptive.wanted(one) == 3
    adaptive.learn(one, 3, 3)
    assert adaptive.wanted(one) == 6
    adaptive.learn(one, 2, 2)  # shortened by max_tokens or the pool: not what it is worth
    assert adaptive.wanted(one) == 6
    for _ in range(20):
        adaptive.learn(one, 1, 0)
    assert adaptive.wanted(one) == 0
    one.tokens += [0] * LONGEST_PAUSE_TOKENS
    assert adaptive.wanted(one) == 1


# -- what may be asked for -----------------------------------------------------------------------------


def test_another_tokenizer_is_refused(bench: Make, exact: LoadedModel) -> None:
    tokenizer = byte_tokenizer()
    tokenizer.add_tokens(["<extra>"])
    with pytest.raises(TargetUnavailable, match="their tokenizers differ in 1 tokens"):
        bench(draft=replace(exact, tokenizer=tokenizer))


def test_tokens_that_the_draft_model_does_not_have_are_left_to_the_target(
    llama: LoadedModel, exact: LoadedModel
) -> None:
    engine = Bench(llama, draft=replace(exact, vocabulary=VOCABULARY - 40))
    ids = [*prompt(5), VOCABULARY - 1]
    assert engine.run(ids, max_tokens=8).ids == reference(llama.model, ids, 8)
    assert engine.engine.statistics.drafted == 0


@pytest.mark.parametrize("speculate", ["", "draft:", "draft", "lookup", "ngram:3"])
def test_options_name_a_method(speculate: str) -> None:
    with pytest.raises(InputError, match="speculate must be ngram or draft:PATH"):
        EngineOptions(path="m", speculate=speculate)


def test_the_draft_model_is_loaded_from_its_path(llama: LoadedModel, model_folder: Path) -> None:
    async def answer() -> tuple[TargetInfo, Trace, dict[str, Any]]:
        target = EngineTarget(model_folder, dtype="float32", speculate=f"draft:{model_folder}", threads=1)
        try:
            info, trace = await target.open(), Trace("r")
            ids = tuple(prompt(5))
            await target.run(GenerationRequest(id="r", prompt_token_ids=ids, max_tokens=9), trace)
            return info, trace, await target.telemetry()
        finally:
            await target.close()

    info, trace, telemetry = asyncio.run(answer())
    assert info.configuration["engine"]["speculate"] == "draft"
    expected = reference(llama.model, prompt(5), 9, eos_token_id=1)
    assert trace.token_ids == expected
    assert 0 < telemetry["accepted_tokens_total"] <= telemetry["drafted_tokens_total"]
    assert len(trace.decode_steps) < len(expected) - 1  # several tokens of one step


def test_a_draft_model_that_is_not_there_is_refused(model_folder: Path) -> None:
    async def start() -> None:
        await EngineTarget(model_folder, speculate="draft:/nowhere").open()

    with pytest.raises(TargetUnavailable, match="no model at /nowhere"):
        asyncio.run(start())
