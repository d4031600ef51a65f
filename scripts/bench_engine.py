"""Measure the embedded engine beside transformers' `generate()`: same machine, model, type, ids and threads.

    scripts/bench_engine.py [--workload decode] [--scale 0.5] [--model var/models/SmolLM2-135M-Instruct]

Workloads (output tokens are forced, so that both do the same work):

- decode   32 requests of 16 tokens in, 128 out
- mixed    32 requests of 32–512 tokens in, 64 out
- prefix   32 requests with 512 shared and 32 own tokens in, 32 out
- prefill  8 requests of 1,024 tokens in, 1 out (input tokens a second)
- single   1 request of 128 tokens in, 128 out

The engine runs as users run it, in its own process behind `EngineTarget`; `generate()` gets all requests of
a workload as one padded batch. Each runs alone, one after the other, after a short warm-up. Tokens a second
are by wall time, which other work on the machine spoils (its load average stands beside them); the ratio of
processor seconds is what remains comparable then.
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
    import psutil

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
        process = psutil.Process(target.process_id)
        start, cpu = time.perf_counter(), sum(process.cpu_times()[:2])
        await asyncio.gather(*[target.run(*pair) for pair in zip(asked, traces, strict=True)])
        wall_s, cpu_s = time.perf_counter() - start, sum(process.cpu_times()[:2]) - cpu
        await target.close()
        failed = [trace.error for trace in traces if trace.finish_reason is None]
        if failed:
            raise SystemExit(f"requests failed: {failed[0]}")
        return {"wall_s": wall_s, "cpu_s": cpu_s}

    return asyncio.run(run())


def measure_generate(
    model: Path, dtype: str, threads: int, prompts: list[list[int]], out: int
) -> dict[str, float]:
    import torch

    from inference.engine.loading import load

    torch.set_num_threads(threads)
    loaded = load(model, dtype, known_digest="not needed").model
    width = max(len(ids) for ids in prompts)
    ids = torch.tensor([[0] * (width - len(own)) + own for own in prompts])
    mask = torch.tensor([[0] * (width - len(own)) + [1] * len(own) for own in prompts])
    settings = {"do_sample": False, "eos_token_id": None, "pad_token_id": 0}
    loaded.generate(ids[:1, -16:], attention_mask=mask[:1, -16:], max_new_tokens=4, **settings)
    start, cpu = time.perf_counter(), time.process_time()
    loaded.generate(ids, attention_mask=mask, max_new_tokens=out, min_new_tokens=out, **settings)
    return {"wall_s": time.perf_counter() - start, "cpu_s": time.process_time() - cpu}


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
    print("| work | engine tokens/s | generate() tokens/s | engine CPU s | generate() CPU s | load before |")
    print("|---|---|---|---|---|---|")
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
            found[only] = json.loads(done.stdout.splitlines()[-1])
        speeds = " | ".join(f"{found[only]['tokens_per_s']:.1f}" for only in (ENGINE, GENERATE))
        seconds = " | ".join(f"{found[only]['cpu_s']:.1f}" for only in (ENGINE, GENERATE))
        print(f"| {name} | {speeds} | {seconds} | {load:.1f} |", flush=True)


if __name__ == "__main__":
    main()
