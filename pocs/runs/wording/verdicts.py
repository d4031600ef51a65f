"""The diagnosis of a run in words."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from django.utils.translation import gettext as _

from inference.diagnosis.judgement import CLEAR_SHARE
from inference.diagnosis.verdict import STAGES
from pocs.runs.models import Run
from pocs.runs.wording.advice import ADVICE, AREAS, GOALS, RISKS, TECHNIQUES
from pocs.runs.wording.findings import FINDINGS, HEADLINES, HEADLINES_BELOW_HALF, PARTS, PLACES
from pocs.runs.wording.judgements import CONFIDENCE, LEVELS, Judged, judged, settle_text
from pocs.runs.wording.requests import request_sentences
from pocs.runs.wording.sentences import Sentence, sentence, shown


@dataclass(frozen=True)
class Share:
    """One part of the summed time: its name and its share 0–1, None where not observed."""

    part: str
    label: str
    share: float | None
    ms: float | None = None


@dataclass(frozen=True)
class Verdict:
    """The diagnosis of a run in words; diagnoses of older runs lack the later parts."""

    where: str
    headline: str
    shares: tuple[Share, ...]
    findings: tuple[Sentence, ...]
    advice: tuple[Sentence, ...]
    attribution: tuple[Share, ...] = ()
    suspects: tuple[Judged, ...] = ()
    causes: tuple[Judged, ...] = ()
    tests: tuple[Judged, ...] = ()
    goal: str = ""
    confidence: str = ""
    confidence_reasons: tuple[str, ...] = ()
    settle: tuple[str, ...] = ()
    slowest: Mapping[int, str] = field(default_factory=dict)  # index of a request -> its sentence


def verdict_of(run: Run) -> Verdict | None:
    """The run's diagnosis in words; None while there is none."""
    found = run.diagnosis
    if not found or "where" not in found:
        return None
    shares, goal = found.get("shares") or {}, found.get("goal")
    confidence = found.get("confidence") or {}
    return Verdict(
        where=found["where"],
        headline=_headline(found["where"], shares),
        shares=tuple(Share(part, str(label), shares.get(part)) for part, label in PARTS.items()),
        findings=tuple(sentence(FINDINGS, item) for item in found.get("findings") or ()),
        advice=tuple(_advice(item) for item in found.get("advice") or ()),
        attribution=attribution_of(found),
        suspects=tuple(judged(item) for item in found.get("suspects") or ()),
        causes=tuple(judged(item) for item in found.get("causes") or ()),
        tests=tuple(judged(item) for item in found.get("tests") or ()),
        goal=str(GOALS.get(goal, goal)) if goal else "",
        confidence=_level(confidence.get("level")),
        confidence_reasons=tuple(sentence(CONFIDENCE, item).text for item in confidence.get("reasons") or ()),
        settle=tuple(settle_text(code) for code in found.get("settle") or ()),
        slowest={
            item["index"]: request_sentences(item)[0].text
            for item in found.get("slowest") or ()
            if item.get("main")
        },
    )


def attribution_of(diagnosis: Mapping[str, Any]) -> tuple[Share, ...]:
    """Every place where time can go with its time and share, in order."""
    return tuple(
        Share(item["place"], str(PLACES.get(item["place"], item["place"])), item["share"], item["ms"])
        for item in diagnosis.get("attribution") or ()
    )


def _headline(where: str, shares: Mapping[str, float | None]) -> str:
    """The verdict in one sentence; the stages with their shares where none has half of the time."""
    stages = [(shares.get(part) or 0.0, part) for part in STAGES.values()]
    share_there = shares.get(STAGES.get(where, "")) or 0.0
    headlines = HEADLINES_BELOW_HALF if 0 < share_there < CLEAR_SHARE else HEADLINES
    ranked = (
        _("%(stage)s %(share)s") % {"stage": PARTS[part], "share": shown("share", share)}
        for share, part in sorted(stages, reverse=True)
        if share > 0
    )
    return str(headlines.get(where, where)) % {"ranked": _(", ").join(ranked)}


def _advice(item: Mapping[str, Any]) -> Sentence:
    area, technique = str(item.get("area") or ""), str(item.get("technique") or "")
    return sentence(
        ADVICE,
        item,
        stage=str(item.get("stage") or ""),
        area=str(AREAS.get(area, area)),
        technique=str(TECHNIQUES.get(technique, technique)),
        risks=tuple(str(RISKS.get(risk, risk)) for risk in item.get("risks") or ()),
        serves_goal=item.get("serves_goal"),
        confidence=_level(item.get("confidence")),
        settle=settle_text(str(item.get("settle") or "")),
    )


def _level(code: Any) -> str:
    return str(LEVELS.get(code, code)) if code else ""
