"""How soon a refused live request may try again: by what the last answers took and how many wait."""

import math
import statistics
import time
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any

#: what a client is told at least and at most
LEAST_S, MOST_S = 1, 60
#: without an answer that has just ended, one is taken to last so long
ASSUMED_S = 5.0
#: while a measured run has every engine, the line does not move at all: nobody knows when it ends
HELD_S = 30
RECENT_S, KEPT = 300.0, 64


class Pace:
    """What the answers of one desk took lately."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._ended: deque[tuple[float, float]] = deque(maxlen=KEPT)

    def note(self, took_s: float) -> None:
        """An answer has ended well, so many seconds after it was taken in."""
        self._ended.append((self._clock(), took_s))

    @property
    def service_s(self) -> float | None:
        """The median of the last answers, at most five minutes old; None without any."""
        since = self._clock() - RECENT_S
        recent = [took_s for at, took_s in self._ended if at >= since]
        return statistics.median(recent) if recent else None


def retry_after_line_s(waiting: int, desks: Iterable[dict[str, Any]], slots: int) -> int:
    """Seconds until those who wait now will have been taken in: their number times the time of an answer,
    shared out over what the free desks do at once (`slots` each).
    """
    states = list(desks)
    free = [state for state in states if not state.get("holder")]
    if states and not free:
        return HELD_S
    return bounded_s(waiting * _service_s(free) / (max(1, slots) * max(1, len(free))))


def retry_after_answer_s(desks: Iterable[dict[str, Any]]) -> int:
    """Seconds until one of several open answers will have ended."""
    return bounded_s(_service_s(desks))


def retry_after_minute_s(now_s: float) -> int:
    """Seconds until the next minute of the clock begins, in which a token may begin requests again."""
    return bounded_s(60 - now_s % 60)


def bounded_s(seconds: float) -> int:
    """Whole seconds that are worth telling."""
    return min(MOST_S, max(LEAST_S, math.ceil(seconds)))


def _service_s(desks: Iterable[dict[str, Any]]) -> float:
    known = [state["service_s"] for state in desks if state.get("service_s") is not None]
    return statistics.fmean(known) if known else ASSUMED_S
