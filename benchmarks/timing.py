"""What the stamps cost: decode steps with the clocks of the engine read, and with the clocks stopped.

The forward is left out while this is measured, since its own spread is larger than all stamps together; the
difference is then set against the time of a whole step.
"""

import argparse
import statistics
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

from benchmarks import tables

BATCHES = (1, 32)
BLOCKS, BLOCK_STEPS = 20, 20  # on and off in turn
WHOLE_STEPS = 12
ALLOWED = 0.01


@contextmanager
def clocks_stopped() -> Iterator[None]:
    """The engine without stamps: its clocks stand still, its steps are not counted."""
    from inference.engine import device, engine
    from inference.engine.statistics import Statistics

    stopped = SimpleNamespace(monotonic_ns=lambda: 0)
    silent = {name: getattr(Statistics, name) for name in ("started", "computed", "ended")}
    own = engine.time, device.time
    engine.time = device.time = stopped  # type: ignore[assignment]
    for name in silent:
        setattr(Statistics, name, lambda *_: None)
    try:
        yield
    finally:
        engine.time, device.time = own
        for name, method in silent.items():
            setattr(Statistics, name, method)


def run(arguments: argparse.Namespace) -> dict[str, Any]:
    from benchmarks.stepping import Stepper

    settings = dict(arguments.engine)
    dtype = settings.pop("dtype", arguments.dtype[0])
    stepper = Stepper(arguments.model, dtype, arguments.threads, settings)
    found = []
    for batch in BATCHES:
        stepper.fill(batch, out=2 * BLOCKS * BLOCK_STEPS + WHOLE_STEPS + 8)
        whole_ms = statistics.median(stepper.times_s(WHOLE_STEPS)) * 1e3
        stepper.idle()
        on, off = [], []
        for _ in range(BLOCKS):
            on.append(statistics.median(stepper.times_s(BLOCK_STEPS)))
            with clocks_stopped():
                off.append(statistics.median(stepper.times_s(BLOCK_STEPS)))
        stepper.compute()
        stepper.empty()
        cost_us = statistics.median(a - b for a, b in zip(on, off, strict=True)) * 1e6
        found.append(
            {"requests": batch, "cost_us": cost_us, "step_ms": whole_ms, "share": cost_us / 1e3 / whole_ms}
        )
    stepper.close()
    rows = [
        (
            str(row["requests"]),
            f"{row['cost_us']:.1f}",
            f"{row['step_ms']:.2f}",
            f"{row['share']:.3%}",
            "yes" if row["share"] <= ALLOWED else "no",
        )
        for row in found
    ]
    head = ("requests in the step", "stamps µs a step", "whole step ms", "share", f"at most {ALLOWED:.0%}")
    print(f"\nThe cost of the stamps ({stepper.engine.kernels}, {dtype}):")
    print(tables.text(head, rows, markdown=arguments.markdown), flush=True)
    return {"kernels": stepper.engine.kernels, "dtype": dtype, "batches": found}
