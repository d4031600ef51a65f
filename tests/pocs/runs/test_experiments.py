"""Experiments: one change, runs in turns, what is concluded and what is refused; baselines and their gate."""

import re
from pathlib import Path
from typing import Any

import pytest

from inference import comparison
from pocs.common.actors import Actor
from pocs.common.errors import Conflict, InvalidInput, NotPermitted
from pocs.runs import services
from pocs.runs.choices import ExperimentState, RunState, Validity
from pocs.runs.experimenting import comparable, order_of, regression
from pocs.runs.models import Experiment, Run, Target
from pocs.runs.wording.experiments import OUTPUTS, REASONS, TAILS, compared_lines, outputs_text
from tests.factories import (
    Cast,
    make_request_record,
    make_run,
    make_scenario_version,
    make_summary,
    make_target,
)


@pytest.fixture
def actor(cast: Cast) -> Actor:
    return cast.contributor.as_actor()


@pytest.fixture
def pair(cast: Cast) -> tuple[Target, Target]:
    """Two engines that differ in the prefix cache."""
    return (
        make_target(cast.project, name="on", engine_settings={"prefix_cache": True}),
        make_target(cast.project, name="off", engine_settings={"prefix_cache": False}),
    )


def start(actor: Actor, cast: Cast, pair: tuple[Target, Target], **fields: Any) -> Experiment:
    version = fields.pop("version", None) or make_scenario_version(cast.project, "short-request")
    asked = {"repeats": 2, "name": "No prefix cache"} | fields
    return services.experiment_start(
        actor=actor,
        project=cast.project,
        scenario_version=version,
        baseline_target=pair[0],
        candidate_target=pair[1],
        **asked,
    )


def end(run: Run, target: Target, ttft_ms: float, **fields: Any) -> None:
    """Let the run have measured this."""
    for index in range(12):
        make_request_record(run, index, ttft_ms=ttft_ms + index)
    run.state, run.validity = RunState.COMPLETE, fields.pop("validity", Validity.VALID)
    run.validity_reasons = (
        [{"code": "loop_lagged", "figures": {}}] if run.validity == Validity.INVALID else []
    )
    run.summary = make_summary(attempted=12, succeeded=12, load={"open_loop": True})
    settings = {"target": {"name": target.name, "settings": target.engine_settings}}
    run.configuration = settings | fields
    run.save()


def test_the_sides_take_turns() -> None:
    assert [side[0] for side in order_of(3)] == ["b", "c", "c", "b", "b", "c"]


def test_an_experiment_queues_both_sides_in_turns(
    actor: Actor, cast: Cast, pair: tuple[Target, Target]
) -> None:
    found = start(actor, cast, pair)

    turns = list(found.runs.select_related("run"))
    assert found.declared_change == "target.prefix_cache"
    assert [turn.side for turn in turns] == ["baseline", "candidate", "candidate", "baseline"]
    assert [turn.run.target_id for turn in turns] == [pair[0].pk, pair[1].pk, pair[1].pk, pair[0].pk]
    assert [turn.run.number for turn in turns] == sorted(turn.run.number for turn in turns)


def test_more_or_less_than_one_change_is_refused(
    actor: Actor, cast: Cast, pair: tuple[Target, Target]
) -> None:
    several = make_target(cast.project, engine_settings={"prefix_cache": False, "max_batch": 4})
    with pytest.raises(InvalidInput, match="2 settings"):
        start(actor, cast, (pair[0], several))
    with pytest.raises(InvalidInput, match="Both sides are the same"):
        start(actor, cast, (pair[0], pair[0]))
    with pytest.raises(InvalidInput, match="what differs is"):
        start(actor, cast, pair, declared_change="dtype")
    with pytest.raises(InvalidInput):
        start(actor, cast, pair, repeats=1)
    assert not Experiment.objects.exists()


def test_who_may_start_one(cast: Cast, pair: tuple[Target, Target]) -> None:
    with pytest.raises(NotPermitted):
        start(cast.viewer.as_actor(), cast, pair)


def test_it_is_concluded_when_its_runs_have_ended(
    actor: Actor, cast: Cast, pair: tuple[Target, Target]
) -> None:
    found = start(actor, cast, pair)
    turns = list(found.runs.select_related("run"))
    for turn in turns[:-1]:
        end(turn.run, turn.run.target, 100.0 if turn.side == "baseline" else 400.0)
    assert services.experiments_conclude() == []
    end(turns[-1].run, turns[-1].run.target, 100.0)

    assert services.experiments_conclude() == [found.pk]
    assert services.experiments_conclude() == []
    found.refresh_from_db()
    assert found.state == ExperimentState.COMPLETE
    result = found.result
    assert result is not None
    ttft = next(row for row in result["metrics"] if (row["metric"], row["percentile"]) == ("ttft_ms", "p50"))
    assert (ttft["verdict"], result["undeclared"]) == ("worse", [])
    assert result["outputs"]["verdict"] == "unchanged"
    assert len(compared_lines(result)) == len(result["metrics"])
    assert "did not change" in outputs_text(result)


def test_an_undeclared_difference_is_named_and_nothing_is_attributed(
    actor: Actor, cast: Cast, pair: tuple[Target, Target]
) -> None:
    found = start(actor, cast, pair)
    for turn in found.runs.select_related("run"):
        slow = turn.side == "candidate"
        end(turn.run, turn.run.target, 400.0 if slow else 100.0, environment={"cpu_cores": 2 if slow else 8})
    services.experiments_conclude()
    found.refresh_from_db()

    assert found.result is not None
    assert [item["path"] for item in found.result["undeclared"]] == ["configuration.environment.cpu_cores"]
    assert {row["verdict"] for row in found.result["metrics"]} == {"inconclusive"}


def test_without_a_valid_run_of_a_side_there_is_nothing_to_compare(
    actor: Actor, cast: Cast, pair: tuple[Target, Target]
) -> None:
    found = start(actor, cast, pair)
    for turn in found.runs.select_related("run"):
        validity = Validity.INVALID if turn.side == "candidate" else Validity.VALID
        end(turn.run, turn.run.target, 100.0, validity=validity)
    services.experiments_conclude()
    found.refresh_from_db()

    assert found.result == {"problem": "no_valid_runs", "valid_runs": {"baseline": 2, "candidate": 0}}


def test_a_run_that_lacks_a_metric_can_be_compared_and_one_that_was_late_cannot(cast: Cast) -> None:
    lacking, late = (
        make_run(cast.project, validity=Validity.INVALID, validity_reasons=[{"code": code}], records=False)
        for code in ("metric_set_incomplete", "loop_lagged")
    )

    assert (comparable(lacking), comparable(late)) == (True, False)


def test_a_cancelled_experiment_leaves_no_run_waiting(
    actor: Actor, cast: Cast, pair: tuple[Target, Target]
) -> None:
    found = services.experiment_cancel(actor=actor, experiment=start(actor, cast, pair))

    assert found.state == ExperimentState.CANCELLED
    assert {turn.run.state for turn in found.runs.select_related("run")} == {RunState.CANCELLED}
    with pytest.raises(Conflict):
        services.experiment_cancel(actor=actor, experiment=found)


def test_the_way_back_is_a_model_switch(actor: Actor, cast: Cast, pair: tuple[Target, Target]) -> None:
    found = start(actor, cast, pair)
    with pytest.raises(InvalidInput):
        services.experiment_link_rollback(actor=actor, experiment=found, run=make_run(cast.project))
    switch = make_run(
        cast.project, scenario_version=make_scenario_version(cast.project, "switch", kind="model_switch")
    )

    linked = services.experiment_link_rollback(actor=actor, experiment=found, run=switch)

    assert linked.rollback_run == switch


def test_a_baseline_and_its_gate(actor: Actor, cast: Cast, pair: tuple[Target, Target]) -> None:
    version = make_scenario_version(cast.project, "short-request")
    runs = [make_run(cast.project, scenario_version=version, target=pair[0], records=False) for _ in range(3)]
    for run, ttft_ms in zip(runs, (100.0, 101.0, 300.0), strict=True):
        end(run, pair[0], ttft_ms)
    baseline = services.baseline_create(actor=actor, project=cast.project, name="main", runs=runs[:1])

    assert regression(baseline, [runs[1]])["verdict"] in ("pass", "inconclusive")
    failed = regression(baseline, [runs[2]])
    assert failed["verdict"] == "fail"
    assert "ttft_ms" in {row["metric"] for row in failed["metrics"] if row["verdict"] == "fail"}
    with pytest.raises(Conflict, match="another scenario"):
        regression(baseline, [make_run(cast.project)])
    with pytest.raises(Conflict):
        services.baseline_create(actor=actor, project=cast.project, name="main", runs=runs[:1])
    with pytest.raises(InvalidInput):
        services.baseline_create(actor=actor, project=cast.project, name="mixed", runs=[])


def test_every_code_of_a_comparison_has_its_words() -> None:

    folder = Path(str(comparison.__file__)).parent
    source = "".join(path.read_text() for path in sorted(folder.glob("*.py")))
    assert set(re.findall(r'"(compare_\w+)"', source)) == set(REASONS)
    assert set(re.findall(r'"(tail_\w+)"', source)) == set(TAILS)
    assert set(re.findall(r'verdict = "(\w+)"', (folder / "outputs.py").read_text())) == set(OUTPUTS)


def test_pages_and_api(
    actor: Actor, cast: Cast, pair: tuple[Target, Target], page_as: Any, api_as: Any
) -> None:
    version = make_scenario_version(cast.project, "short-request")
    client, base = page_as(cast.contributor), f"/projects/{cast.project.pk}/experiments/"
    typed = {
        "name": "No prefix cache",
        "scenario_version": version.pk,
        "baseline_target": pair[0].pk,
        "candidate_target": pair[0].pk,
        "repeats": 2,
    }
    refused = client.post(f"{base}new/", typed)
    assert (refused.status_code, "Both sides are the same" in refused.content.decode()) == (400, True)
    assert client.post(f"{base}new/", typed | {"candidate_target": pair[1].pk}).status_code == 302
    found = Experiment.objects.get()
    for turn in found.runs.select_related("run"):
        end(turn.run, turn.run.target, 100.0 if turn.side == "baseline" else 400.0)
    services.experiments_conclude()
    page = client.get(f"{base}{found.number}/").content.decode()
    assert "target.prefix_cache" in page
    assert "beyond noise and interval" in page
    assert "No prefix cache" in client.get(base).content.decode()
    assert page_as(cast.outsider).get(f"{base}{found.number}/").status_code == 404
    assert page_as(cast.viewer).post(f"{base}new/", typed).status_code == 403

    api = api_as(cast.contributor)
    assert api.get(f"/api/v1/experiments/{found.pk}/").json()["result"]["outputs"]["verdict"] == "unchanged"
    sides = {side: [t.run_id for t in found.runs.filter(side=side)] for side in ("baseline", "candidate")}
    kept = api.post(
        f"/api/v1/projects/{cast.project.pk}/baselines/",
        {"name": "main", "runs": sides["baseline"]},
        format="json",
    )
    assert kept.status_code == 201
    gate = f"/api/v1/baselines/{kept.json()['id']}/regression/"
    assert api.get(f"{gate}?run={sides['candidate'][0]}").json()["verdict"] == "fail"
    assert api.post(gate, {"runs": sides["candidate"]}, format="json").json()["verdict"] == "fail"
    assert api_as(cast.outsider).get(f"{gate}?run=1").status_code == 404
