"""The form in which a workload is kept: JSON lines, the first one about the whole, redacted throughout."""

import json
from collections.abc import Mapping
from typing import Any

from inference.errors import InputError
from inference.workload.reading.items import Item, Skipped, Workload

SCHEMA = "phasegate-workload/1"

_DEFAULTS = dict(vars(Item(line=0, id="")))


def to_text(workload: Workload) -> str:
    """The kept form; the same workload gives the same text."""
    head = {
        "schema": SCHEMA,
        "format": workload.format,
        "encoding": workload.encoding,
        "block_tokens": workload.block_tokens,
        "skipped": [[skipped.line, skipped.why] for skipped in workload.skipped],
        "redactions": workload.redactions,
        "notes": workload.notes,
    }
    return "".join(_line(row) for row in (head, *map(_row, workload.items)))


def from_text(text: str, name: str) -> Workload:
    """The workload of a kept form; InputError naming the line that is none."""
    lines = text.splitlines()
    try:
        head = json.loads(lines[0])
        if head.get("schema") != SCHEMA:
            raise ValueError(f"its schema is {head.get('schema')!r}")
        return Workload(
            format=head["format"],
            encoding=head["encoding"],
            block_tokens=head["block_tokens"],
            skipped=[Skipped(line, why) for line, why in head["skipped"]],
            redactions=head["redactions"],
            notes=head["notes"],
            items=[_item(json.loads(line)) for line in lines[1:]],
        )
    except (ValueError, TypeError, KeyError, IndexError, AttributeError) as fault:
        raise InputError(f"{name}: no {SCHEMA} file ({fault})") from fault


def _row(item: Item) -> dict[str, Any]:
    return {
        name: value
        for name, value in vars(item).items()
        if name in ("line", "id") or value != _DEFAULTS[name]
    }


def _item(row: Mapping[str, Any]) -> Item:
    return Item(**{**row, "hash_ids": tuple(row.get("hash_ids", ()))})


def _line(row: Mapping[str, Any]) -> str:
    return json.dumps(row, ensure_ascii=False, separators=(",", ":")) + "\n"
