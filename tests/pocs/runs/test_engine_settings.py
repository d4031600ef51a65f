"""The engine's switches on a target: every one can be set, and a wrong value is named with its field."""

from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from inference.engine.options import EngineOptions
from inference.targets.base import TargetInfo
from inference.targets.embedded import EngineTarget
from pocs.common.canonical import digest
from pocs.common.errors import FieldError, InvalidInput
from pocs.projects.models import Project
from pocs.runs.engine_settings import CHOICES, DEFAULTS, RANGES, checked_settings
from pocs.runs.execution import configuration_of
from tests.factories import make_run, make_target

EVERY_SWITCH = {
    "device": "cuda:1",
    "dtype": "bfloat16",
    "kernels": "torch",
    "max_batch": 8,
    "kv_blocks": 64,
    "block_tokens": 16,
    "prefill_chunk_tokens": 128,
    "threads": 1,
    "prefix_cache": False,
    "max_waiting": 10,
    "speculate": "ngram",
    "speculate_tokens": 3,
    "speculate_max_batch": 4,
    "cuda_graphs": "lazy",
    "step_limit_s": 60.0,
}


def find_model(location: str) -> str:
    if location == "absent":
        text = "There is no model."
        raise InvalidInput(text, [FieldError("/location", "absent", text)])
    return f"/models/{location}"


def refusal(given: dict[str, Any]) -> FieldError:
    with pytest.raises(InvalidInput) as caught:
        checked_settings(given, find_model)
    (error,) = caught.value.errors
    return error


def test_every_switch_of_the_engine_can_be_set_and_is_taken_by_the_engine() -> None:
    assert (
        {option.name for option in fields(EngineOptions)} - {"path"} == DEFAULTS.keys() == EVERY_SWITCH.keys()
    )

    checked = checked_settings(EVERY_SWITCH, find_model)

    assert checked == EVERY_SWITCH
    assert EngineTarget("model", **checked).options.speculate_max_batch == 4


def test_what_is_left_empty_stays_with_the_engine() -> None:
    assert checked_settings({"dtype": "", "threads": None, "speculate": "none"}, find_model) == {}


def test_a_draft_model_is_found_below_the_model_folder() -> None:
    assert checked_settings({"speculate": "draft:small"}, find_model) == {"speculate": "draft:/models/small"}


@pytest.mark.parametrize(
    ("given", "name", "code"),
    [
        ({"dtype": "int3"}, "dtype", "choice"),
        ({"kernels": "rust"}, "kernels", "choice"),
        ({"cuda_graphs": "on"}, "cuda_graphs", "choice"),
        ({"device": "tpu"}, "device", "choice"),
        ({"device": 1}, "device", "choice"),
        ({"max_batch": 0}, "max_batch", "range"),
        ({"max_batch": True}, "max_batch", "range"),
        ({"threads": 100_000}, "threads", "range"),
        ({"block_tokens": "32"}, "block_tokens", "range"),
        ({"step_limit_s": 0}, "step_limit_s", "range"),
        ({"prefix_cache": "yes"}, "prefix_cache", "type"),
        ({"speculate": "magic"}, "speculate", "choice"),
        ({"speculate": "draft:"}, "speculate", "choice"),
        ({"speculate": "draft:absent"}, "speculate", "draft_model"),
        ({"speculate_tokens": 4}, "speculate_tokens", "no_effect"),
        ({"dtype": "int8", "device": "cuda"}, "dtype", "device"),
        ({"turbo": True}, "turbo", "unknown"),
    ],
)
def test_a_wrong_value_is_named_with_its_field(given: dict[str, Any], name: str, code: str) -> None:
    error = refusal(given)

    assert (error.pointer, error.code) == (f"/engine_settings/{name}", code)
    if code not in ("unknown", "draft_model"):
        assert str(given[name]) in str(error.detail).replace(",", "")


def test_the_draft_models_refusal_carries_the_reason() -> None:
    assert "There is no model." in str(refusal({"speculate": "draft:absent"}).detail)


def test_choices_and_ranges_are_what_the_engine_takes(tmp_path: Path) -> None:
    for name, values in CHOICES.items():
        for value in values:
            EngineOptions(path=str(tmp_path), **{name: value})
    for name, (least, _most) in RANGES.items():
        EngineOptions(path=str(tmp_path), **{name: least})


@pytest.mark.django_db
@pytest.mark.parametrize("name", sorted(EVERY_SWITCH))
def test_every_switch_is_part_of_the_digest_of_a_runs_configuration(project: Project, name: str) -> None:
    run = make_run(project, target=make_target(project), records=False)
    info = TargetInfo("engine", "model", {"model_digest": "d"}, 100)
    plain = digest(configuration_of(run, info))
    assert run.target is not None
    run.target.engine_settings = {name: EVERY_SWITCH[name]}

    assert digest(configuration_of(run, info)) != plain
