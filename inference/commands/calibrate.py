"""`calibrate`: measure this client's own error against the simulator."""

import argparse
import asyncio
from pathlib import Path

from inference.commands.shell import (
    INVALID,
    MEASURED,
    Commands,
    complain,
    figures_line,
    run_until_signal,
    unless,
)
from inference.errors import InputError
from inference.load.calibration import calibrate
from inference.load.session import prepare_folder, write_json


def add(commands: Commands) -> None:
    """Add the command and its options."""
    calibration = commands.add_parser("calibrate", help="measure this client's own error")
    calibration.add_argument("--concurrency", type=int, required=True)
    calibration.add_argument("--out", type=Path)
    calibration.set_defaults(command=_calibrate)


def _calibrate(options: argparse.Namespace) -> int:
    if options.concurrency < 1:
        raise InputError("--concurrency must be at least 1")
    if options.out:
        prepare_folder(options.out)

    async def run(stop: asyncio.Event) -> int:
        found = await unless(stop, calibrate(options.concurrency))
        if options.out:
            write_json(options.out / "calibration.json", found)
        for name in ("read_error_ms", "first_read_error_ms", "gap_error_ms", "request_error_ms"):
            print(figures_line(name, found[name]))
        for name in ("dispatch_delay_ms", "loop_lag_ms"):
            print(figures_line(name, found["self_check"][name]))
        if not found["validity"]["valid"]:
            return complain("; ".join(found["validity"]["reasons"]), INVALID)
        return MEASURED

    return run_until_signal(run)
