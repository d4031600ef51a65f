"""vLLM on the processor, through its own asynchronous engine (no HTTP in between)."""

import asyncio
import itertools
import os
import time
from typing import Any

from benchmarks.peers.protocol import Absent, Job, Result, Setup, Stamps, send_all, serve

KV_GIB = 2


class VllmCpu:
    def __init__(self, setup: Setup) -> None:
        if setup.dtype not in ("bfloat16", "float32"):
            raise Absent(f"vLLM on the processor has no {setup.dtype} for this model")
        cores = sorted(os.sched_getaffinity(0))[: setup.threads]
        os.environ.setdefault("VLLM_CPU_OMP_THREADS_BIND", ",".join(map(str, cores)))
        os.environ.setdefault("VLLM_CPU_NUM_OF_RESERVED_CPU", "0")
        os.environ.setdefault("VLLM_CPU_KVCACHE_SPACE", str(KV_GIB))
        import torch
        import vllm
        from vllm.engine.arg_utils import AsyncEngineArgs
        from vllm.sampling_params import RequestOutputKind
        from vllm.v1.engine.async_llm import AsyncLLM

        self._parameters = lambda out: vllm.SamplingParams(
            temperature=0.0,
            max_tokens=out,
            min_tokens=out,
            ignore_eos=True,
            output_kind=RequestOutputKind.DELTA,
        )
        arguments: dict[str, Any] = {"max_model_len": setup.max_tokens, **setup.options}
        self._loop = asyncio.new_event_loop()
        self._numbers = itertools.count()

        async def start() -> Any:
            return AsyncLLM.from_engine_args(
                AsyncEngineArgs(model=setup.model, dtype=setup.dtype, **arguments)
            )

        self._engine = self._loop.run_until_complete(start())
        self._facts = {
            "name": "vLLM-CPU",
            "version": vllm.__version__,
            "dtype": setup.dtype,
            "processor": torch.backends.cpu.get_cpu_capability(),
        }

    def facts(self) -> dict[str, Any]:
        return self._facts

    def run(self, job: Job) -> Result:
        return self._loop.run_until_complete(self._run(job))

    async def _run(self, job: Job) -> Result:
        await self._engine.reset_prefix_cache()
        parameters = self._parameters(job.out)

        async def send(number: int, prompt: list[int], stamps: Stamps) -> list[int]:
            ids: list[int] = []
            asked = {"prompt_token_ids": prompt}
            async for output in self._engine.generate(asked, parameters, f"{next(self._numbers)}"):
                fresh = list(output.outputs[0].token_ids)
                stamps.tokens += [time.perf_counter()] * len(fresh)
                ids += fresh
            return ids

        return await send_all(job, send)


if __name__ == "__main__":
    serve(VllmCpu)
