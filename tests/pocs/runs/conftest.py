"""Fixtures of the runs' tests: a model folder, a target in memory, and the house's units in a payload."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from pocs.projects.models import Project, ScenarioVersion
from pocs.runs import execution
from pocs.runs.models import Target
from tests.factories import make_scenario_version, make_target
from tests.pocs.runs.fakes import FakeTarget, poc_run


@pytest.fixture(autouse=True)
def checkpoints_of_this_test(tmp_path: Path, settings: Any) -> None:
    """Numbers of organisations come again after a rollback; signed checkpoints must not."""
    settings.PHASEGATE_AUDIT_CHECKPOINTS = tmp_path / "checkpoints"


@pytest.fixture
def model_folder(tmp_path: Path, settings: Any) -> Path:
    """A folder that looks like a model, inside the allowed root."""
    folder = tmp_path / "models" / "small"
    folder.mkdir(parents=True)
    (folder / "config.json").write_text('{"architectures": ["LlamaForCausalLM"]}')
    settings.PHASEGATE_MODEL_PATH = str(folder)
    return folder


@pytest.fixture
def version(project: Project) -> ScenarioVersion:
    return make_scenario_version(project, "short-request")


@pytest.fixture
def target(project: Project) -> Target:
    return make_target(project, name="engine")


@pytest.fixture
def measured_by(monkeypatch: pytest.MonkeyPatch) -> Callable[[Any], None]:
    """Let runs measure this object instead of a real target."""

    def use(fake: Any) -> None:
        @contextmanager
        def measurable(target: Target, **named: Any) -> Iterator[Any]:
            yield fake

        monkeypatch.setattr(execution, "measurable", measurable)

    return use


@pytest.fixture
def fake_target(measured_by: Callable[[Any], None], monkeypatch: pytest.MonkeyPatch) -> FakeTarget:
    """A target that answers at once; runs measure it and look at it a hundred times a second."""
    fake = FakeTarget()
    measured_by(fake)
    monkeypatch.setattr(execution, "BEAT_S", 0.01)
    return fake


@pytest.fixture
def payload() -> dict[str, Any]:
    """A good `poc-run/1` with the POC six, submitted for short-request@1."""
    return poc_run()
