"""One generator in a process of its own: sends its part of a load, records it, and says how far it is.

`python -m inference.load.generator_process FOLDER` reads its part from `FOLDER/part`, and from the standard
input first how the target is opened, then orders, one JSON object a line: `{"begin_ns": …}` and
`{"stop": true}`. The end of the input is an order to stop: it comes when the parent has died. Its own words
are JSON lines too: `warm` (the target is open and the warm-up over), `tick`, `end`, `failed`. Records go to
segments in the folder, the stamp of each request that leaves to a ledger: both outlive this process.
"""

import asyncio
import gc
import json
import signal
import sys
import time
from pathlib import Path
from typing import Any

from inference.errors import InferenceError
from inference.load.division import PART_FILE, Part, part_of
from inference.load.generator import LoadState, Together, run_load
from inference.recording.ledger import SUFFIX, SentLedger
from inference.recording.spool import Spool
from inference.records import RequestRecord, Trace
from inference.requests import GenerationRequest
from inference.targets.openai import OpenAITarget
from inference.workload.tokenizer import load_tokenize

LEDGER_FILE = f"measured{SUFFIX}"
#: sleeping ends late by less than so much; the rest is waited for awake
_AWAKE_NS = 2_000_000


class _Sender:
    """The target as one of several generators sees it: what watches its server is left to the parent."""

    def __init__(self, target: OpenAITarget) -> None:
        self._target = target

    async def run(self, request: GenerationRequest, trace: Trace) -> None:
        await self._target.run(request, trace)


class _Generator:
    def __init__(self, folder: Path, part: Part) -> None:
        self.part = part
        self.spool = Spool(folder, about={"generator": part.number, "of": part.of})
        self.ledger = SentLedger(folder / LEDGER_FILE, len(part.requests))
        self.in_flight: dict[str, Trace] = {}
        self.spool.in_flight = lambda: tuple(self.in_flight.values())
        self.stop = asyncio.Event()
        self.begun: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    async def orders(self, reader: asyncio.StreamReader) -> None:
        """Follow what the parent says until it says no more."""
        while line := await reader.readline():
            order = json.loads(line)
            if "begin_ns" in order and not self.begun.done():
                self.begun.set_result(order["begin_ns"])
            elif order.get("stop"):
                break
        self.stop.set()

    async def begin(self) -> int:
        """Say that this one is ready, and wait for the common start."""
        say("warm")
        begin_ns = await self.begun
        remaining_ns = begin_ns - time.monotonic_ns()
        if remaining_ns > _AWAKE_NS:
            await asyncio.sleep((remaining_ns - _AWAKE_NS) / 1e9)
        while time.monotonic_ns() < begin_ns:  # noqa: ASYNC110 what is waited for is the clock
            await asyncio.sleep(0)
        return begin_ns

    def left(self, trace: Trace) -> None:
        """A request is about to be sent: noted before it is."""
        if trace.warmup:
            trace.index = self.part.warming_indices[trace.index]
            return
        self.ledger.mark(trace.index, trace.dispatched_ns or 0)
        trace.index = self.part.indices[trace.index]
        self.in_flight[trace.request_id] = trace

    def ended(self, record: RequestRecord) -> None:
        places = self.part.warming_indices if record.warmup else self.part.indices
        record.index = places[record.index]
        self.in_flight.pop(record.id, None)
        self.spool.put(record)

    def tick(self, state: LoadState) -> None:
        figures = {"phase": state.phase, "total": state.total, "done": state.done, "failed": state.failed}
        say("tick", **figures)
        if self.spool.error is not None:
            self.stop.set()

    async def run(self, opening: dict[str, Any]) -> None:
        target = target_of(opening)
        self.spool.start()
        try:
            await target.open()
            gc.freeze()
            result = await run_load(
                _Sender(target),  # type: ignore[arg-type]  # what a generator needs of a target
                self.part.requests,
                self.part.plan,
                on_record=self.ended,
                on_trace_start=self.left,
                on_tick=self.tick,
                stop=self.stop,
                together=Together(self.part.warming, self.begin),
            )
        finally:
            await target.close()
        self.spool.close()
        say(
            "end",
            self_check=result.self_check,
            started_ns=result.started_ns,
            ended_ns=result.ended_ns,
            started_at_unix_ns=result.started_at_unix_ns,
            interrupted=result.interrupted,
        )


def target_of(opening: dict[str, Any]) -> OpenAITarget:
    """The endpoint by the arguments of `OpenAITarget`; `tokenizer` is a folder, where there is one."""
    options = dict(opening)
    tokenizer = options.pop("tokenizer", None)
    return OpenAITarget(tokenize=load_tokenize(Path(tokenizer)) if tokenizer else None, **options)


def say(kind: str, **facts: Any) -> None:
    """One line to the parent."""
    sys.stdout.write(json.dumps({"kind": kind} | facts) + "\n")
    sys.stdout.flush()


async def _main(folder: Path) -> None:
    reader = asyncio.StreamReader(limit=1 << 20)
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    generator = _Generator(folder, part_of((folder / PART_FILE).read_bytes()))
    opening = json.loads(await reader.readline())
    orders = asyncio.create_task(generator.orders(reader))
    try:
        await generator.run(opening)
    finally:
        orders.cancel()
        generator.ledger.close()


def main() -> int:
    """Run until the part is sent or the parent wants no more; trouble is said in one line."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides
    try:
        asyncio.run(_main(Path(sys.argv[1])))
    except (InferenceError, OSError) as fault:
        say("failed", reason=str(fault))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
