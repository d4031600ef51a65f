"""Traces: times and lengths without texts. Each reader knows the units and columns of one source."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from inference.errors import InputError
from inference.workload.reading.items import Item, LineFault, Reading, Workload, as_number, length

_MOMENT = re.compile(r"(\d{4}-\d\d-\d\d)[ T](\d\d:\d\d:\d\d)(?:\.(\d+))?(Z|[+-]\d\d:?\d\d)?")
HASH_BLOCK_TOKENS = 512  # of Mooncake and aiperf

Rows = Iterable[tuple[int, Any]]


@dataclass(frozen=True, kw_only=True)
class _Source:
    """Where a source keeps what; `unit_s` is the length of one unit of its time in seconds."""

    format: str
    time: str
    input_tokens: str
    output_tokens: str
    unit_s: float | None = 1.0  # None: a moment of the clock
    also: tuple[str, ...] = ()  # columns that are known, and rightly not used
    time_needed: bool = True


AZURE = _Source(
    format="azure-llm",
    time="TIMESTAMP",
    input_tokens="ContextTokens",
    output_tokens="GeneratedTokens",
    unit_s=None,
)
BURSTGPT = _Source(
    format="burstgpt",
    time="Timestamp",
    input_tokens="Request tokens",
    output_tokens="Response tokens",
    also=("Total tokens", "Elapsed time"),
)
MOONCAKE = _Source(
    format="mooncake",
    time="timestamp",
    input_tokens="input_length",
    output_tokens="output_length",
    unit_s=0.001,
    also=("hash_ids",),
)
LENGTHS = replace(MOONCAKE, format="lengths", unit_s=1.0, time_needed=False)
AIPERF = replace(
    MOONCAKE, format="aiperf", time_needed=False, also=("hash_ids", "session_id", "delay", "group_id")
)


def read_azure(reading: Reading, header: Sequence[str], rows: Rows) -> Workload:
    """Azure LLM inference traces of 2023: moments of the clock with 100 ns digits."""
    _require(reading, header, AZURE)
    return reading.finished(AZURE.format, _timed(reading, rows, AZURE))


def read_burstgpt(reading: Reading, header: Sequence[str], rows: Rows) -> Workload:
    """BurstGPT, with or without sessions: columns by name, seconds since midnight of day one."""
    _require(reading, header, BURSTGPT)
    return reading.finished(BURSTGPT.format, _timed(reading, rows, BURSTGPT))


def read_mooncake(reading: Reading, rows: Rows) -> Workload:
    """Mooncake: milliseconds, and blocks of 512 tokens by id."""
    items = _timed(reading, rows, MOONCAKE)
    return reading.finished(MOONCAKE.format, items, block_tokens=HASH_BLOCK_TOKENS)


def read_lengths(reading: Reading, rows: Rows) -> Workload:
    """The smallest trace: seconds (if any) and two lengths."""
    reading.notes.append("times are read as seconds; a file in milliseconds is named as format mooncake")
    return reading.finished(LENGTHS.format, _timed(reading, rows, LENGTHS), block_tokens=HASH_BLOCK_TOKENS)


def read_aiperf(reading: Reading, rows: Rows) -> Workload:
    """aiperf's sessions: a first turn has a time, later ones a delay after the answer before, both in ms."""
    newest: dict[str, str] = {}
    turns: dict[str, int] = {}

    def read(line: int, row: Mapping[str, Any]) -> list[Item]:
        session = row.get("session_id")
        if not isinstance(session, str) or not session:
            raise LineFault(line, "is missing", "session_id")
        item = _lengths(reading, line, row, AIPERF)
        if item is None:
            return []
        before = newest.get(session)
        turns[session] = turns.get(session, 0) + 1
        identity = newest[session] = f"{session}#{turns[session]}"
        if before is None:
            arrival_s = as_number(row.get("timestamp", 0), "timestamp", line) / 1000
            return [replace(item, id=identity, arrival_s=arrival_s)]
        delay_s = as_number(row.get("delay", 0), "delay", line) / 1000
        if delay_s < 0:
            raise LineFault(line, f"{row['delay']} is negative", "delay")
        return [replace(item, id=identity, follows=before, think_s=delay_s)]

    items = reading.each(rows, read)
    return reading.finished(AIPERF.format, _from_zero(items), block_tokens=HASH_BLOCK_TOKENS)


def moment_s(value: Any, column: str, line: int) -> float:
    """Seconds since 1970 of a number or an ISO 8601 text (without a zone: UTC), digits below µs included."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return as_number(value, column, line)
    match = _MOMENT.fullmatch(str(value).strip())
    try:
        if match is None:
            return float(value)
        day, time, fraction, zone = match.groups()
        moment = datetime.fromisoformat(f"{day}T{time}{zone or ''}")
    except (TypeError, ValueError) as fault:
        raise LineFault(line, f"{str(value)[:40]!r} is no moment of time", column) from fault
    whole = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    return whole + float(f"0.{fraction or 0}")


def _timed(reading: Reading, rows: Rows, source: _Source) -> list[Item]:
    """Items with times from 0; a time that falls is a fault, or sorted in where faults are passed over."""
    moment: Callable[[Any, str, int], float] = moment_s if source.unit_s is None else as_number
    latest: list[tuple[float, int]] = []
    unsorted: list[int] = []

    def read(line: int, row: Mapping[str, Any]) -> list[Item]:
        at_s: float | None = None
        if source.time_needed or row.get(source.time) is not None:
            if row.get(source.time) in (None, ""):
                raise LineFault(line, "is missing", source.time)
            at_s = moment(row[source.time], source.time, line) * (source.unit_s or 1.0)
        item = _lengths(reading, line, row, source)
        if at_s is None:
            return [item] if item else []
        if latest and at_s < latest[-1][0]:
            if not reading.skip_faulty:
                text = f"{row[source.time]} is earlier than in line {latest[-1][1]}"
                raise LineFault(line, text, source.time)
            unsorted.append(line)
        else:
            latest[:] = [(at_s, line)]
        return [replace(item, arrival_s=at_s)] if item else []

    items = reading.each(rows, read)
    if unsorted:
        items.sort(key=lambda item: item.arrival_s or 0.0)
        reading.notes.append(
            f"{len(unsorted)} lines were out of order in time (first: {unsorted[0]}); sorted"
        )
    return _from_zero(items)


def _lengths(reading: Reading, line: int, row: Mapping[str, Any], source: _Source) -> Item | None:
    """The item of a row without its time; None for a row that asked or answered nothing."""
    reading.leave_out(row, (source.time, source.input_tokens, source.output_tokens, *source.also))
    asked, answered = length(row, source.input_tokens, line), length(row, source.output_tokens, line)
    if not asked or not answered:
        what = "no input and no output tokens" if not asked and not answered else (
            "no input tokens" if not asked else "no output tokens"
        )  # fmt: skip
        reading.pass_over(line, f"{what} (nothing was asked or it failed at the source)")
        return None
    return Item(
        line=line,
        id=f"l{line}",
        input_tokens=asked,
        output_tokens=answered,
        hash_ids=_hash_ids(row, asked, line),
    )


def _hash_ids(row: Mapping[str, Any], asked: int, line: int) -> tuple[int, ...]:
    ids = row.get("hash_ids")
    if ids is None:
        return ()
    if not isinstance(ids, list) or not all(isinstance(i, int) and not isinstance(i, bool) for i in ids):
        raise LineFault(line, "must be a list of whole numbers", "hash_ids")
    needed = -(-asked // HASH_BLOCK_TOKENS)
    if ids and len(ids) != needed:
        text = f"{len(ids)} blocks of {HASH_BLOCK_TOKENS} tokens do not fit {asked} input tokens ({needed})"
        raise LineFault(line, text, "hash_ids")
    return tuple(ids)


def _from_zero(items: list[Item]) -> list[Item]:
    """Times counted from the first one that is sent."""
    times = [item.arrival_s for item in items if item.arrival_s is not None]
    if not times:
        return items
    first = min(times)
    return [
        item if item.arrival_s is None else replace(item, arrival_s=round(item.arrival_s - first, 6))
        for item in items
    ]


def _require(reading: Reading, header: Sequence[str], source: _Source) -> None:
    for column in (source.time, source.input_tokens, source.output_tokens):
        if column not in header:
            found = ", ".join(header)
            raise InputError(f"{reading.where(1)}: column {column!r} is missing (there are {found})")
