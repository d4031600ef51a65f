"""What 1,000 queued requests cost the running ones: the time of a token with and without them, in turn."""

import argparse
import asyncio
import contextlib
import statistics
from collections.abc import Callable
from typing import Any

from benchmarks import tables
from benchmarks.pairs import Spread

QUEUED = 1000
RUNNING = 32
OUT_TOKENS = 48
FIRST_TOKENS = 4  # of each running request, before the queue is filled


async def until(condition: Callable[[], bool]) -> None:
    while not condition():  # noqa: ASYNC110 traces have no event to wait for
        await asyncio.sleep(0.05)


async def token_ms(target: Any, queued: int) -> tuple[float, float]:
    """Mean ms of a decode step of a full batch, once `queued` requests wait and while they arrive."""
    from inference.records import Trace
    from inference.requests import GenerationRequest

    def request(name: str, out: int) -> GenerationRequest:
        ids = tuple(range(100, 116))
        return GenerationRequest(id=name, prompt_token_ids=ids, max_tokens=out, ignore_eos=True)

    await target.reset_prefix_cache()
    traces = [Trace(f"running {n}") for n in range(RUNNING)]
    running = [asyncio.create_task(target.run(request(t.request_id, OUT_TOKENS), t)) for t in traces]
    await until(lambda: all(len(trace.token_ns) >= FIRST_TOKENS for trace in traces))
    began_ns = max(trace.token_ns[-1] for trace in traces)
    waiting = [Trace(f"waiting {n}") for n in range(queued)]
    tasks = [asyncio.create_task(target.run(request(t.request_id, 1), t)) for t in waiting]
    await until(lambda: all(trace.queued_ns is not None for trace in waiting))
    full_ns = max((trace.queued_ns or 0 for trace in waiting), default=began_ns)
    await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
    for task in tasks:
        task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await asyncio.gather(*running, *tasks, return_exceptions=True)
    stamps = traces[0].token_ns
    after = [ns for ns in stamps if ns >= full_ns]
    during = [ns for ns in stamps if began_ns <= ns <= full_ns] + after[:1]
    if len(after) < OUT_TOKENS // 4:
        raise RuntimeError("the running requests ended before the queue was full")
    arriving = (during[-1] - during[0]) / (len(during) - 1) if len(during) > 1 else float("nan")
    return (after[-1] - after[0]) / (len(after) - 1) / 1e6, arriving / 1e6


def run(arguments: argparse.Namespace) -> dict[str, Any]:
    from inference.targets.embedded import EngineTarget

    settings = {"dtype": arguments.dtype[0], **dict(arguments.engine), "max_batch": RUNNING}
    target = EngineTarget(arguments.model, threads=arguments.threads, **settings)

    async def pairs() -> tuple[list[float], list[float], list[float]]:
        await target.open()
        try:
            alone, beside, arriving = [], [], []
            await token_ms(target, 0)
            for _ in range(arguments.repetitions):
                alone.append((await token_ms(target, 0))[0])
                full, during = await token_ms(target, QUEUED)
                beside.append(full)
                arriving.append(during)
            return alone, beside, arriving
        finally:
            await target.close()

    alone, beside, arriving = asyncio.run(pairs())
    ratio = Spread.of([b / a for a, b in zip(alone, beside, strict=True)])
    row = (
        tables.spread(Spread.of(alone)),
        tables.spread(Spread.of(beside)),
        tables.spread(ratio),
        tables.number(statistics.median(arriving)),
    )
    head = ("token ms, none queued", f"token ms, {QUEUED:,} queued", "ratio", "while they arrive")
    print(f"\n{RUNNING} running requests beside a queue ({settings['dtype']}):")
    print(tables.text(head, [row], markdown=arguments.markdown), flush=True)
    return {"alone_ms": alone, "queued_ms": beside, "arriving_ms": arriving, "ratio": ratio.as_json()}
