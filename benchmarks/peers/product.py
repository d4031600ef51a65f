"""The product, as users run it: the engine in its own process behind `EngineTarget`."""

import asyncio
import itertools
import time
from typing import Any

import torch

from benchmarks.peers.protocol import Absent, Job, Result, Setup, Stamps, send_all, serve
from inference.errors import InputError, TargetUnavailable
from inference.records import Trace
from inference.requests import GenerationRequest
from inference.targets.embedded import EngineTarget


class Product:
    def __init__(self, setup: Setup) -> None:
        self._loop = asyncio.new_event_loop()
        self._numbers = itertools.count()
        settings = {"max_batch": setup.max_sequences, **setup.options}
        try:
            self._target = EngineTarget(setup.model, dtype=setup.dtype, threads=setup.threads, **settings)
            self._info = self._loop.run_until_complete(self._target.open())
        except (InputError, TargetUnavailable, TypeError) as error:
            raise Absent(str(error)) from error

    def facts(self) -> dict[str, Any]:
        configuration = self._info.configuration
        return {
            "name": "PhaseGate",
            "version": configuration["model_digest"][:19],
            "dtype": configuration["dtype"],
            "processor": torch.backends.cpu.get_cpu_capability(),
            "engine": configuration["engine"],
            "shape": configuration["shape"],
            "parameters": configuration["parameters"],
            "weights_bytes": configuration["weights_bytes"],
        }

    def run(self, job: Job) -> Result:
        return self._loop.run_until_complete(self._run(job))

    async def _run(self, job: Job) -> Result:
        await self._target.reset_prefix_cache()
        # traces are stamped by the monotonic clock, arrivals by the performance counter
        offset_s = time.perf_counter() - time.monotonic_ns() / 1e9

        async def send(number: int, prompt: list[int], stamps: Stamps) -> list[int]:
            name = str(next(self._numbers))
            trace = Trace(name)
            asked = GenerationRequest(
                id=name, prompt_token_ids=tuple(prompt), max_tokens=job.out, ignore_eos=True
            )
            await self._target.run(asked, trace)
            if trace.finish_reason is None or trace.token_ids is None:
                raise Absent(f"the request failed: {trace.error}")
            # as a client sees them: at the read
            for read_ns, tokens in trace.reads:
                stamps.tokens += [read_ns / 1e9 + offset_s] * (tokens or 0)
            return trace.token_ids

        return await send_all(job, send)


if __name__ == "__main__":
    serve(Product)
