"""`compare`: two measured folders, or several of each side, metric by metric; with `--gate` for CI."""

import argparse
import math
from pathlib import Path
from typing import Any

from inference.commands.shell import INVALID, MEASURED, Commands, complain
from inference.comparison import compare, gate, of_folder
from inference.comparison.configuration import differences
from inference.comparison.data import RunData
from inference.comparison.gate import exit_code
from inference.errors import InputError
from inference.load.session import write_json

DEFAULT_NOISE = 0.05
DIFFERENCES_SHOWN = 12


def add(commands: Commands) -> None:
    """Add the command and its options."""
    parser = commands.add_parser("compare", help="compare measured folders; --gate for CI")
    parser.add_argument("baseline", type=Path, metavar="A", help="folder of a measurement: the baseline")
    parser.add_argument("candidate", type=Path, metavar="B", help="folder of a measurement: the candidate")
    parser.add_argument("--repeat-a", action="append", default=[], type=Path, metavar="DIR")
    parser.add_argument("--repeat-b", action="append", default=[], type=Path, metavar="DIR")
    parser.add_argument(
        "--noise",
        type=float,
        help=f"share taken as noise where nothing was repeated (default {DEFAULT_NOISE})",
    )
    parser.add_argument("--price-per-hour", type=float, help="of the device: adds the cost per 1,000 tokens")
    parser.add_argument("--seed", type=int, default=0, help="of the bootstrap")
    parser.add_argument("--out", type=Path, metavar="FILE", help="write the comparison as JSON")
    parser.add_argument("--gate", action="store_true", help="exit 5 when some figure is worse")
    parser.add_argument("--strict", action="store_true", help="with --gate: exit 6 when something stays open")
    parser.set_defaults(command=_compare)


def _compare(options: argparse.Namespace) -> int:
    if options.noise is not None and not 0 <= options.noise < 1:
        raise InputError(f"--noise is a share of the baseline from 0 to 1, not {options.noise}")
    if options.price_per_hour is not None and not 0 < options.price_per_hour < math.inf:
        raise InputError(f"--price-per-hour must be above 0, not {options.price_per_hour}")
    if options.seed < 0:
        raise InputError(f"--seed must be 0 or more, not {options.seed}")
    baseline = [of_folder(folder) for folder in (options.baseline, *options.repeat_a)]
    candidate = [of_folder(folder) for folder in (options.candidate, *options.repeat_b)]
    repeated = len(baseline) > 1 and len(candidate) > 1
    noise = options.noise if options.noise is not None else None if repeated else DEFAULT_NOISE
    found = compare(
        baseline, candidate, seed=options.seed, assumed_noise=noise, price_per_hour=options.price_per_hour
    )
    changed = differences(baseline[0].configuration, candidate[0].configuration)
    gated = gate(found)
    found |= {"differences": [one.as_json() for one in changed], "gate": gated, "assumed_noise": noise}
    if options.out:
        write_json(options.out, found)
    _report(found)
    invalid = [run.name for run in (*baseline, *candidate) if not _valid(run)]
    if invalid:
        return complain(f"not valid, so nothing is concluded: {', '.join(invalid)}", INVALID)
    if not options.gate:
        return MEASURED
    print(f"gate: {gated['verdict']}")
    return exit_code(gated, strict=options.strict)


def _valid(run: RunData) -> bool:
    return bool((run.summary.get("validity") or {}).get("valid", True))


def _report(found: dict[str, Any]) -> None:
    for row in found["metrics"]:
        if row["difference"] is None:
            continue
        ends = row["interval"]
        interval = "no interval" if ends is None else f"[{ends[0]:+.3g}, {ends[1]:+.3g}]"
        name = f"{row['metric']} {row['percentile']}".strip()
        print(
            f"{name:28} {row['baseline']:.4g} -> {row['candidate']:.4g} {row['unit']:11} "
            f"{row['difference']:+.3g} {interval}  {row['verdict']}"
            + (f" ({row['reason'].removeprefix('compare_')})" if row["verdict"] == "inconclusive" else "")
        )
    load = found["load"]
    if load["closed_loop"] and load["unequal"]:
        print(
            f"offered load is unequal: {load['baseline_per_second']:.3g} and "
            f"{load['candidate_per_second']:.3g} requests/s (closed loop); compare at a fixed --rate"
        )
    if found["outputs"]:
        outputs = found["outputs"]
        print(f"answers: {outputs['identical']} of {outputs['pairs']} identical ({outputs['verdict']})")
    for one in found["differences"][:DIFFERENCES_SHOWN]:
        print(f"differs: {one['path']}: {one['baseline']} -> {one['candidate']}")
