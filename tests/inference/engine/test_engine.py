"""What an engine of this kind gets wrong, one case after another, against the sequential reference."""

import itertools
import random
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import torch

from inference.engine.loading import LoadedModel
from tests.inference.engine.conftest import (
    PLAIN,
    Bench,
    byte_tokenizer,
    loaded,
    reference,
)

Make = Callable[..., Bench]


def prompt(length: int, seed: int = 0) -> list[int]:
    rng = random.Random(seed)
    return [rng.choice(PLAIN) for _ in range(length)]


# -- prefix cache and preemption ---------------------------------------------------------------------


def test_case_4_a_fully_cached_prompt_of_whole_blocks_computes_one_token(
    bench: Make, llama: LoadedModel
) -> None:
    engine = bench()
    ids = prompt(16)
    cold = engine.run(ids, max_tokens=6)
    warm = engine.run(ids, max_tokens=6)
    assert warm.ids == cold.ids == reference(llama.model, ids, 6)
    assert [event[4] for event in warm.of("chunk")] == [1]
    assert warm.of("admitted")[0][3] == 15
    assert engine.run(ids, max_tokens=6).ids == cold.ids  # the shared blocks were not written to


def test_requests_that_arrive_at_once_share_their_prefix(bench: Make, llama: LoadedModel) -> None:
    engine = bench()
    shared = prompt(40)
    prompts = [[*shared, *prompt(3, seed)] for seed in range(1, 5)]
    results = [engine.submit(ids, max_tokens=4) for ids in prompts]
    engine.finish()
    assert [result.of("admitted")[0][3] for result in results] == [
        0,
        32,  # all that is computed when the first one's last chunk leaves room for it
        40,
        40,
    ]
    assert [result.ids for result in results] == [reference(llama.model, ids, 4) for ids in prompts]


def test_a_reset_cache_makes_the_next_run_cold(bench: Make) -> None:
    engine = bench()
    ids = prompt(16)
    first = engine.run(ids, max_tokens=3)
    with ThreadPoolExecutor(1) as pool:
        reset = pool.submit(engine.engine.reset_prefix_cache)  # waits for the step thread: this one
        engine.engine.wait_for_work()
        engine.step()
        reset.result()
    second = engine.run(ids, max_tokens=3)
    assert second.of("admitted")[0][3] == 0
    assert second.ids == first.ids


def test_the_cache_can_be_off(bench: Make) -> None:
    engine = bench(prefix_cache=False)
    ids = prompt(16)
    engine.run(ids, max_tokens=3)
    assert engine.run(ids, max_tokens=3).of("admitted")[0][3] == 0
    assert engine.engine.blocks.cached == 0


def test_namespaces_do_not_share_prefixes(bench: Make) -> None:
    engine = bench()
    ids = prompt(16)
    engine.run(ids, max_tokens=3, namespace="a")
    assert engine.run(ids, max_tokens=3, namespace="b").of("admitted")[0][3] == 0
    assert engine.run(ids, max_tokens=3, namespace="a").of("admitted")[0][3] == 15


@pytest.mark.parametrize("prefix_cache", [True, False])
def test_case_5_preempted_requests_give_the_same_tokens(
    bench: Make, llama: LoadedModel, prefix_cache: bool
) -> None:
    engine = bench(kv_blocks=12, prefix_cache=prefix_cache)
    prompts = [prompt(7, seed) for seed in range(4)]
    results = [engine.submit(ids, max_tokens=20) for ids in prompts]
    engine.finish()
    assert engine.engine.scheduler.preemptions > 0
    assert [result.ids for result in results] == [reference(llama.model, ids, 20) for ids in prompts]
    for result in results:
        assert len(result.of("admitted")) == 1 + len(result.of("preempted"))
    recomputed = sum(event[4] for result in results for event in result.of("chunk") if event[5])
    assert recomputed > 0 or prefix_cache


def test_case_5_resume_at_one_token_past_a_block_appends_one_token(bench: Make, llama: LoadedModel) -> None:
    engine = bench()
    ids = prompt(4)
    result = engine.submit(ids, max_tokens=8)
    engine.step(1)  # the prompt's block is full, one token is known beyond it
    sequence = engine.engine.scheduler.running[0]
    assert sequence.num_tokens == 5
    engine.engine.scheduler._preempt(sequence)
    before = len(result.ids)
    engine.step()
    assert len(result.ids) == before + 1
    assert result.of("admitted")[1][3] == 4  # its own block, found again
    engine.finish()
    assert result.ids == reference(llama.model, ids, 8)


def test_the_youngest_is_preempted_and_comes_back_first(bench: Make) -> None:
    engine = bench(kv_blocks=8, max_batch=2)
    old, young, waiting = (engine.submit(prompt(8, seed), max_tokens=20) for seed in range(3))
    engine.finish()
    assert not old.of("preempted")
    assert young.of("preempted")
    assert waiting.of("admitted")[0][2] > young.of("admitted")[-1][2]


# -- admission ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"ids": []}, "no tokens"),
        ({"ids": [5], "max_tokens": 0}, "max_tokens"),
        ({"ids": [5] * 300, "max_tokens": 5}, "room for 256"),
        ({"ids": [5] * 510, "max_tokens": 5}, "takes 512"),
        ({"ids": [5, 9999]}, "vocabulary"),
        ({"ids": [5, -1]}, "vocabulary"),
        ({"ids": [5], "max_tokens": 3, "min_tokens": 4}, "min_tokens"),
        ({"ids": [5], "temperature": -1.0}, "temperature"),
        ({"ids": [5], "temperature": float("nan")}, "temperature"),
        ({"ids": [5], "top_p": 0.0}, "top_p"),
        ({"ids": [5], "repetition_penalty": 0.0}, "repetition_penalty"),
        ({"ids": [5], "stop": ("",)}, "stop string is empty"),
        ({"ids": [5], "stop_token_ids": (9999,)}, "stop token id is outside the vocabulary"),
        ({"ids": [5], "min_p": 1.5}, "min_p"),
        ({"ids": [5], "logprobs": 21}, "logprobs"),
        ({"ids": [5], "priority": "urgent"}, "priority"),
    ],
)
def test_case_6_what_can_never_fit_is_refused_at_once_and_others_go_on(
    bench: Make, fields: dict[str, Any], reason: str
) -> None:
    engine = bench()
    neighbour = engine.submit(prompt(5), max_tokens=3)
    refused = engine.submit(**fields)
    assert refused.kinds == ["rejected"]
    assert reason in (refused.rejection or "")
    engine.finish()
    assert neighbour.reason == "length"


@pytest.mark.parametrize(
    ("template", "reason"),
    [
        (None, "no chat template"),
        ("{{ raise_exception('one system message') }}", "one system message"),
    ],
)
def test_messages_that_the_template_cannot_take_are_refused(
    bench: Make, llama: LoadedModel, template: str | None, reason: str
) -> None:
    tokenizer = byte_tokenizer()
    tokenizer.chat_template = template
    engine = bench(loaded(llama.model, tokenizer))
    refused = engine.submit(messages=({"role": "user", "content": "hi"},))
    assert reason in (refused.rejection or "")


def test_case_6_an_id_may_be_open_only_once(bench: Make) -> None:
    engine = bench()
    first = engine.submit(prompt(5), id="same", max_tokens=2)
    second = engine.submit(prompt(5), id="same", max_tokens=2)
    assert "already open" in (second.rejection or "")
    engine.finish()
    assert first.reason == "length"
    assert engine.run(prompt(5), id="same", max_tokens=2).reason == "length"


def test_a_full_waiting_list_answers_busy(bench: Make) -> None:
    engine = bench(max_batch=1, max_waiting=2)
    results = [engine.submit(prompt(3, seed), max_tokens=2) for seed in range(5)]
    busy = [result for result in results if result.kinds == ["rejected"]]
    assert len(busy) == 2
    assert all(result.events[0][4] for result in busy)
    engine.finish()
    assert [result.reason for result in results[:3]] == ["length"] * 3


def test_messages_and_prompts_become_ids(bench: Make) -> None:
    engine = bench()
    ids = engine.engine.loaded.tokenizer("user: hi\nassistant: ").input_ids
    by_template = engine.run(messages=({"role": "user", "content": "hi"},), max_tokens=4)
    by_text = engine.run(prompt="user: hi\nassistant: ", max_tokens=4)
    assert by_template.of("queued")[0][3] == by_text.of("queued")[0][3] == len(ids)
    assert by_template.ids == by_text.ids


# -- leaving ---------------------------------------------------------------------------------------------


def test_case_7_whoever_leaves_frees_the_blocks_within_one_step(bench: Make, llama: LoadedModel) -> None:
    engine = bench(max_batch=3)
    stays = engine.submit(prompt(6), max_tokens=12)
    decodes = engine.submit(prompt(5, 1), max_tokens=50)
    prefills = engine.submit(prompt(60, 2), max_tokens=5)
    queued = engine.submit(prompt(5, 3), max_tokens=5)
    engine.step(3)
    assert decodes.ids
    assert prefills.of("chunk")
    assert not prefills.ids
    assert queued.kinds == ["queued"]
    for leaving in (decodes, prefills, queued):
        engine.abort(leaving)
    engine.step()
    for gone in (decodes, prefills, queued):
        assert gone.kinds[-2:] == ["aborted", "freed"]
    assert engine.engine.blocks.held == len(engine.engine.scheduler.running[0].blocks)
    assert engine.engine.statistics.aborted == 3
    engine.finish()
    assert stays.ids == reference(llama.model, prompt(6), 12)


def test_case_8_a_new_request_lives_after_an_abort_with_the_same_id(bench: Make) -> None:
    engine = bench()
    first = engine.submit(prompt(5), id="x", max_tokens=50)
    engine.step(2)
    engine.abort(first)
    engine.step()
    second = engine.submit(prompt(5), id="x", max_tokens=3)
    engine.abort(first)  # late, and of somebody who is gone
    engine.finish()
    assert first.kinds[-2:] == ["aborted", "freed"]
    assert second.reason == "length"


def test_case_8_leaving_during_the_last_step_ends_once(bench: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = bench()
    result = engine.submit(prompt(5), max_tokens=1)
    run = engine.engine.runner.run

    def run_and_leave(step: Any) -> torch.Tensor:
        engine.abort(result)
        return run(step)

    monkeypatch.setattr(engine.engine.runner, "run", run_and_leave)
    engine.finish()
    assert result.kinds == ["queued", "admitted", "aborted", "freed"]
    engine.abort(result)
    engine.finish()
    assert result.kinds.count("aborted") == 1


def test_submitted_and_aborted_in_one_piece_is_never_admitted(bench: Make) -> None:
    engine = bench()
    with engine.engine.together():
        result = engine.submit(prompt(5), max_tokens=5)
        engine.abort(result)
    engine.finish()
    assert result.kinds == ["queued", "aborted", "freed"]


# -- ends, tokens and text --------------------------------------------------------------------------------


def test_case_11_end_tokens_are_suppressed_or_ignored_all_of_them(llama: LoadedModel) -> None:
    ids = prompt(9, 4)
    plain = reference(llama.model, ids, 20)
    ends = frozenset({plain[2], plain[5]})
    engine = Bench(loaded(llama.model, end_ids=ends))
    stopped = engine.run(ids, max_tokens=20, ignore_eos=False)
    assert stopped.reason == "stop"
    assert stopped.ids == plain[: next(i for i, t in enumerate(plain) if t in ends) + 1]
    assert engine.run(ids, max_tokens=20, ignore_eos=True).ids == plain
    late = engine.run(ids, max_tokens=20, min_tokens=8, ignore_eos=False)
    assert not ends & set(late.ids[:8])
    assert len(late.ids) >= 8


def test_case_14_one_token_has_no_decode_step(bench: Make) -> None:
    result = bench().run(prompt(5), max_tokens=1)
    assert result.kinds == ["queued", "admitted", "chunk", "token", "finished", "freed"]
    chunk, token = result.of("chunk")[0], result.of("token")[0]
    assert chunk[2] == token[2]  # the token came with the prompt's last chunk


def test_case_3_a_stop_string_over_several_tokens_is_never_streamed(bench: Make, llama: LoadedModel) -> None:
    ids = prompt(9, 5)
    engine = bench()
    free = engine.run(ids, max_tokens=40)
    text = llama.decode(free.ids)
    stop = text[10:14]
    result = engine.run(ids, max_tokens=40, stop=(stop,))
    assert result.reason == "stop"
    assert result.text == text[: text.index(stop)]
    assert free.ids[: len(result.ids)] == result.ids
    assert llama.decode(result.ids).startswith(result.text)
    assert stop not in result.text


def test_case_1_deltas_join_to_the_text_of_all_ids(bench: Make, llama: LoadedModel) -> None:
    engine = bench()
    for seed in range(6):
        result = engine.run(prompt(9, seed), max_tokens=30, temperature=1.5, seed=seed)
        assert result.text == llama.decode(result.ids)


def test_case_9_a_seeded_request_is_the_same_alone_and_in_company(bench: Make) -> None:
    engine = bench(prefix_cache=False)
    alone = engine.run(prompt(9), max_tokens=20, temperature=1.0, seed=42)
    neighbours = [engine.submit(prompt(7, seed), max_tokens=25, temperature=1.2) for seed in range(3)]
    beside = engine.submit(prompt(9), max_tokens=20, temperature=1.0, seed=42)
    engine.finish()
    assert beside.ids == alone.ids
    assert all(len(neighbour.ids) == 25 for neighbour in neighbours)
    assert engine.run(prompt(9), max_tokens=20, temperature=1.0, seed=43).ids != alone.ids


@pytest.mark.parametrize("penalty", [1.3, 0.8])
def test_the_repetition_penalty_is_that_of_transformers(
    bench: Make, llama: LoadedModel, penalty: float
) -> None:
    ids = prompt(9)
    expected = reference(llama.model, ids, 30, repetition_penalty=penalty)
    assert bench().run(ids, max_tokens=30, repetition_penalty=penalty).ids == expected


def test_case_10_a_tiny_temperature_equals_argmax(bench: Make) -> None:
    engine = bench()
    greedy = engine.run(prompt(9), max_tokens=20)
    assert engine.run(prompt(9), max_tokens=20, temperature=1e-4).ids == greedy.ids


# -- steps --------------------------------------------------------------------------------------------------


def test_steps_are_pure_and_take_turns(bench: Make) -> None:
    engine = bench()
    first = engine.submit(prompt(5), max_tokens=12)
    engine.step(2)
    second = engine.submit(prompt(60, 1), max_tokens=2)
    engine.finish()
    chunks = second.of("chunk")
    assert [event[4] for event in chunks] == [16, 16, 16, 12]
    between = [e for e in first.of("token") if chunks[0][3] < e[2] < chunks[-1][2]]
    assert len(between) == 3  # one decode step of the other between each two chunks
    spans = sorted((event[3], event[2]) for event in [*chunks, *first.of("token")])
    assert all(end <= start for (_, end), (start, _) in itertools.pairwise(spans))


def test_a_step_that_breaks_ends_its_requests_and_not_the_engine(
    bench: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = bench()

    def broken(step: Any) -> torch.Tensor:
        raise RuntimeError("no memory")

    with monkeypatch.context() as patch:
        patch.setattr(engine.engine.runner, "run", broken)
        result = engine.run(prompt(5), max_tokens=3)
    assert result.kinds[-2:] == ["failed", "freed"]
    assert "no memory" in result.of("failed")[0][3]
    assert engine.run(prompt(5), max_tokens=3).reason == "length"


def test_logits_that_are_no_numbers_fail_one_request(bench: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = bench()
    run = engine.engine.runner.run
    monkeypatch.setattr(engine.engine.runner, "run", lambda step: run(step) * float("nan"))
    assert "not numbers" in engine.run(prompt(5), max_tokens=3).of("failed")[0][3]
