"""What a file of requests or a trace was read into: items, what was passed over, what was taken out."""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from inference.errors import InputError
from inference.workload.redaction import Redactor

MOST_TOKENS = 1_000_000  # of a prompt or an answer; more is a slip, and building its text would never end


@dataclass(frozen=True, kw_only=True)
class Item:
    """One request of a set, or one row of a trace, whose prompt is built from its lengths.

    Lengths are tokens, times seconds. `request` has the fields of a request file (a set); a trace has
    none. `hash_ids` name the blocks of the prompt: equal leading ids are the same text. An item that
    `follows` another is the next turn of its conversation, `think_s` after the answer, and its lengths
    are those of the new text alone.
    """

    line: int
    id: str
    request: Mapping[str, Any] = field(default_factory=dict)
    input_tokens: int | None = None
    output_tokens: int | None = None
    arrival_s: float | None = None
    hash_ids: tuple[int, ...] = ()
    follows: str | None = None
    think_s: float = 0.0
    reference: str | None = None  # the answer that the file has


@dataclass(frozen=True)
class Skipped:
    """A line that is no request here, and why."""

    line: int
    why: str


@dataclass(kw_only=True)
class Workload:
    """A file as it was read; `items` keep its order."""

    format: str
    items: list[Item]
    encoding: str = "UTF-8"
    block_tokens: int | None = None  # tokens of one block of `hash_ids`
    skipped: list[Skipped] = field(default_factory=list)
    redactions: dict[str, int] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    @property
    def is_trace(self) -> bool:
        """Whether it has lengths and times, and no texts."""
        return not any(item.request for item in self.items)


class LineFault(Exception):
    """A line that cannot be used; `column` is the name of the field at fault."""

    def __init__(self, line: int, why: str, column: str = "") -> None:
        super().__init__(why)
        self.line, self.why, self.column = line, why, column


@dataclass
class Reading:
    """The reading of one file: faults end it, or are passed over and listed where that was asked for."""

    name: str
    skip_faulty: bool = False
    columns: Mapping[str, str] = field(default_factory=dict)  # what we look for → the file's own column
    skipped: list[Skipped] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    redactor: Redactor = field(default_factory=Redactor)
    unused: Counter[str] = field(default_factory=Counter)  # fields that nobody reads, with their lines
    line_of_id: dict[str, int] = field(default_factory=dict)
    id_column: str = "id"

    def where(self, line: int, column: str = "") -> str:
        """`file, line 7, column x`, to open a sentence."""
        return f"{self.name}, line {line}" + (f", column {column}" if column else "")

    def pass_over(self, line: int, why: str) -> None:
        """A line that is rightly no request, such as one of another kind: skipped and counted."""
        self.skipped.append(Skipped(line, why))

    def each(self, rows: Iterable[tuple[int, Any]], read: Callable[[int, Any], list[Item]]) -> list[Item]:
        """The items of all rows; the first fault is an InputError, or is listed with `skip_faulty`."""
        items: list[Item] = []
        for line, row in rows:
            try:
                if isinstance(row, LineFault):
                    raise row
                found = read(line, row)
                for item in found:
                    self._register(item)
            except LineFault as fault:
                if not self.skip_faulty:
                    text = f"{self.where(fault.line, fault.column)}: {fault.why}"
                    raise InputError(text) from fault
                self.pass_over(
                    fault.line, f"column {fault.column}: {fault.why}" if fault.column else fault.why
                )
                continue
            items += found
        return items

    def _register(self, item: Item) -> None:
        first = self.line_of_id.setdefault(item.id, item.line)
        if first != item.line:
            raise LineFault(item.line, f"{item.id!r} was already used in line {first}", self.id_column)

    def leave_out(self, row: Mapping[str, Any], used: Iterable[str]) -> None:
        """Note which fields of a row are not read."""
        self.unused.update(set(row) - set(used))

    def finished(self, format_name: str, items: list[Item], **more: Any) -> Workload:
        """The workload, with a note on every field that was not used."""
        if not items:
            raise InputError(f"{self.name}: the file has no request that could be sent{self._because()}")
        for name, lines in sorted(self.unused.items()):
            self.notes.append(f"field {name!r} was not used ({lines} lines)")
        return Workload(
            format=format_name,
            items=items,
            skipped=self.skipped,
            notes=self.notes,
            redactions=dict(self.redactor.counts),
            **more,
        )

    def _because(self) -> str:
        if not self.skipped:
            return ""
        first = self.skipped[0]
        return f": {len(self.skipped)} lines were skipped, line {first.line} because {first.why}"


def length(row: Mapping[str, Any], column: str, line: int) -> int:
    """A number of tokens in a row: a whole number of at least 0, also when written as text."""
    value = row.get(column)
    if value is None or value == "":
        raise LineFault(line, "is missing" if value is None else "is empty", column)
    number = as_number(value, column, line)
    if number != int(number):
        raise LineFault(line, f"{value} is no whole number of tokens", column)
    if number < 0:
        raise LineFault(line, f"{value} is negative", column)
    if number > MOST_TOKENS:
        raise LineFault(line, f"{value} is above {MOST_TOKENS} tokens", column)
    return int(number)


def as_number(value: Any, column: str, line: int) -> float:
    """A finite number, also when written as text."""
    try:
        number = math.nan if isinstance(value, bool) else float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not math.isfinite(number):
        raise LineFault(line, f"{str(value)[:40]!r} is no number", column)
    return number
