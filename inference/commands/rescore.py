"""`rescore`: the figures of a measured run by the definitions of another tool."""

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from inference.commands.shell import MEASURED, Commands
from inference.errors import InputError
from inference.load.session import prepare_folder, write_json
from inference.records import RequestRecord
from inference.rescoring import TOOLS, collect, rescore
from inference.rescoring.definitions import OWN
from inference.rescoring.reasons import REASONS
from inference.stats import measured_window

LATENCIES = ("ttft_ms", "tpot_ms", "itl_ms", "e2e_ms")
RATES = ("output_tokens_per_second", "requests_per_second")


def add(commands: Commands) -> None:
    """Add the command and its options."""
    parser = commands.add_parser("rescore", help="a measured run by the definitions of another tool")
    parser.add_argument("folder", type=Path, metavar="DIR", help="where `measure` wrote its files")
    parser.add_argument("--as", dest="tool", required=True, choices=tuple(TOOLS), metavar="|".join(TOOLS))
    parser.add_argument("--out", type=Path, metavar="DIR", help="also write DIR/rescored-TOOL.json")
    parser.set_defaults(command=_rescore)


def _rescore(options: argparse.Namespace) -> int:
    records = list(_records(options.folder / "requests.jsonl", required=True))
    warmup = list(_records(options.folder / "warmup.jsonl", required=False))
    columns = collect(
        records,
        open_loop=_open_loop(options.folder / "summary.json"),
        excluded=measured_window([*warmup, *records])[1],
    )
    found, own = rescore(columns, options.tool), rescore(columns, OWN)
    if options.out:
        prepare_folder(options.out)
        write_json(options.out / f"rescored-{options.tool}.json", found)
    _report(found, own)
    return MEASURED


def _records(path: Path, *, required: bool) -> Iterator[RequestRecord]:
    """The records of a file of lines; InputError names what is missing, or the line that is wrong."""
    if not path.is_file():
        if required:
            raise InputError(f"there is no {path}: rescore needs a folder that measure wrote")
        return
    with path.open("rb") as lines:
        for number, line in enumerate(lines, 1):
            try:
                record = RequestRecord.from_json(json.loads(line.decode("utf-8")))
            except (ValueError, TypeError, KeyError, AttributeError) as fault:
                raise InputError(f"{path} line {number} is no record of a request: {fault}") from fault
            record.warmup = record.warmup or path.name == "warmup.jsonl"
            yield record


def _open_loop(path: Path) -> bool:
    try:
        summary = json.loads(path.read_text(encoding="utf-8"))
        return summary["latency_from"] == "scheduled"
    except (OSError, ValueError, KeyError, TypeError) as fault:
        raise InputError(f"{path} does not say where latencies start: {fault}") from fault


def _report(found: dict[str, Any], own: dict[str, Any]) -> None:
    version = "" if found["tool"] == OWN else f" {found['version']}"
    print(f"{found['tool']}{version}: {found['requests']} requests counted, ours {own['requests']}")
    for name in LATENCIES:
        print(_line(name, found[name], own[name]))
    for name in RATES:
        print(f"{name:26} {_number(found[name])}   ours {_number(own[name])}")
    for reason in found["reasons"]:
        print(f"  {reason['metric']}: {REASONS[reason['code']]}")


def _line(name: str, found: dict[str, Any], own: dict[str, Any]) -> str:
    if not found["n"]:
        return f"{name:10} not observed"
    shown = "  ".join(f"{key} {_number(found[key])}" for key in ("mean", "p50", "p90", "p95", "p99", "max"))
    ours = "  ".join(f"{key} {_number(own[key])}" for key in ("p50", "p99"))
    return f"{name:10} n {found['n']}  {shown}   ours {ours}"


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"
