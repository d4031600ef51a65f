"""`simulate`: serve answers of known times, the ground truth of every client."""

import argparse
import asyncio
from pathlib import Path

from inference.commands.shell import MEASURED, Commands, figures_line, run_until_signal
from inference.load.simulator import SimulatedTimes, serve


def add(commands: Commands) -> None:
    """Add the command and its options."""
    simulate = commands.add_parser("simulate", help="serve answers of known times: the ground truth")
    simulate.add_argument("--port", type=int, required=True, help="port on 127.0.0.1 (0: any free one)")
    simulate.add_argument("--ttft-ms", type=float, default=200)
    simulate.add_argument("--itl-ms", type=float, default=20)
    simulate.add_argument("--output-tokens", type=int, default=64)
    simulate.add_argument("--log", type=Path, help="JSON lines: when each byte was written")
    simulate.set_defaults(command=_simulate)


def _simulate(options: argparse.Namespace) -> int:
    times = SimulatedTimes(
        ttft_ms=options.ttft_ms, itl_ms=options.itl_ms, output_tokens=options.output_tokens
    )

    def ready(port: int) -> None:
        print(f"simulating on http://127.0.0.1:{port}/v1", flush=True)

    async def run(stop: asyncio.Event) -> int:
        late = await serve(times, options.port, options.log, ready=ready, until=stop.wait)
        print(figures_line("written late by (ms)", late), flush=True)
        return MEASURED

    return run_until_signal(run, measuring=True)
