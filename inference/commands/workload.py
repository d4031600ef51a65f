"""`workload`: look at a request set or trace, and make requests of it, personal data taken out."""

import argparse
import json
from pathlib import Path
from typing import Any

from inference.commands.shell import MEASURED, Commands, Parser
from inference.errors import InputError
from inference.load.session import write_json
from inference.requests import GenerationRequest
from inference.workload.building import DEFAULT_OUTPUT_TOKENS, TOO_LONG, Rules, build_requests
from inference.workload.prompts import LANGUAGES, Tokenize
from inference.workload.reading import FORMATS, Workload, read_workload_file
from inference.workload.report import report
from inference.workload.tokenizer import load_tokenize

_PLAIN = GenerationRequest(id="")


def add(commands: Commands) -> None:
    """Add the command and its options."""
    parser = commands.add_parser("workload", help="look at a request set or trace")
    parser.set_defaults(command=_workload)
    parser.add_argument("file", type=Path, metavar="FILE")
    parser.add_argument("--out", type=Path, metavar="FILE.jsonl", help="for `measure --requests`")
    parser.add_argument("--report", type=Path, metavar="FILE.json", help="write what is printed as JSON")
    parser.add_argument("--tokenizer", type=Path, metavar="DIR", help="makes lengths exact")
    add_reading(parser)


def add_reading(parser: Parser) -> None:
    """The options that say how a file is read and what requests become of it."""
    group = parser.add_argument_group("workload files")
    group.add_argument("--format", choices=FORMATS, help="instead of finding it by fields and columns")
    group.add_argument(
        "--column",
        action="append",
        default=[],
        metavar="FIELD=HEADING",
        help="of CSV: prompt=问题",
    )
    group.add_argument("--skip-faulty", action="store_true", help="pass over faulty lines and list them")
    group.add_argument("--count", type=int, metavar="N", help="so many requests (default: all of the file)")
    group.add_argument("--context", type=int, metavar="TOKENS", help="longer requests are too long")
    group.add_argument("--too-long", choices=TOO_LONG, help="leave it out (reject), or shorten it")
    group.add_argument("--language", choices=LANGUAGES, help="of prompts built for a trace")
    group.add_argument("--output-tokens", type=int, metavar="N", help="the most, where the file does not say")


READING_OPTIONS = (
    "format", "column", "skip_faulty", "count", "context", "too_long", "language", "output_tokens",
)  # fmt: skip


def read(options: argparse.Namespace, path: Path) -> Workload:
    """The workload in a file, as the options say."""
    columns = dict(_pair(text) for text in options.column)
    return read_workload_file(
        path, format_name=options.format, columns=columns, skip_faulty=options.skip_faulty
    )


def rules(options: argparse.Namespace, *, seed: int = 0, context_tokens: int | None = None) -> Rules:
    """What requests are to be made, as the options say; `context_tokens` is what the target tells."""
    for name in ("count", "context", "output_tokens"):
        if getattr(options, name) is not None and getattr(options, name) < 1:
            raise InputError(f"--{name.replace('_', '-')} must be at least 1")
    return Rules(
        n=options.count,
        output_tokens=options.output_tokens or DEFAULT_OUTPUT_TOKENS,
        language=options.language or "en",
        seed=seed,
        context_tokens=options.context or context_tokens,
        too_long=options.too_long or "reject",
    )


def _pair(text: str) -> tuple[str, str]:
    field, equals, heading = text.partition("=")
    if not equals or not field or not heading:
        raise InputError(f"--column must look like prompt=HEADING, not {text!r}")
    return field, heading


def _workload(options: argparse.Namespace) -> int:
    tokenize: Tokenize | None = load_tokenize(options.tokenizer) if options.tokenizer else None
    workload = read(options, options.file)
    found = report(workload, tokenize)
    if options.out:
        requests, facts = build_requests(workload, rules(options), tokenize)
        found["written"] = facts
        lines = (json.dumps(as_line(request), ensure_ascii=False) + "\n" for request in requests)
        options.out.write_text("".join(lines), encoding="utf-8")
    if options.report:
        write_json(options.report, found)
    for line in _sentences(found):
        print(line)
    return MEASURED


def as_line(request: GenerationRequest) -> dict[str, Any]:
    """The request as a line of a request file: what differs from the defaults."""
    row: dict[str, Any] = {"id": request.id}
    for name in GenerationRequest.__dataclass_fields__:
        value = getattr(request, name)
        if value != getattr(_PLAIN, name):
            row[name] = list(value) if isinstance(value, tuple) else value
    row["max_tokens"] = request.max_tokens
    if request.cancel is not None:
        row["cancel"] = {"phase": request.cancel.phase, "after_tokens": request.cancel.after_tokens}
    return row


def _sentences(found: dict[str, Any]) -> list[str]:
    talks, arrivals, prefixes = found["conversations"], found["arrivals"], found["prefixes"]
    lines = [f"{found['format']} ({found['encoding']}): {found['n']} {found['kind']}"]
    if talks:
        lines.append(
            f"conversations: {talks['n']}, turns p50 {talks['turns']['p50']:g} max {talks['turns']['max']:g}"
        )
    for name in ("input_tokens", "output_tokens"):
        lines.append(f"{name:14} {_lengths(found[name])}")
    if arrivals:
        rate = "all at once" if arrivals["per_second"] is None else f"{arrivals['per_second']:.3f} a second"
        lines.append(
            f"arrivals: {arrivals['n']} in {arrivals['lasts_s']:.3f} s, {rate}, "
            f"at most {arrivals['most_in_a_second']} in one second, {arrivals['at_once']} with another"
        )
    if prefixes:
        lines.append(
            f"prefixes: blocks of {prefixes['block_tokens']} tokens, "
            f"{prefixes['distinct_blocks']} distinct of {prefixes['blocks']}; "
            f"{prefixes['shared_tokens_share']:.1%} of the input tokens came before"
        )
    lines += [
        f"skipped {skipped['n']} (line {', '.join(map(str, skipped['lines'][:5]))}): {skipped['why']}"
        for skipped in found["skipped"]
    ]
    taken = ", ".join(f"{kind} {n}" for kind, n in sorted(found["redactions"].items()))
    lines.append(f"redacted: {taken or 'nothing'}")
    lines += [f"note: {note}" for note in found["notes"]]
    if facts := found.get("written"):
        too_long = facts["too_long"]
        lines.append(
            f"written: {facts['requests']} requests; too long: {too_long['left_out']} left out, "
            f"{too_long['clipped']} clipped"
        )
    return lines


def _lengths(figures: dict[str, Any] | None) -> str:
    if figures is None:
        return "not stated"
    shown = "  ".join(f"{key} {figures[key]:g}" for key in ("min", "p50", "p90", "p95", "p99", "max"))
    return f"n {figures['n']}  {shown}  (from {figures['source']})"
