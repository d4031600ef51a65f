"""An event loop with timers exact to some 60 µs: the standard one rounds every wait up to a millisecond."""

import asyncio
import select
import selectors


class _PreciseSelector(selectors.DefaultSelector):
    """Waits on the epoll descriptor itself with `select(2)`, which takes microseconds, then collects.

    A descriptor of epoll is low however many sockets it watches, so the limit of `select` does not matter.
    """

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is not None and timeout > 0:
            select.select([self], [], [], timeout)
            timeout = 0
        return super().select(timeout)


def new_event_loop() -> asyncio.AbstractEventLoop:
    """A loop for measuring; the standard one where the system has no epoll."""
    if not hasattr(select, "epoll"):
        return asyncio.new_event_loop()
    return asyncio.SelectorEventLoop(_PreciseSelector())
