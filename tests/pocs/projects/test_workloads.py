"""Request sets and traces: kept redacted under a digest, looked at before use, and what rests on them."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.urls import reverse

from pocs.common.errors import Conflict, InvalidInput
from pocs.people.models import User
from pocs.projects import services
from pocs.projects.models import ScenarioVersion, WorkloadFile
from pocs.projects.scenario_spec import ScenarioSpec
from tests.factories import Cast, make_run, make_scenario_version, make_spec

PageAs = Callable[[User], Client]
BURST = b"Timestamp,Request tokens,Response tokens\n5,40,3\n6,0,0\n7,50,2\n"
TALKS = json.dumps({"turns": ["call 13812345678", "b"]}).encode()
SPEC = {
    "source": "generated", "load_shape": "closed", "input_tokens": "64", "output_tokens": "16",
    "concurrency": "1", "requests": "8", "warmup_requests": "1", "distinct_prompts": "8",
    "shared_prefix_tokens": "0", "language": "en", "temperature": "0", "seed": "0", "timeout_s": "60",
}  # fmt: skip
NEW = SPEC | {"slug": "replay", "name": "Replay", "kind": "short_request"}


def upload(cast: Cast, raw: bytes = BURST, name: str = "trace.csv", **options: Any) -> WorkloadFile:
    return services.workload_upload(
        actor=cast.contributor.as_actor(), project=cast.project, name=name, raw=raw, **options
    )


def confirmed(cast: Cast, raw: bytes = BURST) -> WorkloadFile:
    return services.workload_confirm(actor=cast.contributor.as_actor(), workload=upload(cast, raw))


def create(cast: Cast, **fields: Any) -> ScenarioVersion:
    spec = make_spec().as_json() | fields
    return services.scenario_create(
        actor=cast.contributor.as_actor(),
        project=cast.project,
        slug="s",
        name="S",
        kind="short_request",
        spec=spec,
    )


def codes(error: InvalidInput) -> dict[str, str]:
    return {wrong.pointer: wrong.code for wrong in error.errors}


def test_a_file_is_kept_redacted_with_its_report_and_once(cast: Cast) -> None:
    kept = upload(cast, TALKS, "talks.jsonl")
    assert "13812345678" not in services.workload_text(kept)
    assert kept.report["redactions"] == {"phone": 1}
    assert kept.report["conversations"]["n"] == 1
    assert upload(cast, TALKS, "again.jsonl").pk == kept.pk


@pytest.mark.parametrize(
    ("raw", "options", "pointer", "said"),
    [
        (
            b"Timestamp,Request tokens\n1,2\n",
            {},
            "/file",
            "trace.csv, line 1: column 'Response tokens' is missing (there are Timestamp, Request tokens)",
        ),
        (BURST + b"3,5,5\n", {}, "/file", "trace.csv, line 5, column Timestamp: 3 is earlier than in line 4"),
        (b"", {}, "/file", "trace.csv: the file is empty"),
        (BURST, {"format_name": "word"}, "/format", "There is no format “word”."),
    ],
)
def test_what_cannot_be_read_is_refused_in_one_sentence(
    cast: Cast, raw: bytes, options: dict[str, Any], pointer: str, said: str
) -> None:
    with pytest.raises(InvalidInput) as caught:
        upload(cast, raw, **options)
    assert [(error.pointer, str(error.detail)) for error in caught.value.errors] == [(pointer, said)]
    assert not WorkloadFile.objects.exists()


def test_large_files_and_other_projects_are_refused(cast: Cast, settings: Any) -> None:
    settings.PHASEGATE_ATTACHMENT_MAX_BYTES = 10
    with pytest.raises(InvalidInput):
        upload(cast)


def test_a_scenario_rests_only_on_a_file_that_was_looked_at(cast: Cast) -> None:
    kept = upload(cast)
    for digest, code in ((kept.digest, "unconfirmed"), ("0" * 64, "unknown")):
        with pytest.raises(InvalidInput) as caught:
            create(cast, workload=digest)
        assert codes(caught.value) == {"/spec/workload": code}
    services.workload_confirm(actor=cast.contributor.as_actor(), workload=kept)
    version = create(cast, workload=kept.digest, arrival="trace:2")
    assert version.spec["workload"] == kept.digest
    with pytest.raises(Conflict):
        services.workload_discard(actor=cast.contributor.as_actor(), workload=kept)


def test_a_replay_needs_times(cast: Cast) -> None:
    kept = confirmed(cast, TALKS)
    with pytest.raises(InvalidInput) as caught:
        create(cast, workload=kept.digest, arrival="trace")
    assert codes(caught.value) == {"/spec/arrival": "contradicts"}


def test_a_file_that_nothing_uses_can_be_discarded(cast: Cast) -> None:
    services.workload_discard(actor=cast.contributor.as_actor(), workload=confirmed(cast))
    assert not WorkloadFile.objects.exists()


def test_a_clone_brings_the_files_its_scenarios_rest_on(cast: Cast) -> None:
    kept = confirmed(cast)
    create(cast, workload=kept.digest)
    clone = services.project_clone(actor=cast.lead.as_actor(), source=cast.project, name="Clone")
    assert [file.digest for file in clone.workloads.all()] == [kept.digest]


def test_the_measured_spec_has_the_content(cast: Cast) -> None:
    from inference.workload.scenario import plan_for
    from pocs.runs.services.scenario_kinds import spec_of

    kept = confirmed(cast)
    spec = {"workload": kept.digest, "arrival": "trace", "requests": 2, "concurrency": 1}
    run = make_run(cast.project, scenario_version=make_scenario_version(cast.project, "replay", **spec))
    requests, plan = plan_for(spec_of(run))
    assert [request.arrival_s for request in requests] == [0, 2]
    assert plan.workload["format"] == "burstgpt"
    assert plan.workload["skipped"] == 1


@pytest.mark.parametrize(
    ("fields", "wrong"),
    [
        ({"arrival": "sometimes"}, {"/arrival": "invalid"}),
        ({"arrival": "gamma:2"}, {"/rate": "required"}),
        ({"arrival": "burst:2/1", "rate": 3}, {"/rate": "contradicts"}),
        ({"arrival": "trace"}, {"/arrival": "contradicts"}),
        ({"input_lengths": "long"}, {"/input_lengths": "invalid"}),
        ({"output_lengths": "trace"}, {"/output_lengths": "invalid"}),
        ({"workload": "a", "prompts": ["x"]}, {"/workload": "contradicts"}),
        ({"workload": "a", "turns": 2}, {"/turns": "contradicts"}),
        ({"prefix_share": 2}, {"/prefix_share": "range"}),
        ({"too_long": "maybe"}, {"/too_long": "unknown"}),
    ],
)
def test_load_fields_that_are_wrong_are_named(fields: dict[str, Any], wrong: dict[str, str]) -> None:
    with pytest.raises(InvalidInput) as caught:
        ScenarioSpec.from_json(make_spec().as_json() | fields)
    assert codes(caught.value) == wrong


def test_fields_left_as_they_are_leave_no_trace_in_a_spec() -> None:
    stored = make_spec().as_json()
    assert not {"arrival", "turns", "prefix_share", "workload", "too_long"} & set(stored)
    spread = ScenarioSpec.from_json(stored | {"turns": 3, "arrival": "ramp:1-5/10", "prefix_share": 0.0})
    assert {name: spread.as_json()[name] for name in ("turns", "arrival", "prefix_share")} == {
        "turns": 3, "arrival": "ramp:1-5/10", "prefix_share": 0.0,
    }  # fmt: skip
    assert ScenarioSpec.from_json(spread.as_json()) == spread


def page(cast: Cast, name: str, *args: Any) -> str:
    return reverse(f"projects:{name}", args=[cast.project.pk, *args])


@pytest.mark.parametrize(
    ("typed", "arrival", "rate"),
    [
        ({"load_shape": "closed", "rate": "9"}, None, None),
        ({"load_shape": "poisson", "rate": "9"}, None, 9.0),
        ({"load_shape": "constant", "rate": "9"}, "constant", 9.0),
        ({"load_shape": "gamma", "rate": "9", "gamma_shape": "0.5"}, "gamma:0.5", 9.0),
        ({"load_shape": "burst", "burst_size": "4", "burst_period_s": "2.5"}, "burst:4/2.5", None),
        (
            {"load_shape": "ramp", "ramp_from": "1", "ramp_to": "5", "ramp_seconds": "60"},
            "ramp:1-5/60,poisson",
            None,
        ),
        ({"load_shape": "steps", "rate_steps": "2x30，8 × 30", "spacing": "even"}, "steps:2x30,8x30", None),
    ],
)
def test_the_form_makes_a_shape_and_shows_it_again(
    cast: Cast, page_as: PageAs, typed: dict[str, str], arrival: str | None, rate: float | None
) -> None:
    browser = page_as(cast.contributor)
    answer = browser.post(page(cast, "scenario_create"), NEW | typed)
    assert answer.status_code == 302, answer.content.decode()
    spec = ScenarioVersion.objects.get().spec
    assert (spec.get("arrival"), spec["rate"]) == (arrival, rate)
    assert browser.get(answer["Location"]).status_code == 200
    form = browser.get(page(cast, "scenario_edit", "replay")).context["form"]
    for name, value in typed.items():
        if name not in ("rate", "rate_steps"):
            assert str(form.initial[name]) == value


def test_what_a_shape_lacks_is_said_at_its_fields(cast: Cast, page_as: PageAs) -> None:
    answer = page_as(cast.contributor).post(
        page(cast, "scenario_create"), NEW | {"load_shape": "ramp", "ramp_to": "7", "source": "typed"}
    )
    assert answer.status_code == 400
    assert set(answer.context["form"].errors) == {"ramp_from", "ramp_seconds", "prompts"}
    assert 'name="ramp_to" value="7"' in answer.content.decode()


def test_an_upload_in_the_scenario_form_is_shown_then_used_and_nothing_typed_is_lost(
    cast: Cast, page_as: PageAs
) -> None:
    browser = page_as(cast.contributor)
    typed = NEW | {"source": "file", "load_shape": "trace", "speed": "4", "tenants": "a, b", "requests": "2"}
    shown = browser.post(
        page(cast, "scenario_create"), typed | {"workload_file": SimpleUploadedFile("trace.csv", BURST)}
    )
    content = shown.content.decode()
    kept = WorkloadFile.objects.get()
    assert shown.status_code == 200
    assert "no input and no output tokens" in content
    assert 'value="a, b"' in content
    assert f'<option value="{kept.digest}" selected>' in content
    assert not ScenarioVersion.objects.exists()
    saved = browser.post(
        page(cast, "scenario_create"), typed | {"workload": kept.digest, "seen": kept.digest}
    )
    assert saved.status_code == 302
    spec = ScenarioVersion.objects.get().spec
    assert (spec["workload"], spec["arrival"]) == (kept.digest, "trace:4")
    kept.refresh_from_db()
    assert kept.confirmed_at is not None
    assert kept.name in browser.get(saved["Location"]).content.decode()


def test_a_faulty_upload_keeps_the_form(cast: Cast, page_as: PageAs) -> None:
    file = SimpleUploadedFile("t.csv", b"Timestamp,Request tokens\n1,2\n")
    answer = page_as(cast.contributor).post(
        page(cast, "scenario_create"), NEW | {"source": "file", "workload_file": file}
    )
    assert answer.status_code == 400
    assert "workload_file" in answer.context["form"].errors
    assert 'value="Replay"' in answer.content.decode()


def test_pages_of_files_by_role(cast: Cast, page_as: PageAs) -> None:
    kept = upload(cast)
    targets = [page(cast, "workloads"), page(cast, "workload", kept.pk)]
    for target in targets:
        assert Client().get(target).status_code == 302
        for reader in (cast.contributor, cast.viewer):
            assert page_as(reader).get(target).status_code == 200
        assert page_as(cast.outsider).get(target).status_code == 404
    file = SimpleUploadedFile("q.txt", "一句话\n".encode("gb18030"))
    assert page_as(cast.viewer).post(targets[0], {"workload_file": file}).status_code == 403
    file.seek(0)
    answer = page_as(cast.contributor).post(targets[0], {"workload_file": file})
    assert answer.status_code == 302
    assert "一句话" in page_as(cast.viewer).get(answer["Location"]).content.decode()
    state = page(cast, "workload_state", kept.pk)
    assert page_as(cast.viewer).post(state, {"to": "confirm"}).status_code == 403
    assert page_as(cast.contributor).post(state, {"to": "confirm"}).status_code == 302
    assert page_as(cast.contributor).post(state, {"to": "discard"}).status_code == 302
    assert not WorkloadFile.objects.filter(pk=kept.pk).exists()


def test_files_over_the_api(cast: Cast, page_as: PageAs) -> None:
    browser = page_as(cast.contributor)
    root = reverse("api-workloads", args=[cast.project.pk])
    made = browser.post(root, {"file": SimpleUploadedFile("trace.csv", BURST)})
    assert made.status_code == 201, made.content
    body = made.json()
    assert (body["report"]["n"], body["confirmed_at"]) == (2, None)
    one = reverse("api-workload", args=[cast.project.pk, body["id"]])
    assert browser.get(one).json()["digest"] == body["digest"]
    assert browser.post(f"{one}confirm/").json()["confirmed_at"]
    assert browser.get(root).json()["results"][0]["id"] == body["id"]
    refused = browser.post(
        root, {"file": SimpleUploadedFile("trace.csv", b"Timestamp,Request tokens\n1,2\n")}
    )
    assert refused.status_code == 400
    assert refused.json()["errors"][0]["pointer"] == "/file"
    assert page_as(cast.outsider).get(one).status_code == 404
    assert page_as(cast.viewer).delete(one).status_code == 403
    assert browser.delete(one).status_code == 204


def test_columns_over_the_api_are_an_object_as_json(cast: Cast, page_as: PageAs) -> None:
    client, root = page_as(cast.contributor), reverse("api-workloads", args=[cast.project.pk])

    def answer(columns: str) -> Any:
        file = SimpleUploadedFile("questions.csv", "编号,问句\n1,你好\n".encode())
        return client.post(root, {"file": file, "columns": columns})

    for wrong in ("[1]", "zz", "5", "[" * 100_000, '{"prompt": {}}'):
        refused = answer(wrong)
        assert refused.status_code == 400
        assert refused.json()["errors"][0]["pointer"].startswith("/columns")
    kept = answer(json.dumps({"prompt": "问句"}))
    assert (kept.status_code, kept.json()["report"]["n"]) == (201, 1)
