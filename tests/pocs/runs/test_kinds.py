"""Kinds of scenarios on the site: choices, forms and registry agree, and runs are conducted by it."""

from collections.abc import Callable
from typing import Any

import pytest

from inference.kinds import KINDS
from inference.kinds.base import Option
from pocs.common.errors import Conflict, InvalidInput
from pocs.common.models import LiveEvent
from pocs.projects import services as project_services
from pocs.projects.choices import ScenarioKind
from pocs.projects.output_checks import Check, QualityItem
from pocs.projects.scenario_kinds import KIND_FORMS
from pocs.runs import services
from pocs.runs.choices import RunState, TargetKind
from pocs.runs.execution import run_execute
from pocs.runs.models import Run, Target
from tests.factories import Cast, make_scenario_version, make_target
from tests.pocs.runs.fakes import FakeTarget


def test_choices_forms_and_registry_agree() -> None:
    assert set(ScenarioKind.values) == set(KIND_FORMS) == set(KINDS)
    for name, kind in KINDS.items():
        form = KIND_FORMS[name]
        assert kind.code in str(ScenarioKind(name).label)
        assert form.needs_engine == ("switch" in kind.needs)
        assert [field.name for field in form.fields] == [option.name for option in kind.options]
        for field, option in zip(form.fields, kind.options, strict=True):
            assert field.default == option.default
            assert field.is_text != isinstance(option, Option)
            if isinstance(option, Option):
                assert (field.low, field.high, field.whole) == (option.low, option.high, option.whole)


def execute(cast: Cast, target: Target, kind: ScenarioKind, **spec: Any) -> Run:
    version = make_scenario_version(cast.project, f"a-{kind.value.replace('_', '-')}", kind=kind, **spec)
    run = services.run_start(
        actor=cast.contributor.as_actor(), project=cast.project, scenario_version=version, target=target
    )
    run_execute(run.pk, worker="w1")
    return Run.objects.get(pk=run.pk)


def test_a_run_of_several_loads_states_its_stages(
    cast: Cast, target: Target, fake_target: FakeTarget
) -> None:
    options = {"cycles": 3, "rest_s": 0}
    run = execute(cast, target, ScenarioKind.RESOURCE_RECLAIM, options=options)

    assert (run.state, run.error) == (RunState.COMPLETE, "")
    found = run.summary["kind"]
    assert (found["kind"], found["code"], found["options"]) == ("resource_reclaim", "S7", options)
    assert [stage["number"] for stage in found["stages"]] == [1, 2, 3]
    measured = run.requests.filter(warmup=False)
    assert sorted(measured.values_list("index", flat=True)) == list(range(12))
    assert run.summary["attempted"] == 12
    assert (run.progress["done"], run.progress["total"]) == (12, 12)
    events = LiveEvent.objects.filter(stream=f"run:{run.pk}", kind="progress").order_by("number")
    assert {(event.data.get("stage"), event.data.get("stages")) for event in events} >= {("cycle", 3)}


def test_checks_and_the_quality_set_are_stated(cast: Cast, target: Target, fake_target: FakeTarget) -> None:
    run = execute(
        cast,
        target,
        ScenarioKind.SHORT_REQUEST,
        checks=(Check(kind="contains", value="answer"), Check(kind="contains", value="refund")),
        quality=(
            QualityItem(prompt="what is this?", answer="answer\ufffd"),
            QualityItem(prompt="and this?", answer="no"),
        ),
    )

    outputs = run.summary["outputs"]
    assert [row["pass_share"] for row in outputs["checks"]] == [1.0, 0.0]
    assert (outputs["n"], outputs["pass_rate"]) == (4, 0.0)
    assert outputs["quality"]["n"] == 2
    assert run.summary["attempted"] == 4, "the quality set is no part of the load"
    asked = run.requests.filter(request_id__contains="quality-")
    assert [row.detail["prompt"] for row in asked.order_by("index")] == ["what is this?", "and this?"]


def test_a_switch_is_not_run_on_an_endpoint(cast: Cast) -> None:
    endpoint = make_target(cast.project, name="cloud", kind=TargetKind.HTTP)
    version = make_scenario_version(cast.project, "switch", kind=ScenarioKind.MODEL_SWITCH)
    actor = cast.contributor.as_actor()
    with pytest.raises(Conflict, match="needs the embedded engine; cloud is an endpoint"):
        services.run_start(actor=actor, project=cast.project, scenario_version=version, target=endpoint)
    with pytest.raises(Conflict, match="Every approved scenario needs the embedded engine"):
        services.matrix_start(actor=actor, project=cast.project, target=endpoint)


def test_a_second_model_from_elsewhere_is_refused(cast: Cast, target: Target, model_folder: Any) -> None:
    version = make_scenario_version(
        cast.project, "switch", kind=ScenarioKind.MODEL_SWITCH, options={"second_model": "../../etc"}
    )
    with pytest.raises(InvalidInput, match="Models are loaded from"):
        services.run_start(
            actor=cast.contributor.as_actor(), project=cast.project, scenario_version=version, target=target
        )


@pytest.mark.parametrize(
    ("kind", "spec", "pointer"),
    [
        ("soak", {"options": {"windows": 1}}, "/spec/options/windows"),
        ("soak", {"options": {"cycles": 3}}, "/spec/options/cycles"),
        ("capacity_search", {}, "/spec/limits"),
        ("throttling", {"options": {"rate_low": 64}}, "/spec/options/rate_low"),
        ("production_replay", {"options": {"classes": "chat many"}}, "/spec/options/classes"),
        ("short_request", {"checks": [{"kind": "pattern", "value": "(("}]}, "/spec/checks/0/value"),
        (
            "short_request",
            {"checks": [{"kind": "json_schema", "value": '{"type": 3}'}]},
            "/spec/checks/0/value",
        ),
        ("short_request", {"quality": [{"prompt": "x"}]}, "/spec/quality/0/answer"),
    ],
)
def test_what_a_kind_cannot_do_is_refused_with_its_place(
    cast: Cast, kind: str, spec: dict[str, Any], pointer: str
) -> None:
    lengths = {"input_tokens": 8, "output_tokens": 8, "concurrency": 1, "requests": 4}
    with pytest.raises(InvalidInput) as refused:
        project_services.scenario_create(
            actor=cast.lead.as_actor(),
            project=cast.project,
            slug="x",
            name="X",
            kind=kind,
            spec=lengths | spec,
        )
    assert [error.pointer for error in refused.value.errors] == [pointer]


def test_empty_later_fields_leave_a_digest_as_it_was(cast: Cast) -> None:
    version = make_scenario_version(cast.project, "plain")
    assert not {"options", "checks", "quality", "quality_match"} & version.spec.keys()


Browser = Callable[..., Any]


def test_the_form_asks_for_the_fields_of_its_kind(cast: Cast, page_as: Browser) -> None:
    browser = page_as(cast.lead)
    path = f"/projects/{cast.project.pk}/scenarios/new/"
    assert b'name="duration_s"' not in browser.get(path).content
    page = browser.get(path + "?kind=soak").content.decode()
    assert 'name="duration_s"' in page
    assert "Proves that hours of even load change nothing" in page
