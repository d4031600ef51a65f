"""Waiting for what a process writes, and for the end of all who could still write."""

import os
import select
import time

PATIENCE_S = 30.0


class Pipe:
    """The reading end of a pipe, read no further than asked, with a deadline on every wait."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self.text = ""  # everything read so far
        self._told = 0  # how much of it `line` has returned

    def line(self, within_s: float = PATIENCE_S) -> str:
        """The next line, without its end."""
        end = self._find("\n", within_s)
        line, self._told = self.text[self._told : end], end + 1
        return line

    def wait_for(self, text: str, within_s: float = PATIENCE_S) -> None:
        """Read on until `text` has been written after the lines read so far."""
        self._find(text, within_s)

    def wait_for_end(self, within_s: float = PATIENCE_S) -> None:
        """Read on until nobody holds the writing end any more."""
        deadline = time.monotonic() + within_s
        while self._more(deadline):
            pass

    def _find(self, text: str, within_s: float) -> int:
        deadline = time.monotonic() + within_s
        while (at := self.text.find(text, self._told)) < 0:
            assert self._more(deadline), f"the pipe ended without {text!r}:\n{self.text}"
        return at

    def _more(self, deadline: float) -> bool:
        """Wait for more; False at the end of the pipe, AssertionError at the deadline."""
        ready, _, _ = select.select([self._descriptor], [], [], max(0.0, deadline - time.monotonic()))
        assert ready, f"nothing more was written in time:\n{self.text}"
        found = os.read(self._descriptor, 65536)
        self.text += found.decode(errors="replace")
        return bool(found)


class Ending:
    """The end of a process that need not be a child of the test: dead counts, reaped or not."""

    def __init__(self, pid: int) -> None:
        self._descriptor = os.pidfd_open(pid)

    def wait(self, within_s: float = PATIENCE_S) -> None:
        """AssertionError at the deadline."""
        ended, _, _ = select.select([self._descriptor], [], [], within_s)
        os.close(self._descriptor)
        assert ended, "the process lives on"
