"""Ending tasks for certain."""

import asyncio
from collections.abc import Iterable
from typing import Any

AGAIN_AFTER_S = 0.2


async def end_all(tasks: Iterable[asyncio.Task[Any]]) -> None:
    """Cancel tasks until they have ended: the broker's library now and then swallows a cancellation."""
    pending = set(tasks)
    while pending:
        for task in pending:
            task.cancel()
        _, pending = await asyncio.wait(pending, timeout=AGAIN_AFTER_S)
