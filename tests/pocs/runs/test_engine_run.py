"""Runs on the real engine with a tiny model: one process serves several runs, and the phases add up."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from inference.phases import SUMMED
from pocs.projects.scenario_spec import Interruption
from pocs.runs import selectors, services
from pocs.runs.choices import RunState, TargetKind
from pocs.runs.execution import run_execute
from pocs.runs.models import Run, Target
from pocs.runs.targets import seat
from tests.factories import Cast, make_scenario_version
from tests.inference.engine.conftest import byte_tokenizer, tiny_config, tiny_model

SETTINGS = {"dtype": "float32", "threads": 1, "kv_blocks": 128}


@pytest.fixture
def tiny_target(cast: Cast, tmp_path: Path, settings: Any) -> Iterator[Target]:
    """A random two-layer Llama over single bytes, in the folder that models are loaded from."""
    folder = tmp_path / "models" / "tiny"
    tiny_model(tiny_config()).save_pretrained(folder)
    byte_tokenizer().save_pretrained(folder)
    settings.PHASEGATE_MODEL_PATH = str(folder)
    yield services.target_create(
        actor=cast.lead.as_actor(),
        project=cast.project,
        name="tiny",
        kind=TargetKind.ENGINE,
        location="tiny",
        engine_settings=SETTINGS,
    )
    seat.close()


def execute(cast: Cast, target: Target, **spec: Any) -> Run:
    run = services.run_start(
        actor=cast.contributor.as_actor(),
        project=cast.project,
        scenario_version=make_scenario_version(cast.project, **spec),
        target=target,
    )
    run_execute(run.pk, worker="w1")
    run.refresh_from_db()
    return run


def engine_processes() -> list[int]:
    found = psutil.Process().children(recursive=True)
    return [child.pid for child in found if "inference.engine.child" in child.cmdline()]


def test_runs_share_one_engine_whose_phases_add_up(cast: Cast, tiny_target: Target) -> None:
    plain = execute(cast, tiny_target, input_tokens=48, output_tokens=12, requests=6)
    first_engine = engine_processes()
    left = execute(
        cast,
        tiny_target,
        input_tokens=48,
        output_tokens=400,  # a tiny model answers in no time: the client must be able to leave before the end
        requests=6,
        interruptions=(Interruption(phase="decode", every=3, after_tokens=2),),
    )

    assert (plain.state, plain.error, left.state, left.error) == (
        RunState.COMPLETE,
        "",
        RunState.COMPLETE,
        "",
    )
    assert engine_processes() == first_engine
    assert len(first_engine) == 1
    assert plain.configuration["model_digest"] == left.configuration["model_digest"]
    assert plain.configuration_digest == left.configuration_digest
    assert plain.summary["memory"]["rss_peak_bytes"] > 0
    assert plain.summary["queue_wait_ms"]["n"] == plain.summary["prefill_ms"]["n"] == 6
    for row in selectors.requests_of(plain):
        assert row.outcome == "success"
        assert row.output_tokens == len(row.token_ids) == 12
        parts = [row.intervals_ms[name] or 0.0 for name in SUMMED if name != "dispatch_delay"]
        assert sum(parts) == pytest.approx(row.e2e_ms, abs=1.0)
        assert min(parts) >= 0.0
    outcomes = [row.outcome for row in selectors.requests_of(left)]
    assert outcomes.count("cancelled") == 2
    assert outcomes.count("success") == 4

    tiny_target.engine_settings = SETTINGS | {"kv_blocks": 64}
    tiny_target.save()
    other = execute(cast, tiny_target, input_tokens=48, output_tokens=4, requests=2)
    assert other.state == RunState.COMPLETE
    assert len(engine_processes()) == 1
    assert engine_processes() != first_engine
    assert other.configuration_digest != plain.configuration_digest


def test_a_folder_whose_weights_are_broken_fails_with_one_sentence(cast: Cast, tiny_target: Target) -> None:
    (Path(tiny_target.location) / "model.safetensors").write_bytes(b"broken")

    run = execute(cast, tiny_target, requests=2)

    assert run.state == RunState.FAILED
    assert run.error
    assert "Traceback" not in run.error
    assert "\n" not in run.error
