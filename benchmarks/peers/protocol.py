"""What the benchmark and a peer say to each other: one JSON object a line, over the peer's stdin and stdout.

The benchmark sends a setup, the peer loads and answers `{"ready": facts}` or `{"absent": reason}`. Then each
line is a job and each answer its result, until stdin ends. Only the standard library is used here: this file
runs inside the environments of all peers.
"""

import asyncio
import json
import os
import sys
import time
from collections.abc import Awaitable, Callable
from dataclasses import asdict, dataclass, field
from typing import Any, Protocol


@dataclass(frozen=True, kw_only=True)
class Setup:
    """What a peer loads: `dtype` is bfloat16, float32, int8 or int4, `options` are its own settings."""

    model: str
    dtype: str
    threads: int
    max_sequences: int = 32
    max_tokens: int = 2048  # longest sequence, input and output together
    options: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Job:
    """Requests as token ids, each to be answered with exactly `out` greedy tokens, end tokens ignored.

    `shared` input tokens are the same in all prompts. With `arrivals_s` each request is sent at its own time
    after the start, else all at once.
    """

    prompts: list[list[int]]
    out: int
    shared: int = 0
    arrivals_s: list[float] | None = None


@dataclass(kw_only=True)
class Result:
    """`wall_s` runs from the first submission to the last token; the lists have one value a request.

    `ttft_ms` and `tpot_ms` (time to first token from arrival, mean gap of the others) are empty where the
    peer's interface shows no token before the end.
    """

    wall_s: float
    output_tokens: int
    first_ids: list[int]
    ttft_ms: list[float] = field(default_factory=list)
    tpot_ms: list[float] = field(default_factory=list)
    answers: list[list[int]] = field(default_factory=list)  # all ids of each answer


class Absent(Exception):
    """The peer cannot do this here: one line that says why."""


class Peer(Protocol):
    def facts(self) -> dict[str, Any]: ...

    def run(self, job: Job) -> Result: ...


def serve(load: Callable[[Setup], Peer]) -> None:
    """Be a peer until stdin ends. Whatever libraries print goes to stderr; stdout is for answers only."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)

    def answer(content: dict[str, Any]) -> None:
        answers.write(json.dumps(content) + "\n")
        answers.flush()

    start = time.perf_counter()
    try:
        peer = load(Setup(**json.loads(sys.stdin.readline())))
    except (Absent, ImportError) as error:
        answer({"absent": str(error)})
        return
    answer({"ready": {**peer.facts(), "load_s": time.perf_counter() - start}})
    for line in sys.stdin:
        try:
            answer({"result": asdict(peer.run(Job(**json.loads(line))))})
        except Absent as error:
            answer({"absent": str(error)})


@dataclass
class Stamps:
    """Arrival and tokens of one request, in seconds of `time.perf_counter()`."""

    arrived: float
    tokens: list[float] = field(default_factory=list)

    @property
    def ttft_ms(self) -> float:
        return (self.tokens[0] - self.arrived) * 1e3

    @property
    def tpot_ms(self) -> float | None:
        gaps = len(self.tokens) - 1
        return (self.tokens[-1] - self.tokens[0]) / gaps * 1e3 if gaps else None


async def send_all(job: Job, send: Callable[[int, list[int], Stamps], Awaitable[list[int]]]) -> Result:
    """Send the requests when they are due; `send` stamps every token and returns the output ids."""
    start = time.perf_counter()
    due = [start + at for at in job.arrivals_s] if job.arrivals_s else [start] * len(job.prompts)
    stamps = [Stamps(at) for at in due]

    async def one(number: int, prompt: list[int]) -> list[int]:
        await asyncio.sleep(max(0.0, due[number] - time.perf_counter()))
        return await send(number, prompt, stamps[number])

    ids = await asyncio.gather(*[one(number, prompt) for number, prompt in enumerate(job.prompts)])
    return Result(
        wall_s=max(each.tokens[-1] for each in stamps) - start,
        output_tokens=sum(map(len, ids)),
        first_ids=[own[0] for own in ids],
        ttft_ms=[each.ttft_ms for each in stamps],
        tpot_ms=[each.tpot_ms for each in stamps if each.tpot_ms is not None],
        answers=ids,
    )
