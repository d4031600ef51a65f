"""What a comparison needs of one run: its summary, each request's own figures, its outputs, its settings."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from inference.errors import InputError

#: figures that each request has, by the name of their field or interval
TIMES = (
    "queue_wait_ms",
    "prefill_ms",
    "ttft_ms",
    "tpot_ms",
    "max_gap_ms",
    "decode_ms",
    "e2e_ms",
)
OF_INTERVALS = frozenset({"queue_wait_ms", "prefill_ms", "decode_ms"})
Values = np.ndarray[tuple[int, ...], np.dtype[np.float64]]


@dataclass(frozen=True)
class Output:
    """What one request gave: its ids where they are known, else its text."""

    input_tokens: int | None
    token_ids: tuple[int, ...] | None
    text: str

    def same_as(self, other: "Output") -> bool:
        if self.token_ids is not None and other.token_ids is not None:
            return self.token_ids == other.token_ids
        return self.text == other.text


@dataclass(frozen=True)
class RunData:
    """One run of one side; `values` are ascending figures of its successes by metric."""

    name: str
    summary: Mapping[str, Any]
    values: Mapping[str, Values] = field(default_factory=dict)
    outputs: Mapping[str, Output] = field(default_factory=dict)
    configuration: Mapping[str, Any] = field(default_factory=dict)


def of_records(
    name: str,
    summary: Mapping[str, Any],
    rows: Iterable[Mapping[str, Any]],
    configuration: Mapping[str, Any] | None = None,
) -> RunData:
    """From rows with the fields of requests.jsonl (cli.md); warm-up requests are left out."""
    values: dict[str, list[float]] = {metric: [] for metric in TIMES}
    outputs: dict[str, Output] = {}
    for row in rows:
        if row.get("warmup") or row.get("outcome") != "success":
            continue
        intervals = row.get("intervals_ms") or {}
        for metric in TIMES:
            told = intervals.get(metric.removesuffix("_ms")) if metric in OF_INTERVALS else row.get(metric)
            if told is not None:
                values[metric].append(float(told))
        ids = row.get("token_ids")
        outputs[str(row.get("id"))] = Output(
            row.get("input_tokens"), tuple(ids) if ids else None, row.get("text") or ""
        )
    return RunData(
        name,
        summary,
        {metric: np.sort(np.array(found, dtype=float)) for metric, found in values.items() if found},
        outputs,
        configuration or {},
    )


def of_folder(folder: Path) -> RunData:
    """The run that `measure` wrote into a folder; InputError where a file is missing or no JSON."""
    summary = _json(folder / "summary.json")
    if summary.get("schema") != "phasegate-run/1":
        raise InputError(f"{folder / 'summary.json'} is no summary of a run (schema phasegate-run/1)")
    requests = folder / "requests.jsonl"
    rows: list[dict[str, Any]] = []
    if requests.exists():
        for number, line in enumerate(requests.read_bytes().split(b"\n"), start=1):
            if line.strip():
                rows.append(_row(line, f"{requests}, line {number}"))
    target = summary.get("target") or {}
    configuration = {"target": target, "load": summary.get("load") or {}}
    return of_records(folder.name, summary, rows, configuration)


def _row(line: bytes, where: str) -> dict[str, Any]:
    try:
        row = json.loads(line.decode("utf-8"), parse_constant=lambda _: None)  # NaN was not observed
    except (ValueError, RecursionError) as fault:
        raise InputError(f"{where}: {fault}") from fault
    if not isinstance(row, dict):
        raise InputError(f"{where}: a request is a JSON object")
    return row


def _json(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except OSError as fault:
        raise InputError(f"{path}: {fault.strerror or fault}") from fault
    except ValueError as fault:
        raise InputError(f"{path} is no JSON: {fault}") from fault
    if not isinstance(found, dict):
        raise InputError(f"{path} is no JSON object")
    return found
