"""Who goes first, who gives way, and what a long queue costs."""

import random
from collections.abc import Callable
from typing import Any

import pytest

from inference.engine.loading import LoadedModel
from inference.engine.scheduler import WaitingList
from tests.inference.engine.conftest import PLAIN, Bench, Result, reference

Make = Callable[..., Bench]


def prompt(length: int, seed: int = 0) -> list[int]:
    rng = random.Random(seed)
    return [rng.choice(PLAIN) for _ in range(length)]


def admitted_ns(result: Result) -> int:
    return result.of("admitted")[0][2]


def test_measured_requests_go_before_live_ones_and_each_kind_in_its_order(bench: Make) -> None:
    engine = bench(max_batch=1)
    results = [
        engine.submit(prompt(4, seed), max_tokens=2, priority=priority)
        for seed, priority in enumerate(("live", "measured", "live", "measured"))
    ]
    engine.finish()
    assert sorted(range(4), key=lambda number: admitted_ns(results[number])) == [1, 3, 0, 2]


def test_a_measured_request_takes_the_place_of_the_youngest_live_one(bench: Make, llama: LoadedModel) -> None:
    engine = bench(max_batch=2)
    older, younger = (engine.submit(prompt(4, seed), max_tokens=12, priority="live") for seed in range(2))
    engine.step(4)
    measured = engine.submit(prompt(4, 2), max_tokens=12)
    engine.step()
    assert measured.of("admitted")
    assert younger.of("preempted")
    assert not older.of("preempted")
    engine.finish()
    for seed, result in enumerate((older, younger, measured)):
        assert result.ids == reference(llama.model, prompt(4, seed), 12)


def test_a_measured_request_does_not_give_way_to_anybody_measured(bench: Make) -> None:
    engine = bench(max_batch=1)
    first, second = (engine.submit(prompt(4, seed), max_tokens=6) for seed in range(2))
    engine.step(2)
    assert not second.of("admitted")
    engine.finish()
    assert not first.of("preempted")


def test_the_last_block_goes_to_the_measured_one_even_if_it_is_younger(bench: Make) -> None:
    engine = bench(kv_blocks=8, prefix_cache=False)
    live = engine.submit(prompt(8), max_tokens=20, priority="live")
    engine.step(2)
    measured = engine.submit(prompt(8, 1), max_tokens=20)
    engine.finish()
    assert live.of("preempted")
    assert not measured.of("preempted")
    assert admitted_ns(measured) > admitted_ns(live)


def test_a_measured_prompt_is_not_held_up_by_live_ones(bench: Make) -> None:
    engine = bench(prefill_chunk_tokens=8)
    live = engine.submit(prompt(60), max_tokens=2, priority="live")
    engine.step()
    measured = engine.submit(prompt(16, 1), max_tokens=2)
    engine.step(2)
    assert sum(event[4] for event in measured.of("chunk")) == 16
    assert sum(event[4] for event in live.of("chunk")) == 8
    engine.finish()


def test_live_requests_do_not_use_up_the_waiting_list_of_measured_ones(bench: Make) -> None:
    engine = bench(max_batch=1, max_waiting=1)
    live = [engine.submit(prompt(3, seed), max_tokens=2, priority="live") for seed in range(3)]
    assert [result.kinds[0] for result in live] == ["queued", "queued", "rejected"]
    assert live[2].events[0][4]  # busy: later perhaps
    assert engine.submit(prompt(3), max_tokens=2).kinds == ["queued"]


def test_a_long_queue_is_never_searched(bench: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = bench(max_batch=2, max_waiting=2000)
    queued = [engine.submit(prompt(4, seed), max_tokens=3) for seed in range(1000)]
    with monkeypatch.context() as patch:

        def searched(_: Any) -> Any:
            raise AssertionError("somebody looks through the waiting list")

        patch.setattr(WaitingList, "__iter__", searched)
        engine.step(6)
        for result in queued[10:900]:
            engine.abort(result)
        engine.step()
    assert len(engine.engine.scheduler.waiting) < 110
    engine.finish()
    assert sum(result.reason == "length" for result in queued) == 110


# -- one answer and its neighbours ----------------------------------------------------------------------


def test_logprobs_come_with_the_tokens_where_asked_for(bench: Make) -> None:
    engine = bench()
    plain = engine.submit(prompt(5), max_tokens=4)
    told = engine.submit(prompt(5), max_tokens=4, logprobs=2)
    engine.finish()
    assert told.ids == plain.ids
    assert all(len(event) == 6 for event in plain.of("token"))
    for event in told.of("token"):
        (token_id, logprob, spelt), *alternatives = event[6]
        assert token_id == event[4] == alternatives[0][0]  # greedy: the most probable one
        assert logprob == alternatives[0][1] <= 0
        assert alternatives[1][1] <= alternatives[0][1]
        assert spelt == engine.engine._token_bytes.of(token_id)


def test_a_stop_token_ends_the_answer_and_is_no_text(bench: Make) -> None:
    engine = bench()
    free = engine.run(prompt(9, 4), max_tokens=20)
    stop = free.ids[5]
    result = engine.run(prompt(9, 4), max_tokens=20, stop_token_ids=(stop,))
    assert result.ids == free.ids[: free.ids.index(stop) + 1]
    assert result.reason == "stop"
    assert result.text == engine.engine.loaded.decode(result.ids[:-1])


def test_text_that_cannot_be_decoded_ends_its_own_answer_only(bench: Make) -> None:
    class Broken:
        stopped = False

        def add(self, *_: Any) -> str:
            raise ValueError("no such token")

    engine = bench()
    broken, fine = engine.submit(prompt(5), max_tokens=6), engine.submit(prompt(5, 1), max_tokens=6)
    engine.step()
    first: Any = next(one for one in engine.engine.scheduler.running if one.handle == 1)
    first.detokeniser = Broken()
    engine.finish()
    assert "could not be decoded: ValueError: no such token" in broken.of("failed")[0][3]
    assert len(fine.ids) == 6
