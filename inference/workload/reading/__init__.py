"""Reads request sets and traces of any known format, redacted, with a report of what was passed over."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

from inference.errors import InputError
from inference.workload.reading import request_sets, stored, talks, traces
from inference.workload.reading.items import Item, LineFault, Reading, Skipped, Workload
from inference.workload.reading.text import decode, objects, table

__all__ = ["FORMATS", "Item", "Skipped", "Workload", "read_workload", "read_workload_file"]

ObjectReader = Callable[[Reading, request_sets.Rows], Workload]
TableReader = Callable[[Reading, Sequence[str], request_sets.Rows], Workload]


def _texts(format_name: str, column: str) -> ObjectReader:
    return partial(request_sets.read_prompts, format_name=format_name, column=column)


_OF_OBJECTS: dict[str, ObjectReader] = {
    "phasegate": request_sets.read_own,
    "openai-batch": request_sets.read_batch,
    "openai-chat": request_sets.read_chats,
    "sharegpt": talks.read_sharegpt,
    "mt-bench": talks.read_mt_bench,
    "prompts": _texts("prompts", "prompt"),
    "evalscope-qa": _texts("evalscope-qa", "query"),
    "evalscope-openqa": _texts("evalscope-openqa", "question"),
    "evalscope-longalpaca": _texts("evalscope-longalpaca", "instruction"),
    "evalscope-sharegpt": talks.read_pairs,
    "evalscope-trace": request_sets.read_timed_bodies,
    "mooncake": traces.read_mooncake,
    "aiperf": traces.read_aiperf,
    "lengths": traces.read_lengths,
}
_OF_TABLES: dict[str, TableReader] = {
    "csv": request_sets.read_table,
    "azure-llm": traces.read_azure,
    "burstgpt": traces.read_burstgpt,
}
FORMATS = (*_OF_OBJECTS, *_OF_TABLES, "lines", stored.SCHEMA)

#: fields of the first object → format; the first line whose fields are all there decides
_BY_FIELDS: tuple[tuple[frozenset[str], str], ...] = tuple(
    (frozenset(fields.split()), name)
    for fields, name in (
        ("custom_id body", "openai-batch"),
        ("conversations", "sharegpt"),
        ("conversation", "evalscope-sharegpt"),
        ("turns", "mt-bench"),
        ("timestamp body", "evalscope-trace"),
        ("session_id input_length", "aiperf"),
        ("session_id output_length", "aiperf"),
        ("input_length hash_ids", "mooncake"),
        ("output_length hash_ids", "mooncake"),
        ("input_length", "lengths"),
        ("output_length", "lengths"),
        ("messages", "openai-chat"),
        ("query", "evalscope-qa"),
        ("question", "evalscope-openqa"),
        ("instruction", "evalscope-longalpaca"),
        ("prompt", "prompts"),
    )
)
#: columns of a table → format; one is enough, so that a file that lacks the other is named by its source
_BY_COLUMNS = (
    ({"ContextTokens", "GeneratedTokens"}, "azure-llm"),
    ({"Request tokens", "Response tokens"}, "burstgpt"),
)


def read_workload_file(path: Path, **options: Any) -> Workload:
    """The workload in a file; options as of `read_workload`."""
    try:
        raw = path.read_bytes()
    except OSError as fault:
        raise InputError(f"cannot read {path}: {fault.strerror or fault}") from fault
    return read_workload(raw, str(path), **options)


def read_workload(
    raw: bytes,
    name: str,
    *,
    format_name: str | None = None,
    columns: Mapping[str, str] | None = None,
    skip_faulty: bool = False,
) -> Workload:
    """The requests or rows in the bytes of a file called `name`, redacted, in its order.

    The format is found by fields and columns unless `format_name` (one of FORMATS) says it; `columns`
    maps `prompt`, `max_tokens` … to the headings of a CSV file. The first fault raises InputError with
    file, line and column; with `skip_faulty` faulty lines are listed in `skipped` and the rest is read.
    """
    if format_name is not None and format_name not in FORMATS:
        raise InputError(f"format must be one of {', '.join(FORMATS)}, not {format_name!r}")
    text, encoding = decode(raw, name)
    if not text.strip():
        raise InputError(f"{name}: the file is empty")
    reading = Reading(name, skip_faulty, columns or {})
    if format_name == stored.SCHEMA or text.startswith(f'{{"schema":"{stored.SCHEMA}"'):
        return stored.from_text(text, name)
    if format_name == "lines" or (format_name is None and _is_lines(text, name)):
        workload = request_sets.read_lines(reading, text)
    elif format_name in _OF_TABLES or (format_name is None and text.lstrip()[0] not in "[{"):
        header, rows = table(text, name)
        found = format_name or next((fmt for names, fmt in _BY_COLUMNS if names & set(header)), "csv")
        workload = _OF_TABLES[found](reading, header, rows)
    else:
        each = objects(text)
        first = next(each, None)
        if first is None:
            raise InputError(f"{name}: the file has no request")
        found = format_name or _format_of(first, reading)
        workload = _OF_OBJECTS[found](reading, chain([first], each))
    return replace(workload, encoding=encoding)


def _format_of(first: tuple[int, Any], reading: Reading) -> str:
    line, row = first
    if isinstance(row, LineFault):
        raise InputError(f"{reading.where(row.line)}: {row.why}")
    if request_sets.has_content(row):
        return "phasegate"
    found = next((name for fields, name in _BY_FIELDS if fields <= set(row)), None)
    if found is None:
        text = f"no known format has the fields {', '.join(map(str, row)) or '(none)'}"
        raise InputError(f"{reading.where(line)}: {text}; known are {', '.join(FORMATS)}")
    return found


def _is_lines(text: str, name: str) -> bool:
    """Whether a text is one prompt a line: it begins with no JSON, and its first line is no CSV header."""
    first = text.lstrip().split("\n", 1)[0]
    if first[0] in "[{" or name.lower().endswith((".csv", ".tsv")):
        return False
    header = {
        part.strip().strip('"').lower() for part in first.replace(";", ",").replace("\t", ",").split(",")
    }
    known = {column for names in request_sets.COLUMNS.values() for column in names}
    return not (
        header & known or any(set(names) & {p.strip() for p in first.split(",")} for names, _ in _BY_COLUMNS)
    )
