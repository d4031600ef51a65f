"""Verdicts and reasons in words: every code has its sentence, with the figures and their units in it."""

import re
from pathlib import Path
from typing import Any

import pytest
from django.utils.translation import override

from inference import diagnosis
from inference.diagnosis import Setting, diagnose, goals
from inference.diagnosis.shares import PLACES
from pocs.projects.choices import OptimisationGoal
from pocs.projects.models import Project
from pocs.runs import judgement, wording
from pocs.runs.choices import MetricSet, Validity
from pocs.runs.judgement import judge
from pocs.runs.wording import advice, findings, judgements, requests
from tests.factories import make_run, make_summary
from tests.inference.diagnosis.making import timed

DIAGNOSIS = "".join(path.read_text() for path in sorted(Path(str(diagnosis.__file__)).parent.glob("*.py")))
JUDGEMENT = Path(str(judgement.__file__)).read_text()


def test_every_code_of_the_diagnosis_has_a_sentence() -> None:
    codes = set(re.findall(r'_finding\(\s*"(\w+)"', DIAGNOSIS))
    codes |= {f"time_in_{stage}" for stage in ("queue", "prefill", "decode", "mixed")}
    codes |= {
        f"ttft_by_{name}"
        for name in ("queueing", "context_computation", "model_load", "network", "throttling")
    }

    assert codes == set(wording.FINDINGS)
    assert set(goals.ACTIONS) == set(wording.ADVICE)


def test_every_judgement_has_its_name_and_what_it_rests_on() -> None:
    codes = set(re.findall(r'(?:Judgement|by_share|_grows|_by_fact)\(\s*"(\w+)"', DIAGNOSIS))
    codes |= {"first_token_beyond_limit", "generation_beyond_limit"}
    codes |= {
        f"ttft_{name}" for name in ("queueing", "context_computation", "model_load", "network", "throttling")
    }

    assert codes == set(judgements.NAMES) == set(judgements.BASES)


def test_everything_else_that_a_diagnosis_says_has_words() -> None:
    settle = set(re.findall(r'settle(?:": |=)"(\w+)"', DIAGNOSIS))
    settle |= set(re.findall(r'"not_observed", \w+, "(\w+)"', DIAGNOSIS))
    settle |= {"server_metrics", "device_utilisation", "more_requests", "one_change_against_baseline"}
    confidence = set(re.findall(r'"(confidence_\w+)"', DIAGNOSIS))

    assert settle <= set(judgements.SETTLE)
    assert confidence == set(judgements.CONFIDENCE)
    assert set(PLACES) == set(findings.PLACES)
    assert {f"request_{place}" for place in PLACES} | {"request_not_observed"} == set(requests.REQUESTS)
    actions = goals.ACTIONS.values()
    assert {action.technique for action in actions} - {""} <= set(advice.TECHNIQUES)
    assert {risk for action in actions for risk in action.risks} == set(advice.RISKS)
    assert set(goals.GOALS) == set(advice.GOALS) == set(OptimisationGoal.values)


def test_every_reason_has_a_sentence() -> None:
    codes = set(re.findall(r'"code": "(\w+)"', JUDGEMENT)) | {
        "dispatched_late",
        "loop_lagged",
        "not_complete",
    }

    assert codes <= set(wording.REASONS)


def test_one_request_in_a_sentence() -> None:
    item = {
        "main": {
            "code": "request_queue",
            "figures": {"share": 0.62, "total_ms": 4100.0, "running": 32, "admission_told": True},
        },
        "also": [{"code": "request_preemption", "figures": {"share": 0.1, "total_ms": 4100.0}}],
    }
    with override("en"):
        said = wording.request_sentences(item)

    assert said[0].text == "62.0 % of its 4.10 s waited in the queue, while 32 others ran."
    assert "— times" in said[1].text


def test_a_whole_diagnosis_in_words(project: Project) -> None:
    """Every sentence finds its figures, whatever was and was not observed."""
    records = [
        timed(i, sent_ms=i * 10.0, queue_wait=500.0, prefill=50.0, decode=100.0 + i, decode_compute=80.0)
        for i in range(40)
    ]
    summary = make_summary(
        attempted=40, succeeded=40, engine={"preemptions": 2, "gpu_utilisation_mean": 0.9, "waiting_peak": 7}
    )
    setting = Setting(goal="latency", shared_prefix_tokens=16, block_tokens=32)
    run = make_run(project, diagnosis=diagnose(records, summary, setting=setting), records=False)
    with override("en"):
        found = wording.verdict_of(run)

    assert found is not None
    assert found.goal == "lower latency"
    assert (found.confidence, len(found.suspects), len(found.causes)) == ("medium", 5, 5)
    assert found.suspects[3].verdict_label == "supported"
    assert "7" in found.suspects[3].basis
    assert found.slowest[39].startswith("72.6 %")
    texts = [item.basis for item in (*found.suspects, *found.causes, *found.tests)]
    assert all("%(" not in text for text in (*texts, *found.settle, *found.confidence_reasons))
    routed = next(item for item in found.advice if item.code == "route_load")
    assert (routed.technique, routed.serves_goal) == ("model routing (T6)", True)
    assert "harder to roll back" in routed.risks


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("p99_ms", 80.25, "80.2 ms"),
        ("ttft_p50_ms", 0.1234, "0.12 ms"),
        ("e2e_ms", 12345.6, "12346 ms"),
        ("ms_per_request", 241.2, "241 ms"),
        ("long_ms_per_token", 1.5, "1.50 ms"),
        ("queue_share", 0.4567, "45.7 %"),
        ("output_tokens_per_second", 529.4, "529 tokens/s"),
        ("n", 25, "25"),
        ("waiting_peak", 7, "7"),
        ("kv_usage_peak", 0.97, "97.0 %"),
        ("total_ms", 4100.0, "4.10 s"),
        ("prefill_share", None, "—"),
        ("missing", ["M6", "M7"], "memory watermark (M6), queue wait (M7)"),
        ("state", "failed", "Failed"),
    ],
)
def test_figures_carry_the_unit_their_name_states(name: str, value: Any, text: str) -> None:
    with override("en"):
        assert wording.shown(name, value) == text


def test_a_verdict_in_words(project: Project) -> None:
    stored = {
        "where": "queue",
        "shares": {"queue_wait": 0.7, "prefill": None},
        "findings": [
            {"code": "throttled", "figures": {"n": 5, "attempted": 30}},
            {"code": "from_a_later_version", "figures": {}},
        ],
        "advice": [
            {
                "code": "route_load",
                "stage": "queue",
                "area": "routing",
                "figures": {"queue_share": 0.7},
            }
        ],
    }
    found = wording.verdict_of(make_run(project, diagnosis=stored, records=False))

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
