"""When a process that dies at every start is not started again at once."""

import time
from collections.abc import Callable

LIMIT = 3  # early ends in a row
EARLY_S = 60.0  # an end within this time of being ready, without one finished request, is early
PAUSES_S = (60.0, 300.0, 900.0)  # after the third, the fourth, and every further early end


class Crashes:
    """Counts the early ends of one model's process; a process that has served starts the count anew."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._count = 0
        self._reason = ""
        self._until = 0.0

    def ended(self, reason: str, *, ready_s: float | None, served: bool) -> None:
        """The process is gone by itself; `ready_s` is how long its model was loaded, None: never."""
        if served or (ready_s is not None and ready_s > EARLY_S):
            self._count = 0
            return
        self._count, self._reason = self._count + 1, reason
        if self._count >= LIMIT:
            pause_s = PAUSES_S[min(self._count - LIMIT, len(PAUSES_S) - 1)]
            self._until = self._now() + pause_s

    def served(self) -> None:
        self._count = 0

    def refusal(self, model: str) -> str | None:
        """Why this model is not started now; None when it may be."""
        left_s = self._until - self._now()
        if self._count < LIMIT or left_s <= 0:
            return None
        return (
            f"The engine process of {model} has ended at each of its last {self._count} starts, so it is not "
            f"started again for {left_s:.0f} s. The last time: {self._reason}"
        )
