"""All answers of a run against the scenario's checks and its quality set, with shares, n and intervals."""

import time
from collections.abc import Mapping, Sequence
from typing import Any

from inference.intervals import share_interval
from inference.outputs.checks import ANSWER_CHARACTERS, Undecided, check_of, even
from inference.records import RequestRecord
from inference.requests import GenerationRequest

FAILURES_KEPT, EXCERPT_CHARACTERS = 50, 200
#: a check is left undecided for the answers that are not reached within so long
TIME_LIMIT_S = 8.0
#: patterns that ran out of time are not tried on every answer
UNDECIDED_MAX = 3


def evaluate(
    spec: Mapping[str, Any],
    records: Sequence[RequestRecord],
    quality: Sequence[RequestRecord] = (),
) -> dict[str, Any] | None:
    """The block `outputs` of the summary; None for a scenario that asks nothing of its answers.

    Checks are over the measured successes among `records`; `quality` are the answers to the quality set, in
    its order, of which an unsuccessful one is wrong. `pass_rate` is the share that passed every check.
    """
    checks, items = list(spec.get("checks") or ()), list(spec.get("quality") or ())
    if not checks and not items:
        return None
    answers = [record for record in records if record.outcome == "success" and not record.warmup]
    until = time.monotonic() + TIME_LIMIT_S
    rows, failures = [], []
    failed: set[int] = set()
    undecided: set[int] = set()
    for number, given in enumerate(checks):
        row, wrong, open_ones = _one_check(number, given, answers, until)
        rows.append(row)
        failures += wrong
        failed |= {failure["index"] for failure in wrong}
        undecided |= open_ones
    judged = [record for record in answers if record.index in failed or record.index not in undecided]
    passed = sum(record.index not in failed for record in judged)
    return {
        "checks": rows,
        "n": len(judged) if checks else 0,
        "passed": passed if checks else 0,
        "pass_rate": passed / len(judged) if checks and judged else None,
        "interval": _interval(passed, len(judged)) if checks else None,
        "failures": failures[:FAILURES_KEPT],
        "failures_left_out": max(0, len(failures) - FAILURES_KEPT),
        "quality": _quality(items, quality, str(spec.get("quality_match") or "exact")) if items else None,
    }


def _one_check(
    number: int, given: Mapping[str, Any], answers: Sequence[RequestRecord], until: float
) -> tuple[dict[str, Any], list[dict[str, Any]], set[int]]:
    check = check_of(given)
    wrong: list[dict[str, Any]] = []
    open_ones: set[int] = set()
    reasons: set[str] = set()
    for record in answers:
        if time.monotonic() > until or len(open_ones) >= UNDECIDED_MAX:
            reasons.add("time")
            open_ones.add(record.index)
            continue
        text = record.text[:ANSWER_CHARACTERS]
        try:
            found = check(text)
        except Undecided as error:
            reasons.add(str(error))
            open_ones.add(record.index)
            continue
        if found is not None:
            wrong.append(
                {
                    "check": number,
                    "index": record.index,
                    "request": record.id,
                    "reason": found,
                    "excerpt": text[:EXCERPT_CHARACTERS],
                }
            )
    n = len(answers) - len(open_ones)
    passed = n - len(wrong)
    row = {
        "kind": given["kind"],
        "value": str(given["value"])[:EXCERPT_CHARACTERS],
        "min": given.get("min"),
        "n": n,
        "passed": passed,
        "pass_share": passed / n if n else None,
        "interval": _interval(passed, n),
        "undecided": len(open_ones),
        "undecided_reasons": sorted(reasons),
    }
    return row, wrong, open_ones


def quality_requests(spec: Mapping[str, Any]) -> list[GenerationRequest]:
    """The prompts of the quality set, greedy, so that the same model gives the same answers."""
    return [
        GenerationRequest(
            id=f"quality-{number:03d}",
            messages=({"role": "user", "content": item["prompt"]},),
            max_tokens=int(spec.get("output_tokens") or 64),
            temperature=0.0,
        )
        for number, item in enumerate(spec.get("quality") or (), start=1)
    ]


def _quality(
    items: Sequence[Mapping[str, str]], records: Sequence[RequestRecord], match: str
) -> dict[str, Any]:
    """Right answers over all that were asked; compared as `even` makes them, trailing marks left out."""
    wrong, right = [], 0
    for number, (item, record) in enumerate(zip(items, records, strict=False)):
        expected, answer = _bare(item["answer"]), _bare(record.text)
        good = expected == answer if match == "exact" else expected in answer
        right += record.outcome == "success" and good
        if not (record.outcome == "success" and good):
            wrong.append(
                {
                    "item": number + 1,
                    "prompt": item["prompt"][:EXCERPT_CHARACTERS],
                    "expected": item["answer"][:EXCERPT_CHARACTERS],
                    "answer": record.text[:EXCERPT_CHARACTERS],
                    "outcome": record.outcome,
                }
            )
    n = min(len(items), len(records))
    return {
        "match": match,
        "items": len(items),
        "n": n,
        "right": right,
        "right_share": right / n if n else None,
        "interval": _interval(right, n),
        "wrong": wrong[:FAILURES_KEPT],
        "wrong_left_out": max(0, len(wrong) - FAILURES_KEPT),
    }


def _bare(text: str) -> str:
    return even(text).strip(" .。!！,，;；\"'“”")


def _interval(passed: int, n: int) -> list[float] | None:
    found = share_interval(passed, n)
    return None if found is None else list(found)
