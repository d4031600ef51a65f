"""Case 15: random workloads, each finished output compared with the sequential reference.

Lengths, arrivals, departures, priorities, pool, batch and chunk sizes, and all the switches are random.
"""

import random
from collections.abc import Callable

import pytest

from inference.engine.kv import BlockManager
from inference.engine.loading import LoadedModel
from inference.engine.scheduler import Drafter
from inference.engine.speculation import PromptLookup
from tests.inference.engine.conftest import PLAIN, Bench, Result, loaded, reference, tiny_config, tiny_model

LONGEST_ANSWER = 24
WORKLOADS_IN_A_GROUP = 20

Answers = Callable[[LoadedModel, tuple[int, ...]], list[int]]


def prompt(length: int, seed: int) -> tuple[int, ...]:
    rng = random.Random(seed)
    return tuple(rng.choice(PLAIN) for _ in range(length))


PROMPTS = [prompt(length, seed) for seed, length in enumerate((1, 3, 4, 5, 8, 12, 17, 30))]
PROMPTS += [PROMPTS[-1][:20] + PROMPTS[4], PROMPTS[-1][:16], PROMPTS[-1][:24]]  # with shared prefixes
PROMPTS += [PROMPTS[4] * 3]  # where the lookup finds something at once


@pytest.fixture(scope="module")
def answers() -> Answers:
    """Sequential references, computed once for each prompt."""
    known: dict[tuple[int, ...], list[int]] = {}

    def answer(model: LoadedModel, ids: tuple[int, ...]) -> list[int]:
        if ids not in known:
            known[ids] = reference(model.model, list(ids), LONGEST_ANSWER)
        return known[ids]

    return answer


@pytest.fixture(scope="module")
def small() -> LoadedModel:
    """A draft model that is sometimes right: the target with its weights disturbed."""
    model, other = tiny_model(tiny_config()), tiny_model(tiny_config(), seed=7)
    for parameter, noise in zip(model.parameters(), other.parameters(), strict=True):
        parameter.data += 0.02 * noise.data
    return loaded(model)


@pytest.mark.parametrize("group", range(10))
def test_case_15_random_workloads_equal_the_sequential_reference(
    llama: LoadedModel, small: LoadedModel, answers: Answers, group: int
) -> None:
    rng = random.Random(group)
    bench = Bench(llama, draft=small, kv_blocks=16)  # made once: the probe is not what is tested here
    lookup: Drafter = PromptLookup(4, 8)
    drafters: list[Drafter | None] = [None, lookup, bench.engine.drafter]
    for _ in range(WORKLOADS_IN_A_GROUP):
        rearrange(bench, rng, drafters)
        wanted: list[tuple[Result, list[int]]] = []
        for _ in range(rng.randrange(1, 9)):
            ids, tokens = rng.choice(PROMPTS), rng.randrange(1, 17)
            result = bench.submit(ids, max_tokens=tokens, priority=rng.choice(("measured", "live")))
            wanted.append((result, answers(llama, ids)[:tokens]))
            bench.step(rng.choice((0, 0, 1, 2, 5)))
            if rng.random() < 0.25:
                bench.abort(rng.choice(wanted)[0])
            bench.engine.blocks.check(bench.engine.scheduler.running)
        bench.finish()
        for result, expected in wanted:
            if result.reason is not None:
                assert result.ids == expected
            else:
                assert "aborted" in result.kinds
                assert result.ids == expected[: len(result.ids)]
    statistics = bench.engine.statistics
    assert 0 < statistics.accepted < statistics.drafted


def rearrange(bench: Bench, rng: random.Random, drafters: list[Drafter | None]) -> None:
    """The same engine with other sizes and switches; the smallest pool holds one request."""
    engine, scheduler = bench.engine, bench.engine.scheduler
    blocks = BlockManager(rng.choice((12, 13, 16)), 4, prefix_cache=rng.random() < 0.7)
    engine.blocks = scheduler.blocks = blocks
    scheduler._max_batch, scheduler._chunk_tokens = rng.randrange(1, 6), rng.choice((1, 3, 8, 16))
    scheduler._phase_pure = rng.random() < 0.7
    engine.drafter = scheduler.drafter = drafter = rng.choice(drafters)
    if drafter is not None:
        drafter.max_batch = rng.choice((1, 2, 8))
        drafter.reset()


def test_other_weights_too() -> None:
    model = tiny_model(tiny_config(num_key_value_heads=1), seed=3)
    bench = Bench(loaded(model), kv_blocks=10, speculate="ngram")
    prompts = [prompt(length, length) for length in (3, 9, 14)]
    results = [bench.submit(ids, max_tokens=10) for ids in prompts]
    bench.finish()
    assert [result.ids for result in results] == [reference(model, list(ids), 10) for ids in prompts]
