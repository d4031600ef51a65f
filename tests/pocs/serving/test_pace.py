"""How soon a refused request may come again: measured, by its place, and bounded."""

import pytest

from pocs.serving.pace import (
    ASSUMED_S,
    HELD_S,
    LEAST_S,
    MOST_S,
    Pace,
    retry_after_answer_s,
    retry_after_line_s,
    retry_after_minute_s,
)


def test_the_pace_is_the_median_of_the_last_answers_and_forgets_old_ones() -> None:
    now = [0.0]
    pace = Pace(lambda: now[0])
    assert pace.service_s is None
    for took_s in (1.0, 2.0, 60.0):
        pace.note(took_s)
    assert pace.service_s == 2.0
    now[0] = 1_000.0
    assert pace.service_s is None


@pytest.mark.parametrize(
    ("waiting", "service_s", "slots", "expected"),
    [
        (8, 4.0, 4, 8),  # eight of four seconds, four at once
        (8, 4.0, 8, 4),
        (1, 0.01, 8, LEAST_S),
        (64, 120.0, 4, MOST_S),
        (4, None, 4, round(ASSUMED_S)),
    ],
)
def test_the_longer_the_line_and_the_answers_the_later(
    waiting: int, service_s: float | None, slots: int, expected: int
) -> None:
    assert retry_after_line_s(waiting, [{"holder": None, "service_s": service_s}], slots) == expected


def test_two_desks_halve_it_and_a_held_one_does_not_count() -> None:
    free = {"holder": None, "service_s": 4.0}
    held = {"holder": {"run_id": 1}, "service_s": 400.0}
    assert retry_after_line_s(8, [free, free], 4) == 4
    assert retry_after_line_s(8, [free, held], 4) == 8
    assert retry_after_line_s(8, [held], 4) == HELD_S


def test_an_own_answer_ends_after_one_answers_time() -> None:
    assert retry_after_answer_s([{"service_s": 2.2}, {"service_s": None}]) == 3


def test_the_minute_of_a_token_ends_with_the_clocks() -> None:
    assert retry_after_minute_s(125.5) == 55
    assert retry_after_minute_s(179.9) == LEAST_S
