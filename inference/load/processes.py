"""Generators in processes of this machine: started, ordered and listened to."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from inference.load.division import PART_FILE, Part, divide
from inference.load.following import SENT
from inference.load.generator import LoadPlan, LoadResult
from inference.load.generator_process import LEDGER_FILE
from inference.load.together import LEAD_S, Ended, send_together
from inference.recording.ledger import LedgerReader
from inference.recording.tail import SegmentTail
from inference.requests import GenerationRequest
from inference.targets.base import Target

START_TIMEOUT_S = 60.0
_KILL_AFTER_S = 5.0


class GeneratorProcess:
    """One child with a folder of its own; a `Generator` of `inference.load.together`."""

    lead_s = LEAD_S
    ledger_whole = True

    def __init__(self, part: Part, opening: Mapping[str, Any], folder: Path) -> None:
        self.part, self._opening, self._folder = part, opening, folder
        self.warm = False
        self.tick: dict[str, Any] = {}
        self.ended: Ended | None = None
        self.lost = ""
        self._tail, self._ledger = SegmentTail(folder), LedgerReader(folder / LEDGER_FILE)
        self._process: subprocess.Popen[bytes] | None = None
        self._said = b""
        self._failure = ""
        self._started_s = time.monotonic()

    def start(self) -> None:
        self._folder.mkdir(parents=True)
        (self._folder / PART_FILE).write_bytes(self.part.packed())
        self._process = subprocess.Popen(  # noqa: S603 no part of it comes from outside
            [sys.executable, "-P", "-m", "inference.load.generator_process", str(self._folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C is for the parent, which then asks to stop
        )
        assert self._process.stdout is not None
        os.set_blocking(self._process.stdout.fileno(), False)
        self._started_s = time.monotonic()
        self._order(self._opening)

    def poll(self) -> list[dict[str, Any]]:
        if self._process is None or self.ended or self.lost:
            return []
        status = self._process.poll()  # before what it said is read: nothing can follow then
        self._listen()
        if status is not None and self.ended is None:
            self.lost = self._failure or _how_it_ended(status)
        elif not self.warm and time.monotonic() - self._started_s > START_TIMEOUT_S + self._patience_s:
            self.close()
            self.lost = f"was not ready within {START_TIMEOUT_S + self._patience_s:.0f} s"
        sent = [{"kind": SENT, "index": self.part.indices[at], "ns": ns} for at, ns in self._ledger.new()]
        return sent + self._tail.new()

    @property
    def _patience_s(self) -> float:
        """A warm-up takes what the target takes."""
        return float("inf") if self.tick.get("total") else 0.0

    @property
    def process_id(self) -> int | None:
        return None if self._process is None else self._process.pid

    def begin(self, origin_ns: int) -> None:
        self._order({"begin_ns": origin_ns})

    def stop(self) -> None:
        self._order({"stop": True})

    def close(self) -> None:
        """End the process, at once if it does not by itself; safe to call again."""
        process = self._process
        if process is None:
            return
        with contextlib.suppress(OSError):
            if process.stdin is not None:
                process.stdin.close()  # an order to stop
        try:
            process.wait(_KILL_AFTER_S if self.ended else 0.5)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def facts(self) -> dict[str, Any]:
        return {}

    def _order(self, order: Mapping[str, Any]) -> None:
        assert self._process is not None
        assert self._process.stdin is not None
        with contextlib.suppress(OSError, ValueError):  # a dead one is found by its status
            self._process.stdin.write(json.dumps(order).encode() + b"\n")
            self._process.stdin.flush()

    def _listen(self) -> None:
        assert self._process is not None
        assert self._process.stdout is not None
        while piece := self._read(self._process.stdout.fileno()):
            self._said += piece
        *lines, self._said = self._said.split(b"\n")
        for line in lines:
            self._hear(json.loads(line))

    @staticmethod
    def _read(file: int) -> bytes:
        try:
            return os.read(file, 1 << 16)
        except BlockingIOError:
            return b""

    def _hear(self, said: dict[str, Any]) -> None:
        kind = said.pop("kind")
        if kind == "warm":
            self.warm = True
        elif kind == "tick":
            self.tick = said
        elif kind == "end":
            self.ended = Ended(**said)
        elif kind == "failed":
            self._failure = f"failed ({said['reason']})"


class GeneratorProcesses:
    """Sends loads with so many processes; `send` stands for `run_load`.

    `opening` are the arguments of `OpenAITarget` (`tokenizer` is a folder); below `folder` each generator
    leaves its records.
    """

    def __init__(self, count: int, opening: Mapping[str, Any], folder: Path) -> None:
        self._count, self._opening, self._folder = count, opening, folder
        self._loads = 0
        self.generators: list[GeneratorProcess] = []

    async def send(
        self,
        target: Target,
        requests: Sequence[GenerationRequest],
        plan: LoadPlan,
        **followed: Callable[..., Any],
    ) -> LoadResult:
        """The load by all processes together; `followed` are the keywords of `send_together`."""
        self._loads += 1
        parts = divide(requests, plan, self._count)
        self.generators = [
            GeneratorProcess(part, self._opening, self._folder / f"{self._loads}-{part.number}")
            for part in parts
        ]
        return await send_together(self.generators, target, plan, **followed)  # type: ignore[arg-type]


def _how_it_ended(status: int) -> str:
    if status >= 0:
        return f"ended with status {status}"
    try:
        return f"was ended by {signal.Signals(-status).name}"
    except ValueError:
        return f"was ended by signal {-status}"
