"""Whether both sides were asked as much: in a closed loop a target that answers sooner is sent more."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from inference.comparison.data import RunData

#: loads that differ by less are taken as equal
EQUAL_WITHIN = 0.1


@dataclass(frozen=True)
class OfferedLoad:
    """Requests a second that reached the target, and the answers' length, on both sides."""

    closed_loop: bool
    baseline_per_second: float | None
    candidate_per_second: float | None
    baseline_output_tokens: float | None
    candidate_output_tokens: float | None

    @property
    def unequal(self) -> bool:
        return _differ(self.baseline_per_second, self.candidate_per_second)

    @property
    def other_work(self) -> bool:
        """Whether the requests themselves asked for something else: then times are of other work."""
        return _differ(self.baseline_output_tokens, self.candidate_output_tokens)

    def explains(self, verdict: str) -> bool:
        """Whether a time that got better or worse may be due to the load: case 12.

        A closed loop that sent less makes times look better, one that sent more makes them look worse; a
        time that got better under more load is not explained by it.
        """
        if not self.closed_loop or not self.unequal:
            return False
        if self.other_work:
            return True
        less = (self.candidate_per_second or 0.0) < (self.baseline_per_second or 0.0)
        return less == (verdict == "better")

    def as_json(self) -> dict[str, Any]:
        return asdict(self) | {"unequal": self.unequal, "other_work": self.other_work}


def offered_load(baseline: Sequence[RunData], candidate: Sequence[RunData]) -> OfferedLoad:
    """The mean over the runs of each side, from their summaries."""
    closed = [(run.summary.get("load") or {}).get("open_loop") is False for run in (*baseline, *candidate)]
    return OfferedLoad(
        any(closed),
        *(_mean([_sent(run) for run in side]) for side in (baseline, candidate)),
        *(_mean([_length(run) for run in side]) for side in (baseline, candidate)),
    )


def _sent(run: RunData) -> float | None:
    attempted, window_s = run.summary.get("attempted"), run.summary.get("window_s")
    return attempted / window_s if attempted and window_s else None


def _length(run: RunData) -> float | None:
    found = (run.summary.get("output_tokens_per_request") or {}).get("p50")
    if found is not None:
        return float(found)
    tokens, succeeded = run.summary.get("output_tokens"), run.summary.get("succeeded")
    return tokens / succeeded if tokens is not None and succeeded else None


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return float(np.mean(known)) if known else None


def _differ(one: float | None, other: float | None) -> bool:
    if one is None or other is None or not one:
        return False
    return abs(other / one - 1) > EQUAL_WITHIN
