"""What a decode step costs beside the model's forward: scheduling, packing, sampling, text, events."""

import argparse
import statistics
from typing import Any

from benchmarks import tables

BATCHES = (1, 8, 16, 32)
STEPS = 300
ALLOWED_MS, ALLOWED_EACH_MS = 0.2, 0.010  # of a step, and more for each request in it


def allowed_ms(requests: int) -> float:
    return ALLOWED_MS + ALLOWED_EACH_MS * requests


def run(arguments: argparse.Namespace) -> dict[str, Any]:
    from benchmarks.stepping import Stepper

    settings = dict(arguments.engine)
    dtype = settings.pop("dtype", arguments.dtype[0])
    stepper = Stepper(arguments.model, dtype, arguments.threads, settings)
    found = []
    for batch in BATCHES:
        if batch > stepper.engine.options.max_batch:
            continue
        stepper.fill(batch, out=STEPS + 8)
        stepper.idle()
        times_ms = [seconds * 1e3 for seconds in stepper.times_s(STEPS)]
        stepper.compute()
        stepper.empty()
        found.append(
            {
                "requests": batch,
                "median_ms": statistics.median(times_ms),
                "min_ms": min(times_ms),
                "allowed_ms": allowed_ms(batch),
            }
        )
    stepper.close()
    rows = [
        (
            str(row["requests"]),
            f"{row['median_ms']:.3f}",
            f"{row['min_ms']:.3f}",
            f"{row['allowed_ms']:.2f}",
            "yes" if row["median_ms"] <= row["allowed_ms"] else "no",
        )
        for row in found
    ]
    head = ("requests in the step", "overhead ms, median", "least", "allowed", "met")
    print(f"\nA decode step without the forward ({stepper.engine.kernels}, {dtype}, {STEPS} steps each):")
    print(tables.text(head, rows, markdown=arguments.markdown), flush=True)
    return {"kernels": stepper.engine.kernels, "dtype": dtype, "steps": STEPS, "batches": found}
