"""What each switch of the engine changed when it was measured against a baseline.

The figures are the file that `benchmarks/engine.py --switches --json` writes, as it was written: date,
machine, model, lengths and repetitions stand in it beside them.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from pocs.runs.techniques import WORKS, Change

PATH = Path(__file__).parent / "data" / "switch_effects.json"


@dataclass(frozen=True)
class Spread:
    """Median and range over the repetitions."""

    median: float
    least: float
    most: float


@dataclass(frozen=True)
class Effect:
    """One switch on one workload against the baseline, both measured in turn `pairs` times.

    `cpu_ratio` and `wall_ratio` are baseline ÷ with the switch: above 1 the switch saves time. The pairs of
    figures are (baseline, with the switch); latencies in ms over `requests` × `pairs` requests, None where
    nothing was observed. `same_answers` is the share of requests answered alike to the last token.
    """

    change: Change
    workload: str
    text: str
    pairs: int
    requests: int
    cpu_ratio: Spread
    wall_ratio: Spread
    tokens_per_s: tuple[float, float]
    weights_bytes: tuple[int, int]
    ttft_p50_ms: tuple[float | None, float | None]
    tpot_p50_ms: tuple[float | None, float | None]
    tpot_p99_ms: tuple[float | None, float | None]
    same_answers: float | None

    @property
    def work(self) -> str:
        """What was computed, in words."""
        return str(WORKS.get(self.workload, self.workload))

    @property
    def same(self) -> int | None:
        """How many requests of one pair were answered alike."""
        return None if self.same_answers is None else round(self.same_answers * self.requests)

    @property
    def samples(self) -> int:
        """How many requests the latencies rest on, on each side."""
        return self.requests * self.pairs


@dataclass(frozen=True)
class Effects:
    """All effects of one measurement, and what must be known to judge them."""

    measured_at: str
    processor: str
    cores: int
    threads: int
    model: str
    scale: float
    baseline: Mapping[str, Any]
    load: tuple[float, float]
    rows: tuple[Effect, ...]

    def of(self, settings: tuple[str, ...]) -> list[Effect]:
        """The effects of these settings, in the order of their measurement."""
        return [row for row in self.rows if row.change.setting in settings]

    @property
    def command(self) -> str:
        """How to measure it again."""
        return (
            f"python -P -m benchmarks.engine --switches --dtype {self.baseline['dtype']} "
            f"--threads {self.threads} --scale {self.scale:g} --repetitions {self.rows[0].pairs} "
            "--json pocs/runs/data/switch_effects.json"
        )


@cache
def measured() -> Effects | None:
    """The stored effects; None where there is no measurement."""
    return read(json.loads(PATH.read_text(encoding="utf-8"))) if PATH.is_file() else None


def read(found: Mapping[str, Any]) -> Effects:
    """The effects in what `benchmarks/engine.py --switches` wrote."""
    part = found["switches"]
    rows = part["switches"]
    return Effects(
        measured_at=found["measured_at"],
        processor=found["processor"],
        cores=found["cores"],
        threads=found["threads"],
        model=found["model"],
        scale=found["scale"],
        baseline=part["baseline"],
        load=(min(row["load"][0] for row in rows), max(row["load"][1] for row in rows)),
        rows=tuple(_effect(row) for row in rows),
    )


def _effect(row: Mapping[str, Any]) -> Effect:
    ((setting, value),) = row["options"].items()  # one change at a time
    plain, other = row["latencies"]
    return Effect(
        change=Change(setting, value),
        workload=row["workload"],
        text=row["text"],
        pairs=row["repetitions"],
        requests=row["requests"],
        cpu_ratio=_spread(row["cpu_ratio"]),
        wall_ratio=_spread(row["ratio"]),
        tokens_per_s=(row["peer_tokens_per_s"]["median"], row["tokens_per_s"]["median"]),
        weights_bytes=tuple(row["weights_bytes"]),
        ttft_p50_ms=(plain["ttft_p50_ms"], other["ttft_p50_ms"]),
        tpot_p50_ms=(plain["tpot_p50_ms"], other["tpot_p50_ms"]),
        tpot_p99_ms=(plain["tpot_p99_ms"], other["tpot_p99_ms"]),
        same_answers=row["same_answers"],
    )


def _spread(found: Mapping[str, float]) -> Spread:
    return Spread(found["median"], found["min"], found["max"])
