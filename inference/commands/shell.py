"""What the commands share: exit codes, errors in one line, ending at a signal, progress and figures."""

import argparse
import asyncio
import os
import signal
import sys
import time
from collections.abc import Coroutine
from typing import Any, NoReturn, TypeAlias

from inference.errors import InputError
from inference.load.generator import LoadState
from inference.load.precise_loop import new_event_loop

MEASURED, BAD_INPUT, NO_TARGET, INVALID, INTERRUPTED = 0, 2, 3, 4, 130
BROKEN = 1  # our own fault


class Parser(argparse.ArgumentParser):
    """Says what is wrong in one line, and where to read more."""

    def error(self, message: str) -> NoReturn:
        raise InputError(f"{message} (see {self.prog} --help)")


#: where a command adds itself
Commands: TypeAlias = "argparse._SubParsersAction[Parser]"


def complain(what: object, code: int) -> int:
    """Say on standard error, in one line, what went wrong; returns the exit code."""
    print(f"phasegate: {' '.join(str(what).split())}", file=sys.stderr)
    return code


def run_until_signal(run: Any, *, measuring: bool = False) -> int:
    """Run a command with an event that SIGINT and SIGTERM set; the second signal ends at once.

    One that is `measuring` gets the loop with exact timers.
    """

    async def guarded() -> int:
        stop = asyncio.Event()
        loop = asyncio.get_running_loop()

        def asked(number: int) -> None:
            stop.set()
            loop.remove_signal_handler(number)  # from now on the default, for the impatient

        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, asked, number)
        return int(await run(stop))

    with asyncio.Runner(loop_factory=new_event_loop if measuring else None) as runner:
        return runner.run(guarded())


async def unless(stop: asyncio.Event, work: Coroutine[Any, Any, Any]) -> Any:
    """The result of `work`; KeyboardInterrupt when `stop` is set first."""
    task = asyncio.ensure_future(work)
    stopper = asyncio.create_task(stop.wait())
    try:
        await asyncio.wait({task, stopper}, return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            raise KeyboardInterrupt
        return task.result()
    finally:
        for waiting in (task, stopper):
            waiting.cancel()
        await asyncio.gather(task, stopper, return_exceptions=True)


class Progress:
    """How far the load is, on standard error: one moving line on a terminal, else a line now and then."""

    CHANGED_EVERY_S, SAME_EVERY_S = 2.0, 20.0

    def __init__(self) -> None:
        self._moving = sys.stderr.isatty()
        self._said, self._said_s = "", 0.0

    def say(self, text: str) -> None:
        print(text, file=sys.stderr, flush=True)

    def tick(self, state: LoadState) -> None:
        line = (
            f"{state.phase}: {state.done}/{state.total} done, {state.failed} failed, "
            f"{len(state.in_flight)} under way"
        )
        if self._moving:
            print(f"\r{line:70}", end="", file=sys.stderr, flush=True)
            return
        now_s = time.monotonic()
        if now_s - self._said_s >= (self.SAME_EVERY_S if line == self._said else self.CHANGED_EVERY_S):
            self._said, self._said_s = line, now_s
            self.say(line)

    def end(self) -> None:
        if self._moving:
            print(file=sys.stderr)


def figures_line(name: str, figures: dict[str, Any]) -> str:
    """One distribution as a line of a report."""
    if not figures["n"]:
        return f"{name:22} not observed"
    shown = "  ".join(f"{key} {figures[key]:.2f}" for key in ("p50", "p90", "p95", "p99", "max"))
    thin = "  (p99 thin)" if figures["thin"] else ""
    return f"{name:22} n {figures['n']}  {shown}{thin}"


def api_key(variable: str | None) -> str | None:
    """The key in an environment variable; InputError when it is named and not set."""
    if variable is None:
        return None
    key = os.environ.get(variable)
    if not key:
        raise InputError(f"environment variable {variable} (--api-key-env) is not set")
    return key
