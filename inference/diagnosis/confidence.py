"""How far a diagnosis can be relied upon, with the reasons: samples, explained time, resources, validity."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from inference.diagnosis.resources import Resources
from inference.diagnosis.shares import TimeSplit

Level = Literal["high", "medium", "low"]
LEVELS: tuple[Level, ...] = ("low", "medium", "high")

FEW_SAMPLES, ENOUGH_SAMPLES = 30, 100
#: share of the summed time that lies in named places
HALF_EXPLAINED, WELL_EXPLAINED = 0.5, 0.9


@dataclass(frozen=True)
class Confidence:
    """The level, and each reason that keeps it down (or, at `high`, what it rests on)."""

    level: Level
    reasons: tuple[dict[str, Any], ...]

    def as_json(self) -> dict[str, Any]:
        return {"level": self.level, "reasons": list(self.reasons)}

    def of_action(self, *, measures: bool) -> Level:
        """What an action of this diagnosis deserves: a technique never more than medium before its test."""
        return self.level if measures or self.level == "low" else "medium"


def confidence_of(split: TimeSplit, summary: Mapping[str, Any], resources: Resources) -> Confidence:
    """The lowest level of the four counts, with what keeps it there."""
    explained = 1.0 - split.share("unexplained") if split.source != "none" else 0.0
    stated = summary.get("validity") or {}
    counts: list[tuple[Level, str, dict[str, Any]]] = [
        (_level(split.n, FEW_SAMPLES, ENOUGH_SAMPLES), "confidence_samples", {"n": split.n}),
        (
            _level(explained, HALF_EXPLAINED, WELL_EXPLAINED),
            "confidence_explained",
            {"explained_share": explained},
        ),
        (_told(resources), "confidence_resources", {}),
        ("low" if stated.get("valid") is False else "high", "confidence_validity", {}),
    ]
    if split.source == "summary":
        counts.append(("medium", "confidence_no_records", {"n": split.n}))
    lowest = min((level for level, _code, _figures in counts), key=LEVELS.index)
    reasons = [
        {"code": code, "figures": figures}
        for level, code, figures in counts
        if level == lowest and lowest != "high"
    ]
    if lowest == "high":
        figures = {"n": split.n, "explained_share": explained}
        reasons = [{"code": "confidence_all", "figures": figures}]
    return Confidence(lowest, tuple(reasons))


def _level(value: float, medium: float, high: float) -> Level:
    return "high" if value >= high else "medium" if value >= medium else "low"


def _told(resources: Resources) -> Level:
    """Memory and device both told: high; one of them, or none: medium, since the times stand alone."""
    return "high" if resources.observed else "medium"
