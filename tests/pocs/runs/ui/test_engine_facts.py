"""What a run's page says of the engine: load, memory split, fragmentation, release; absent is never 0."""

from collections.abc import Callable
from typing import Any

from django.test import Client
from django.urls import reverse

from pocs.people.models import User
from pocs.projects.models import Project
from pocs.runs.ui.engine_facts import Fact, engine_facts
from tests.factories import Cast, make_run, make_summary

MIB = 2**20
OBSERVED: dict[str, Any] = {
    "memory": {
        "weights_bytes": 300 * MIB,
        "buffers_peak_bytes": 10 * MIB,
        "kv_pool_bytes": 2048 * MIB,
        "kv_used_peak_bytes": 6 * MIB,
        "kv_usage_peak": 0.003,
        "samples": 12,
    },
    "engine": {
        "kv_fragmentation_mean": 0.46,
        "kv_fragmentation_peak": 1.0,
        "preemptions": 3,
        "oom": 0,
        "drafted_tokens": 40,
        "accepted_tokens": 10,
    },
    "release_ms": {"n": 16, "p50": 0.034, "p95": 0.041, "max": 0.042},
    "target": {"load_ms": {"read": 720.3, "probe": 3705.5, "total": 10601.5}},
}


def by_label(summary: dict[str, Any]) -> dict[str, Fact]:
    return {fact.label: fact for fact in engine_facts(summary)}


def values(fact: Fact) -> list[float | None]:
    return [value.value for value in fact.values]


def test_every_figure_stands_with_its_code_and_its_n() -> None:
    facts = by_label(OBSERVED)

    assert values(facts["Model load"]) == [10601.5]
    assert values(facts["Stages of the load"]) == [720.3, 3705.5]
    assert values(facts["KV in use"]) == [6 * MIB, 0.003]
    assert (values(facts["Cache fragmentation"]), facts["Cache fragmentation"].n) == ([0.46, 1.0], 12)
    release = facts["Release of the cache blocks"]
    assert (release.code, release.n, values(release)) == ("M18", 16, [0.034, 0.041, 0.042])
    assert values(facts["Preemptions"]) == [3]
    assert (facts["Out of memory"].observed, values(facts["Out of memory"])) == (True, [0])
    assert (values(facts["Guessed tokens that were right"])) == [0.25]


def test_what_a_target_does_not_tell_is_not_observed_and_not_zero() -> None:
    facts = by_label({"memory": None, "engine": None, "release_ms": {"n": 0}, "target": {"load_ms": None}})

    assert not any(fact.observed for fact in facts.values())
    assert {fact.n for fact in facts.values()} == {None}
    assert "Draft model" not in facts


def test_the_page_of_a_run_shows_them(
    cast: Cast, project: Project, page_as: Callable[[User], Client]
) -> None:
    run = make_run(project, summary=make_summary(**OBSERVED), records=False)
    html = page_as(cast.viewer).get(reverse("runs:detail", args=[run.pk])).content.decode()

    assert "Engine and memory" in html
    assert "10,602" in html
    bare = make_run(project, summary=make_summary(memory=None, engine=None), records=False)
    html = page_as(cast.viewer).get(reverse("runs:detail", args=[bare.pk])).content.decode()
    assert html.count('<span class="absent">not observed</span>') >= 8
