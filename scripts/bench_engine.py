"""Measure the embedded engine beside transformers' `generate()`: same machine, model, type, ids and threads.

    scripts/bench_engine.py [--workload decode] [--scale 0.5] [--model var/models/SmolLM2-135M-Instruct]

Workloads (output tokens are forced, so that both do the same work):

- decode   32 requests of 16 tokens in, 128 out
- mixed    32 requests of 32–512 tokens in, 64 out
- prefix   32 requests with 512 shared and 32 own tokens in, 32 out
- prefill  8 requests of 1,024 tokens in, 1 out (input tokens a second)
- single   1 request of 128 tokens in, 128 out

The engine runs as users run it, in its own process behind `EngineTarget`; `generate()` gets all requests of
a workload as one padded batch. Each runs alone, one after the other, after a short warm-up. Figures are wall
time; the machine's load average stands beside them, since other work on the machine spoils them.
"""

import argparse
import asyncio
import json
import os
import random
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
WORKLOADS = ("decode", "mixed", "prefix", "prefill", "single")
ENGINE, GENERATE = "engine", "generate"


def workload(name: str, scale: float) -> tuple[list[list[int]], int]:
    """Prompts as ids, and output tokens of each request."""
    rng = random.Random(name)

    def ids(length: int) -> list[int]:
        return [rng.randrange(100, 40_000) for _ in range(max(1, round(length * scale)))]

    def out(length: int) -> int:
        return max(1, round(length * scale))

    match name:
        case "decode":
            return [ids(16) for _ in range(32)], out(128)
        case "mixed":
            return [ids(rng.randrange(32, 513)) for _ in range(32)], out(64)
        case "prefix":
            shared = ids(512)
            return [shared + ids(32) for _ in range(32)], out(32)
        case "prefill":
            return [ids(1024) for _ in range(8)], 1
        case _:
            return [ids(128)], out(128)


def measure_engine(
    model: Path, dtype: str, threads: int, prompts: list[list[int]], out: int
) -> dict[str, float]:
    from inference.records import Trace
    from inference.requests import GenerationRequest
    from inference.targets.embedded import EngineTarget

    async def run() -> dict[str, float]:
        target = EngineTarget(model, dtype=dtype, threads=threads)
        await target.open()
        asked = [
            GenerationRequest(id=str(n), prompt_token_ids=tuple(ids), max_tokens=out, ignore_eos=True)
            for n, ids in enumerate(prompts)
        ]
        warm = GenerationRequest(id="warm", prompt_token_ids=tuple(prompts[0][:16]), max_tokens=4)
        await target.run(warm, Trace("warm"))
        await target.reset_prefix_cache()
        traces = [Trace(one.id) for one in asked]
        start = time.perf_counter()
        await asyncio.gather(*[target.run(*pair) for pair in zip(asked, traces, strict=True)])
        wall_s = time.perf_counter() - start
        told = await target.telemetry()
        await target.close()
        failed = [trace.error for trace in traces if trace.finish_reason is None]
        if failed:
            raise SystemExit(f"requests failed: {failed[0]}")
        return {"wall_s": wall_s, "rss_peak_mib": told["rss_peak_bytes"] / 2**20}

    return asyncio.run(run())


def measure_generate(
    model: Path, dtype: str, threads: int, prompts: list[list[int]], out: int
) -> dict[str, float]:
    import psutil
    import torch

    from inference.engine.loading import load

    torch.set_num_threads(threads)
    loaded = load(model, dtype, known_digest="not needed").model
    width = max(len(ids) for ids in prompts)
    ids = torch.tensor([[0] * (width - len(own)) + own for own in prompts])
    mask = torch.tensor([[0] * (width - len(own)) + [1] * len(own) for own in prompts])
    settings = {"do_sample": False, "eos_token_id": None, "pad_token_id": 0}
    loaded.generate(ids[:1, -16:], attention_mask=mask[:1, -16:], max_new_tokens=4, **settings)
    start = time.perf_counter()
    loaded.generate(ids, attention_mask=mask, max_new_tokens=out, min_new_tokens=out, **settings)
    wall_s = time.perf_counter() - start
    return {"wall_s": wall_s, "rss_peak_mib": psutil.Process().memory_info().rss / 2**20}


def one(arguments: argparse.Namespace) -> None:
    """One measurement, in a process of its own; prints one JSON object."""
    prompts, out = workload(arguments.workload, arguments.scale)
    measure = measure_engine if arguments.only == ENGINE else measure_generate
    found = measure(arguments.model, arguments.dtype, arguments.threads, prompts, out)
    counted = sum(map(len, prompts)) if arguments.workload == "prefill" else out * len(prompts)
    print(json.dumps(found | {"tokens_per_s": counted / found["wall_s"]}))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--workload", choices=WORKLOADS, help="only this one")
    parser.add_argument("--scale", type=float, default=1.0, help="shrink all lengths by this factor")
    parser.add_argument("--model", type=Path, default=ROOT / "var" / "models" / "SmolLM2-135M-Instruct")
    parser.add_argument("--dtype", default="auto")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--only", choices=(ENGINE, GENERATE), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.only:
        one(arguments)
        return
    print("| work | engine tokens/s | generate() tokens/s | ratio | load average before |")
    print("|---|---|---|---|---|")
    for name in [arguments.workload] if arguments.workload else WORKLOADS:
        load = os.getloadavg()[0]
        found = {}
        for only in (ENGINE, GENERATE):
            command = [sys.executable, "-P", __file__, "--only", only, "--workload", name]
            command += ["--scale", str(arguments.scale), "--model", str(arguments.model)]
            command += ["--dtype", arguments.dtype, "--threads", str(arguments.threads)]
            environment = {"OMP_WAIT_POLICY": "PASSIVE", **os.environ, "TQDM_DISABLE": "1"}
            done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
            if done.returncode:
                raise SystemExit(f"{only} on {name}: {done.stderr.strip().splitlines()[-1]}")
            found[only] = json.loads(done.stdout.splitlines()[-1])["tokens_per_s"]
        ratio = found[ENGINE] / found[GENERATE]
        print(
            f"| {name} | {found[ENGINE]:.1f} | {found[GENERATE]:.1f} | {ratio:.2f} | {load:.1f} |", flush=True
        )


if __name__ == "__main__":
    main()
