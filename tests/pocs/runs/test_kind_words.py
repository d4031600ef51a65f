"""What kinds found is said in words: no code, figure, column or stage is without its name."""

import asyncio
import inspect
import re
from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client
from django.utils.translation import override

from inference import kinds
from inference.kinds import KINDS, Course, conduct
from pocs.people.models import User
from pocs.runs.models import Run
from pocs.runs.wording import kind_names
from pocs.runs.wording.kinds import STATEMENTS, _table, facts_shown, figure, statement
from tests.factories import Cast, make_run
from tests.inference.kinds.conftest import SPEC, Bench

LIMITS = [{"metric": "ttft_ms", "percentile": "p95", "max": 60.0}]
OPTIONS: dict[str, dict[str, Any]] = {
    "resource_reclaim": {"rest_s": 0, "cycles": 3},
    "capacity_search": {"rate_low": 100, "rate_high": 200, "steps": 2, "step_requests": 6},
    "throttling": {"rate_low": 100, "rate_high": 200, "steps": 2, "step_requests": 6},
    "soak": {"duration_s": 1, "windows": 3},
    "production_replay": {"classes": "chat 1 8 4\nreport 1 16 4"},
    "interruption": {"release_limit_s": 1},
}


async def found_by(name: str) -> dict[str, Any]:
    kind, bench = KINDS[name], Bench(service_s=0.02)
    gauges = bench.gauges
    bench.gauges = lambda: gauges() | {"rss_bytes": 2**20, "kv_used_bytes": 0}
    course = Course(
        target=bench,
        info=await bench.open(),
        spec=SPEC
        | {"limits": LIMITS, "interruptions": [{"phase": "decode", "after_tokens": 1}], "output_tokens": 20},
        values=kind.values(OPTIONS.get(name, {})),
        stop=asyncio.Event(),
    )
    return (await conduct(kind, course))[1]


@pytest.mark.parametrize("name", [name for name in KINDS if name != "model_switch"])
async def test_everything_that_a_kind_finds_has_a_name(name: str) -> None:
    found = await found_by(name)
    for item in found["statements"]:
        assert item["code"] in STATEMENTS
        text = statement(item).text
        assert "%(" not in text
        assert "None" not in text
    for fact in facts_shown(found["facts"]):
        assert fact.name in kind_names.NAMES, fact
        assert fact.text
    for table, rows in found["tables"].items():
        assert f"table_{table}" in kind_names.NAMES
        assert set(kind_names.TABLES[table]) <= kind_names.COLUMNS.keys()
        assert set(kind_names.TABLES[table]) & rows[0].keys()
    assert {stage["name"] for stage in found["stages"]} <= kind_names.STAGES.keys()


def test_every_sentence_belongs_to_a_code_and_every_code_has_one() -> None:
    source = "".join(
        inspect.getsource(module) for name, module in inspect.getmembers(kinds, inspect.ismodule)
    )
    drifts = {f"drift_{direction}" for direction in ("rising", "falling", "steady", "unknown")}
    assert {code for code in STATEMENTS if f'"{code}"' not in source} == drifts
    said = set(re.findall(r'say\(\s*"(\w+)"', source))
    assert said <= STATEMENTS.keys()


def test_figures_carry_the_unit_of_their_name() -> None:
    assert figure("release_max_ms", 12.345) == "12.3 ms"
    assert figure("rate_requests_per_second", 2) == "2 requests/s"
    assert figure("slope_bytes", 3 * 2**20) == "3.00 MiB"
    assert figure("queue_share", 0.25) == "25.0 %"
    assert figure("gauges", "running, rss_bytes") == "running requests, resident memory"
    assert figure("anything_ms", None) == "—"


def a_finding(run: Run, **outputs: Any) -> None:
    run.summary |= {
        "kind": {
            "kind": "short_request",
            "code": "S1",
            "options": {},
            "facts": {"ttft_n": 4, "ttft_p50_ms": 10.0, "ttft_p95_ms": 20.0, "ttft_max_ms": 21.0},
            "tables": {
                "gauges": [{"gauge": "running", "before": 0, "peak": 2, "back_ms": 3.0, "state": "back"}]
            },
            "statements": [{"code": "level_back", "figures": {"level_back_ms": 3.0}}],
            "stages": [
                {"name": name, "number": number, "of": 2, "requests": 2, "started_ms": 0.0, "ended_ms": 9.0}
                for number, name in enumerate(("load", "wave"), start=1)
            ],
        }
    } | outputs  # fmt: skip
    run.save(update_fields=["summary"])


OUTPUTS: dict[str, Any] = {
    "checks": [
        {"kind": "contains", "value": "refund", "min": None, "n": 4, "passed": 3, "pass_share": 0.75,
         "interval": [0.3, 0.95], "undecided": 0, "undecided_reasons": []}
    ],
    "n": 4, "passed": 3, "pass_rate": 0.75, "interval": [0.3, 0.95],
    "failures": [
        {"check": 0, "index": 1, "request": "r2", "reason": "text_absent", "excerpt": "<b>no</b>"}
    ],
    "failures_left_out": 0,
    "quality": None,
}  # fmt: skip


@pytest.mark.parametrize("language", ["en", "zh-hans"])
def test_the_run_page_shows_what_its_kind_found(
    cast: Cast, page_as: Callable[[User], Client], language: str
) -> None:
    run = make_run(cast.project)
    a_finding(run, outputs=OUTPUTS)
    page = (
        page_as(cast.viewer).get(f"/runs/{run.pk}/", headers={"accept-language": language}).content.decode()
    )
    assert 'id="kind-title"' in page
    assert "n = 4" in page
    assert "&lt;b&gt;no&lt;/b&gt;" in page
    if language == "en":
        assert "were back at their level before after 3.00 ms" in page
        assert "3 of 4 answers pass every check (75.0 %, 95 % interval 30.0 % – 95.0 %)." in page


def test_the_api_says_it_too(cast: Cast, api_as: Callable[..., Any]) -> None:
    run = make_run(cast.project)
    a_finding(run)
    found = api_as(cast.viewer).get(f"/api/v1/runs/{run.pk}/").json()
    assert found["kind_findings"][0]["code"] == "level_back"
    assert found["kind_findings"][0]["text"].startswith("All watched resources")
    assert found["summary"]["kind"]["facts"]["ttft_n"] == 4


def test_a_gauge_has_the_unit_of_its_name() -> None:
    rows = [
        {"gauge": "rss_bytes", "before": 0.0, "peak": 3 * 2**20, "after": 2**20, "state": "back"},
        {"gauge": "running", "before": 0.0, "peak": 12.0, "after": None, "state": "back"},
    ]
    with override("en"):
        cells = _table("gauges", rows).rows
    assert cells[0][1:4] == ["0.00 MiB", "3.00 MiB", "1.00 MiB"]
    assert cells[1][1:4] == ["0", "12", "—"]
