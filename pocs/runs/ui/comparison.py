"""Two runs side by side: their percentiles with differences, and what differed in the configuration."""

import json
from dataclasses import dataclass
from typing import Any

from inference.comparison.configuration import differences
from pocs.runs.experimenting import settings_of
from pocs.runs.models import Run
from pocs.runs.ui.figures import phase_names


@dataclass(frozen=True)
class ComparedFigure:
    """One percentile of both runs; `difference` is b − a, `ratio` b ÷ a − 1, None where either is absent."""

    label: str
    percentile: str
    a: float | None
    b: float | None
    n_a: int
    n_b: int

    @property
    def difference(self) -> float | None:
        return None if self.a is None or self.b is None else self.b - self.a

    @property
    def ratio(self) -> float | None:
        return None if self.difference is None or not self.a else self.difference / self.a


def compared_figures(a: Run, b: Run) -> list[ComparedFigure]:
    """p50, p95 and max of every distribution that either run states."""
    found = []
    left, right = a.summary or {}, b.summary or {}
    for field, label in phase_names().items():
        one, other = left.get(field) or {}, right.get(field) or {}
        if not one.get("n") and not other.get("n"):
            continue
        found += [
            ComparedFigure(
                label,
                percentile,
                one.get(percentile),
                other.get(percentile),
                int(one.get("n") or 0),
                int(other.get("n") or 0),
            )
            for percentile in ("p50", "p95", "max")
        ]
    return found


@dataclass(frozen=True)
class ConfigurationDifference:
    """One setting that is not the same in both runs, by its path."""

    path: str
    a: Any
    b: Any


def configuration_differences(a: Run, b: Run) -> list[ConfigurationDifference]:
    """Every setting, of the scenario and of the target, that the two runs do not share."""
    return [
        ConfigurationDifference(found.path, _readable(found.baseline), _readable(found.candidate))
        for found in differences(settings_of(a), settings_of(b))
    ]


def _readable(value: Any) -> Any:
    """A list or a truth value as JSON, as the scenario's page shows it; the rest as it is."""
    return json.dumps(value, ensure_ascii=False) if isinstance(value, list | bool) else value
