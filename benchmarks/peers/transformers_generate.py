"""transformers' `generate()`: all requests of a job as one padded batch."""

import time
from typing import Any

from benchmarks.peers.protocol import Absent, Job, Result, Setup, serve


class Generate:
    def __init__(self, setup: Setup) -> None:
        if setup.dtype not in ("bfloat16", "float32"):
            raise Absent(f"generate() is measured in bfloat16 and float32, not in {setup.dtype}")
        import torch
        import transformers

        torch.set_num_threads(setup.threads)
        dtype = getattr(torch, setup.dtype)
        self._model = transformers.AutoModelForCausalLM.from_pretrained(
            setup.model, dtype=dtype, local_files_only=True, **setup.options
        ).eval()
        self._facts = {
            "name": "transformers generate()",
            "version": transformers.__version__,
            "dtype": setup.dtype,
            "processor": torch.backends.cpu.get_cpu_capability(),
        }

    def facts(self) -> dict[str, Any]:
        return self._facts

    def run(self, job: Job) -> Result:
        import torch

        if job.arrivals_s is not None:
            raise Absent("generate() takes one batch and no arrivals")
        start = time.perf_counter()
        width = max(map(len, job.prompts))
        ids = torch.tensor([[0] * (width - len(own)) + own for own in job.prompts])
        mask = torch.tensor([[0] * (width - len(own)) + [1] * len(own) for own in job.prompts])
        found = self._model.generate(
            ids,
            attention_mask=mask,
            do_sample=False,
            eos_token_id=None,
            pad_token_id=0,
            max_new_tokens=job.out,
            min_new_tokens=job.out,
        )[:, width:]
        return Result(
            wall_s=time.perf_counter() - start,
            output_tokens=found.numel(),
            first_ids=found[:, 0].tolist(),
        )


if __name__ == "__main__":
    serve(Generate)
