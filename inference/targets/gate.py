"""Where arriving requests wait while no model is loaded, and from where each goes on in its turn."""

import asyncio
import threading
from concurrent.futures import Future


class GateFull(Exception):
    """As many requests wait as may wait."""


class Gate:
    """Open until `shut`; then those who arrive wait, up to a limit, until it opens. Any thread, any loop."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._shut = False
        self._limit = 0
        self._waiting: list[Future[None]] = []
        self.waited = 0  # since it was shut: requests that came and waited
        self.refused = 0  # and those for which there was no room

    def shut(self, limit: int) -> None:
        with self._lock:
            self._shut, self._limit, self.waited, self.refused = True, limit, 0, 0

    def open(self) -> int:
        """Let everybody go on, in the order of arrival; how many have waited until now."""
        with self._lock:
            self._shut = False
            waiting, self._waiting = self._waiting, []
        released = [one for one in waiting if one.set_running_or_notify_cancel()]
        for one in released:
            one.set_result(None)
        return len(released)

    async def passed(self) -> bool:
        """Return when the gate is open: whether one had to wait; raises GateFull at once."""
        with self._lock:
            if not self._shut:
                return False
            self._waiting = [one for one in self._waiting if not one.cancelled()]
            if len(self._waiting) >= self._limit:
                self.refused += 1
                raise GateFull
            mine: Future[None] = Future()
            self._waiting.append(mine)
            self.waited += 1
        await asyncio.wrap_future(mine)
        return True
