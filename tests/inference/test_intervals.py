"""Intervals of shares and slopes."""

import pytest

from inference.intervals import share_interval, slope


def test_a_share_of_few_is_hardly_known() -> None:
    low, high = share_interval(0, 10) or (1, 0)
    assert low == 0.0
    assert high == pytest.approx(0.278, abs=0.001)
    low, high = share_interval(50, 100) or (1, 0)
    assert (low, high) == (pytest.approx(0.404, abs=0.001), pytest.approx(0.596, abs=0.001))
    assert share_interval(0, 0) is None


def test_a_slope_is_known_with_its_interval() -> None:
    line = slope([(0, 1.0), (1, 3.0), (2, 5.0), (3, 7.0)])
    assert line is not None
    assert line.per_step == pytest.approx(2.0)
    assert line.direction == "rising"
    noisy = slope([(0, 1.0), (1, 3.0), (2, 1.0), (3, 3.0)])
    assert noisy is not None
    assert noisy.direction == "steady"
    two = slope([(0, 1.0), (1, 3.0)])
    assert two is not None
    assert (two.low, two.direction) == (None, "unknown")
    assert slope([(1, 1.0), (1, 2.0)]) is None
