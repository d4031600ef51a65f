"""What the machine can do at most: `python -P -m benchmarks.machine --threads 2` prints one JSON object.

A small C program measures the arithmetic in registers and the reading of memory; where there is no compiler,
PyTorch's products and sums stand in, which are lower bounds. Rates are by second.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

SOURCE = Path(__file__).with_name("machine.c")
GEMM_SIDE = 1024
GEMM_TRIES = 8
READ_ELEMENTS = 64 * 2**20


@dataclass(frozen=True, kw_only=True)
class Peaks:
    """float32 and bfloat16 operations, 8-bit operations, and bytes read from memory, each a second.

    `int8_ops` is None where it was not measured. `source` tells how far they can be trusted.
    """

    fma_flops: float
    bfloat16_flops: float
    int8_ops: float | None
    read_bytes: float
    source: str

    def flops(self, dtype: str) -> float:
        """The rate of the fastest arithmetic that weights of this type can be multiplied with."""
        if dtype == "bfloat16":
            return max(self.bfloat16_flops, self.fma_flops)
        if dtype in ("int8", "int4"):
            return max(self.int8_ops or 0.0, self.bfloat16_flops, self.fma_flops)
        return self.fma_flops


def measure(threads: int) -> Peaks:
    """In a process of its own, so that PyTorch's threads end with it."""
    done = subprocess.run(
        [sys.executable, "-P", "-m", "benchmarks.machine", "--threads", str(threads)],
        cwd=SOURCE.parent.parent,
        env={**os.environ, "OMP_NUM_THREADS": str(threads)},
        capture_output=True,
        text=True,
        check=True,
    )
    return Peaks(**json.loads(done.stdout))


def in_c(threads: int) -> dict[str, float]:
    """The figures of the C program; empty where it cannot be built or run."""
    compiler = shutil.which(os.environ.get("CC", "cc")) or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        return {}
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "machine"
        command = [compiler, "-O3", "-march=native", "-pthread", "-o", str(program), str(SOURCE)]
        try:
            subprocess.run(command, check=True, capture_output=True)
            found = subprocess.run([program, str(threads)], check=True, capture_output=True, text=True).stdout
        except (OSError, subprocess.CalledProcessError):
            return {}
    return dict(json.loads(found))


def in_torch(threads: int) -> dict[str, float]:
    import torch

    torch.set_num_threads(threads)

    def gemm(dtype: torch.dtype) -> float:
        left = torch.randn(GEMM_SIDE, GEMM_SIDE).to(dtype)
        right = torch.randn(GEMM_SIDE, GEMM_SIDE).to(dtype)
        return 2 * GEMM_SIDE**3 / _fastest(lambda: left @ right)

    values = torch.ones(READ_ELEMENTS)
    return {
        "fma_flops": gemm(torch.float32),
        "bfloat16_flops": gemm(torch.bfloat16),
        "read_bytes": values.nbytes / _fastest(values.sum),
    }


def _fastest(work: Callable[[], object]) -> float:
    best = float("inf")
    for _ in range(GEMM_TRIES):
        start = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - start)
    return best


def combine(compiled: dict[str, float], torch_found: dict[str, float]) -> Peaks:
    """The larger of both for each rate: either is something that the machine did do."""
    best = {
        name: max(compiled.get(name, 0.0), torch_found.get(name, 0.0)) for name in {**compiled, **torch_found}
    }
    return Peaks(
        fma_flops=best["fma_flops"],
        bfloat16_flops=best["bfloat16_flops"],
        int8_ops=best.get("int8_ops"),
        read_bytes=best["read_bytes"],
        source="measured in C and PyTorch" if compiled else "measured in PyTorch only: lower bounds",
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    threads = parser.parse_args().threads
    print(json.dumps(asdict(combine(in_c(threads), in_torch(threads)))))


if __name__ == "__main__":
    main()
