"""Shapes of load: the rate they promise, their count, the same for one seed, and what is refused."""

import itertools
import random

import pytest

from inference.errors import InputError
from inference.load.generator import LoadPlan
from inference.requests import GenerationRequest
from inference.workload.arrivals import arrival_offsets_s, offsets, parse_shape


def take(shape: str, n: int, *, rate: float | None = None, seed: int = 0) -> list[float]:
    return list(itertools.islice(offsets(parse_shape(shape), rate=rate, seed=seed), n))


def within(found: list[float], start_s: float, end_s: float) -> int:
    return sum(start_s <= at < end_s for at in found)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("shape", ["constant", "poisson", "gamma:0.5", "gamma:4"])
def test_rated_shapes_keep_their_mean_rate(shape: str, seed: int) -> None:
    rate = random.Random(seed).uniform(0.5, 200)
    found = take(shape, 8000, rate=rate, seed=seed)
    assert found[0] == 0
    assert found == sorted(found)
    assert 8000 / found[-1] == pytest.approx(rate, rel=0.06)
    assert found == take(shape, 8000, rate=rate, seed=seed)


def test_bursts_come_together_and_apart() -> None:
    assert take("burst:3/2.5", 7) == [0, 0, 0, 2.5, 2.5, 2.5, 5.0]


@pytest.mark.parametrize("spacing", ["", ",poisson"])
def test_a_ramp_reaches_its_rate_and_stays_there(spacing: str) -> None:
    found = take(f"ramp:10-50/60{spacing}", 6000, seed=3)
    expected = {0: 10 + 40 / 12, 30: 30 + 40 / 12, 60: 50, 90: 50}  # mean rate of the ten seconds from there
    for start_s, rate in expected.items():
        assert within(found, start_s, start_s + 10) == pytest.approx(rate * 10, abs=4 * (rate * 10) ** 0.5)
    assert within(found, 0, 60) == pytest.approx(1800, rel=0.07)
    assert found == sorted(found)


def test_a_falling_ramp_falls() -> None:
    found = take("ramp:20-5/10", 200)
    assert within(found, 0, 1) > 3 * within(found, 12, 13)


@pytest.mark.parametrize("spacing", ["", ",poisson"])
def test_steps_keep_each_rate_for_its_time(spacing: str) -> None:
    found = take(f"steps:2x50,0x10,40x20{spacing}", 1500, seed=1)
    assert within(found, 0, 50) == pytest.approx(100, abs=25)
    assert within(found, 50, 60) <= 1
    assert within(found, 60, 80) == pytest.approx(800, rel=0.1)
    assert within(found, 80, 90) == pytest.approx(400, abs=80)  # the last one stays


def test_steps_that_end_in_silence_say_so() -> None:
    with pytest.raises(InputError, match="rate of 0 after 20 requests"):
        take("steps:2x10,0x5", 21)


def test_a_trace_is_replayed_at_its_speed_in_the_order_of_the_file() -> None:
    rows = [GenerationRequest(id=str(i), prompt="x", arrival_s=at) for i, at in enumerate((0, 4, 4, 10))]
    assert arrival_offsets_s(rows, rate=None, arrival="trace") == [0, 4, 4, 10]
    assert arrival_offsets_s(rows, rate=None, arrival="trace:4") == [0, 1, 1, 2.5]


@pytest.mark.parametrize(
    "wrong",
    ["", "burst", "burst:0/1", "burst:2/0", "ramp:1-0/5", "ramp:1-5", "steps:", "steps:2", "steps:2x0",
     "trace:0", "constant:1", "gamma:inf", "gamma:-1", "steps:nanx3", "poisson:2"],
)  # fmt: skip
def test_what_is_no_shape_is_refused_with_its_form(wrong: str) -> None:
    with pytest.raises(InputError, match="arrival must be"):
        LoadPlan(arrival=wrong)


@pytest.mark.parametrize("arrival", ["burst:2/1", "ramp:1-2/3", "steps:1x1", "trace"])
def test_shapes_with_their_own_times_are_open_loops(arrival: str) -> None:
    assert LoadPlan(arrival=arrival, concurrency=4).open_loop
    assert not LoadPlan(concurrency=4).open_loop
