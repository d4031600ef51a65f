"""One question of the checklist and its answer: supported, ruled out or not observed, with its figures."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Verdict = Literal["supported", "ruled_out", "not_observed"]

#: a part of the time that deserves a sentence
NOTABLE_SHARE = 0.2
#: a part of the time that is called the place
CLEAR_SHARE = 0.5


@dataclass(frozen=True)
class Judgement:
    """The answer to one question.

    `settle` names the measurement that would answer a question that stayed open, by its code in
    `inference.diagnosis.settling`; empty where the question is answered.
    """

    code: str
    verdict: Verdict
    figures: Mapping[str, Any] = field(default_factory=dict)
    settle: str = ""

    def as_json(self) -> dict[str, Any]:
        return {
            "code": self.code,
            "verdict": self.verdict,
            "figures": dict(self.figures),
            "settle": self.settle,
        }


def by_share(
    code: str, share: float | None, *, least: float = NOTABLE_SHARE, settle: str = "", **figures: Any
) -> Judgement:
    """Supported when `share` is at least `least`, ruled out below, not observed where it is None."""
    told = {"share": share} | figures
    if share is None:
        return Judgement(code, "not_observed", told, settle)
    return Judgement(code, "supported" if share >= least else "ruled_out", told)
