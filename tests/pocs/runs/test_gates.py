"""G3 and G4: what is missing is named in the checklist's words, and met gates say nothing."""

from typing import Any

import pytest

from pocs.projects.gates import gates
from pocs.projects.models import Project
from pocs.projects.scenario_spec import Interruption
from pocs.runs import selectors
from pocs.runs.choices import MetricSet, RunState, Validity
from pocs.runs.gates import coverage_sentence, matrix_guard, metric_guard
from pocs.runs.metric_sets import missing_metrics
from pocs.runs.models import Run
from tests.factories import make_run, make_scenario_version, make_summary


def run_of(project: Project, *, cancelled: int = 0, run: dict[str, Any] | None = None, **spec: Any) -> Run:
    version = make_scenario_version(project, **spec)
    summary = make_summary(requests=4, cancelled=cancelled)
    return make_run(project, scenario_version=version, records=False, **({"summary": summary} | (run or {})))


def cover(project: Project) -> None:
    run_of(project, input_tokens=64, output_tokens=16, concurrency=2)
    run_of(project, input_tokens=512, output_tokens=64, concurrency=8)
    run_of(project, cancelled=1, interruptions=(Interruption(phase="decode"),))


def test_both_gates_are_registered() -> None:
    assert {"G3", "G4"} <= {gate.code for gate in gates()}


def test_a_project_without_runs_lacks_everything(project: Project) -> None:
    assert [item.code for item in matrix_guard(project)] == ["S8", "S9", "S10", "S11", "X6"]
    assert [item.code for item in metric_guard(project)] == ["G4"]


def test_a_covered_matrix_lacks_nothing(project: Project) -> None:
    cover(project)

    assert matrix_guard(project) == []
    assert metric_guard(project) == []


def test_one_prompt_one_length_is_named(project: Project) -> None:
    """A project with one prompt, one input length and no interruption (governance 13)."""
    run_of(project, prompts=("Hello",))

    texts = {item.code: str(item.text) for item in matrix_guard(project)}
    assert texts["S8"] == "at least two input lengths (S8); so far only 64"
    assert texts["S11"] == "at least one interruption (S11)"
    assert "X6" in texts


@pytest.mark.parametrize(
    "fields",
    [
        {"state": RunState.FAILED},
        {"state": RunState.INTERRUPTED},
        {"validity": Validity.INVALID},
        {"validity": Validity.SUPERSEDED},
    ],
)
def test_runs_that_do_not_count_cover_nothing(project: Project, fields: dict[str, Any]) -> None:
    cover(project)
    Run.objects.filter(project=project).update(**fields)

    assert len(matrix_guard(project)) == 5
    assert selectors.coverage(project).input_tokens == ()


def test_an_interruption_that_never_happened_does_not_count(project: Project) -> None:
    run_of(project, cancelled=0, interruptions=(Interruption(phase="decode"),))

    assert "S11" in [item.code for item in matrix_guard(project)]


def test_the_grid_shows_planned_and_covered_cells(project: Project) -> None:
    run = run_of(project, input_tokens=64)
    make_scenario_version(project, "later", input_tokens=512)

    covered = selectors.coverage(project)
    assert [(cell.input_tokens, cell.runs) for cell in covered.cells] == [(64, (run,)), (512, ())]
    assert coverage_sentence(covered).startswith("1 of 2")


def test_a_mean_alone_is_missing_m32(project: Project) -> None:
    summary = make_summary(ttft_ms={"n": 4, "mean": 42.0})
    run_of(project, run={"summary": summary})

    assert {item.code for item in metric_guard(project)} == {"M1", "M32"}


def test_an_incomplete_run_is_named_until_another_of_its_scenario_counts(project: Project) -> None:
    version = make_scenario_version(project)
    summary = make_summary(queue_wait_ms={"n": 0})
    make_run(project, scenario_version=version, validity=Validity.INVALID, summary=summary, records=False)

    assert [(item.code, item.object) for item in metric_guard(project)] == [
        ("G4", str(project)),
        ("M7", "R1"),
    ]
    make_run(project, scenario_version=version, summary=make_summary(), records=False)
    assert metric_guard(project) == []


@pytest.mark.parametrize(
    ("metric_set", "changes", "missing"),
    [
        (MetricSet.POC_SIX, {}, []),
        (MetricSet.MINIMUM_EIGHT, {}, ["M5"]),
        (MetricSet.MINIMUM_EIGHT, {"engine": {"gpu_utilisation_mean": 0.4}}, []),
        (MetricSet.MINIMUM_EIGHT, {"cache_hit_rate": None}, ["M5", "M8"]),
        (MetricSet.POC_SIX, {"tpot_ms": None}, ["M2"]),
        (MetricSet.POC_SIX, {"memory": None, "error_rate": None}, ["M4", "M6"]),
        (MetricSet.POC_SIX, {"memory": {"weights_bytes": 5}}, ["M6"]),
        (MetricSet.POC_SIX, {"output_tokens_per_second": 0}, []),
        (MetricSet.MONITORING_FIVE, {"output_tokens": None}, ["M9"]),
    ],
)
def test_missing_metrics(metric_set: str, changes: dict[str, Any], missing: list[str]) -> None:
    assert missing_metrics(metric_set, make_summary(**changes)) == missing


def test_nothing_is_filled_without_a_summary() -> None:
    assert missing_metrics(MetricSet.POC_SIX, None) == ["M1", "M2", "M3", "M4", "M6", "M7"]
