"""Verdicts and reasons in words: every code has its sentence, with the figures and their units in it."""

import re
from pathlib import Path
from typing import Any

import pytest
from django.utils.translation import override

from inference.diagnosis import verdict
from pocs.projects.models import Project
from pocs.runs import judgement, wording
from pocs.runs.choices import MetricSet, Validity
from pocs.runs.judgement import judge
from tests.factories import make_run, make_summary

SOURCES = [Path(str(module.__file__)).read_text() for module in (verdict, judgement)]


def test_every_code_of_the_diagnosis_has_a_sentence() -> None:
    source = SOURCES[0]
    findings = set(re.findall(r'_finding\(\s*"(\w+)"', source))
    findings |= {f"time_in_{stage}" for stage in ("queue", "prefill", "decode", "mixed")}
    findings |= set(re.findall(r'"ttft_by_(\w+)"', source))
    causes = re.search(r"causes = \{(.*?)\n    \}", source, re.S)
    assert causes is not None
    findings |= {f"ttft_by_{name}" for name in re.findall(r'"(\w+)":', causes[1])}
    advice = set(re.findall(r'add\(\s*"(\w+)"', source))

    assert findings == set(wording.FINDINGS)
    assert advice == set(wording.ADVICE)


def test_every_reason_has_a_sentence() -> None:
    codes = set(re.findall(r'"code": "(\w+)"', SOURCES[1])) | {
        "dispatched_late",
        "loop_lagged",
        "not_complete",
    }

    assert codes == set(wording.REASONS)


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("p99_ms", 80.25, "80.2 ms"),
        ("ttft_p50_ms", 0.1234, "0.12 ms"),
        ("e2e_ms", 12345.6, "12346 ms"),
        ("queue_share", 0.4567, "45.7 %"),
        ("output_tokens_per_second", 529.4, "529 tokens/s"),
        ("n", 25, "25"),
        ("prefill_share", None, "—"),
        ("missing", ["M6", "M7"], "memory watermark (M6), queue wait (M7)"),
        ("state", "failed", "Failed"),
    ],
)
def test_figures_carry_the_unit_their_name_states(name: str, value: Any, text: str) -> None:
    with override("en"):
        assert wording.shown(name, value) == text


def test_a_verdict_in_words(project: Project) -> None:
    diagnosis = {
        "where": "queue",
        "shares": {"queue_wait": 0.7, "prefill": None},
        "findings": [
            {"code": "throttled", "figures": {"n": 5, "attempted": 30}},
            {"code": "from_a_later_version", "figures": {}},
        ],
        "advice": [
            {
                "code": "route_or_add_capacity",
                "stage": "queue",
                "area": "routing",
                "figures": {"queue_share": 0.7},
            }
        ],
    }
    found = wording.verdict_of(make_run(project, diagnosis=diagnosis, records=False))

    assert found is not None
    assert "queue" in found.headline
    assert found.findings[0].text == "The service refused 5 of 30 requests by rate limit."
    assert found.findings[1].text == "from_a_later_version"
    assert (found.advice[0].area, "70.0 %" in found.advice[0].text) == ("model routing", True)
    assert {share.part: share.share for share in found.shares}["prefill"] is None


def test_no_diagnosis_is_no_verdict(project: Project) -> None:
    assert wording.verdict_of(make_run(project, diagnosis=None, records=False)) is None


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        (
            {
                "self_check": {"loop_lag_ms": {"p99": 80.0}},
                "validity": {"valid": False, "limits": {"loop_lag_p99_ms": 50.0}, "reasons": ["x"]},
            },
            "loop_lagged",
        ),
        (
            {
                "self_check": {"dispatch_delay_ms": {"p99": 80.0}},
                "validity": {"valid": False, "limits": {"dispatch_delay_p99_ms": 50.0}},
            },
            "dispatched_late",
        ),
        ({"attempted": 0, "validity": {"valid": False}}, "nothing_measured"),
        ({"attempted": 4, "succeeded": 0, "validity": {"valid": False}}, "none_succeeded"),
        ({"ttft_ms": {"n": 0}, "validity": {"valid": False}}, "first_token_not_observed"),
        ({"interrupted": True, "validity": {"valid": False}}, "interrupted"),
        ({"validity": {"valid": False, "reasons": ["the moon was full"]}}, "measurement"),
    ],
)
def test_an_invalid_measurement_has_its_reason(project: Project, changes: dict[str, Any], code: str) -> None:
    validity, reasons = judge(MetricSet.POC_SIX, make_summary(**changes))

    assert validity == Validity.INVALID
    assert reasons[0]["code"] == code
    run = make_run(project, validity=validity, validity_reasons=reasons, records=False)
    text = wording.validity_texts(run)[0]
    assert text
    assert "%(" not in text


@pytest.mark.parametrize(
    ("where", "shares", "headline"),
    [
        (
            "mixed",
            {"queue_wait": 0.15, "prefill": 0.4, "decode": 0.42},
            "No single stage holds most of the time: Decode 42.0 %, Prefill 40.0 %, Queue wait 15.0 %.",
        ),
        (
            "decode",
            {"queue_wait": None, "prefill": 0.3, "decode": 0.45},
            "The largest part of the time goes into decode: Decode 45.0 %, Prefill 30.0 %.",
        ),
        (
            "decode",
            {"queue_wait": 0.1, "prefill": 0.3, "decode": 0.6},
            "Most of the time goes into decode, the generation token by token.",
        ),
        ("unknown", {}, "What was observed does not say in which stage the time goes."),
    ],
)
def test_the_headline_says_most_only_of_more_than_half(
    project: Project, where: str, shares: dict[str, float | None], headline: str
) -> None:
    run = make_run(project, diagnosis={"where": where, "shares": shares})
    with override("en"):
        said = wording.verdict_of(run)
    assert said is not None
    assert said.headline == headline
