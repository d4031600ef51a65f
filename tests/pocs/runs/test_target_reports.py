"""Looks at endpoints: stored, referred to by runs, and never with the credential in them."""

import asyncio
import json
import logging
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from pocs.common.errors import Conflict, InvalidInput, NotFound, NotPermitted
from pocs.common.models import AuditEntry
from pocs.projects.models import ScenarioVersion
from pocs.runs import services
from pocs.runs.choices import ReportKind, ReportState, TargetKind
from pocs.runs.endpoint_wording import CHECK_TEXTS, CHECK_TITLES, check_headline, check_lines, run_check_text
from pocs.runs.models import Run, Target, TargetReport
from pocs.runs.target_reports import check_state
from tests.factories import Cast
from tests.inference.targets.fake_server import FakeServer, Script, answer, event

SECRET = "sk-very-secret-key-0123456789"
MODELS = {"data": [{"id": "m", "owned_by": "vllm", "max_model_len": 128}]}


class Served:
    """A fake server in a thread of its own, so that code which runs its own loop can ask it."""

    def __init__(self, choose: Any) -> None:
        self.loop = asyncio.new_event_loop()
        self.server = FakeServer(choose, models=MODELS)
        self.thread = threading.Thread(target=self.loop.run_forever, daemon=True)

    def __enter__(self) -> FakeServer:
        self.thread.start()
        return asyncio.run_coroutine_threadsafe(self.server.__aenter__(), self.loop).result(5)

    def __exit__(self, *_: object) -> None:
        asyncio.run_coroutine_threadsafe(self.server.__aexit__(), self.loop).result(5)
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join(5)
        self.loop.close()


def speak(body: dict[str, Any], n: int) -> Script:
    if body["model"] != "m":
        return Script([(0, b'{"error": {"message": "no such model"}}')], 404, "application/json")
    return Script(answer(["one ", "two ", "three"], first_ms=2, gap_ms=1))


@pytest.fixture
def endpoint() -> Iterator[FakeServer]:
    with Served(speak) as server:
        yield server


def add(cast: Cast, url: str, **fields: Any) -> Target:
    given = {"name": "T", "kind": TargetKind.HTTP, "location": url, "model": "m", **fields}
    return services.target_create(actor=cast.lead.as_actor(), project=cast.project, **given)


def test_a_check_is_stored_with_date_and_person(cast: Cast, endpoint: FakeServer) -> None:
    target = add(cast, endpoint.url)
    found = services.target_check(actor=cast.lead.as_actor(), target=target)
    assert found["ok"], found["text"]
    report = TargetReport.objects.get(pk=found["report"])
    assert (report.kind, report.state, report.requested_by) == (ReportKind.CHECK, ReportState.DONE, cast.lead)
    lines = {line.code: line for line in check_lines(report.report)}
    assert set(lines) == set(CHECK_TITLES)
    assert lines["answers"].verdict == lines["streams"].verdict == lines["usage"].verdict == "good"
    assert lines["tls"].verdict == "lacks"
    assert lines["metrics"].verdict == "lacks"  # every page of this server is its model list
    assert "JSON" in lines["metrics"].text
    assert "vLLM" in lines["dialect"].text
    assert report.report["dialect"]["found_from"]


@pytest.mark.parametrize(
    ("script", "code", "word"),
    [
        (Script([(0, b'{"error": "bad key"}')], 401, "application/json"), "auth", "bad key"),
        (Script([(0, b"<html>hello</html>")], 200, "text/html"), "answers", "HTML"),
        (Script([(0, b"")], 302, "text/html", {"Location": "https://x/"}), "answers", "https://x/"),
        (Script([(0, event({"error": {"message": "out of memory"}}))]), "answers", "out of memory"),
    ],
)
def test_a_check_says_what_is_wrong(cast: Cast, script: Script, code: str, word: str) -> None:
    with Served(lambda body, n: script) as server:
        found = services.target_check(actor=cast.lead.as_actor(), target=add(cast, server.url))
    assert not found["ok"]
    lines = {line.code: line for line in check_lines(TargetReport.objects.get().report)}
    assert lines[code].verdict == "bad"
    assert word in lines[code].text
    assert word in found["text"]


def test_an_endpoint_that_is_not_there(cast: Cast) -> None:
    found = services.target_check(actor=cast.lead.as_actor(), target=add(cast, "http://127.0.0.1:9/v1"))
    assert not found["ok"]
    assert "cannot be reached" in found["text"]


def test_an_answer_in_one_piece_limits_what_can_be_measured(cast: Cast) -> None:
    whole = {"choices": [{"message": {"content": "one two"}, "finish_reason": "stop"}]}
    script = Script([(1, json.dumps(whole).encode())], content_type="application/json")
    with Served(lambda body, n: script) as server:
        found = services.target_check(actor=cast.lead.as_actor(), target=add(cast, server.url))
    assert found["ok"]
    verdicts = {line.code: line.verdict for line in check_lines(TargetReport.objects.get().report)}
    assert verdicts["streams"] == verdicts["first_token"] == verdicts["usage"] == "lacks"


def test_a_run_says_what_was_known_of_its_endpoint(
    cast: Cast, endpoint: FakeServer, version: ScenarioVersion
) -> None:
    target, actor = add(cast, endpoint.url), cast.lead.as_actor()
    start = {"actor": actor, "project": cast.project, "scenario_version": version, "target": target}
    unchecked = services.run_start(**start)
    assert "not been checked" in run_check_text(unchecked.target_check)
    services.target_check(actor=actor, target=target)
    checked = services.run_start(**start)
    assert checked.target_check["state"] == "passed"
    assert run_check_text(checked.target_check) == ""
    changed = services.target_update(
        actor=actor, target=target, version=1, name="T", location=endpoint.url, model="m2"
    )
    assert (check_state(changed) or {})["state"] == "changed"
    TargetReport.objects.update(ok=False, target_version=changed.version)
    assert (check_state(changed) or {})["state"] == "failed"
    assert Run.objects.count() == 2


def test_stream_habits_are_looked_at_by_a_task(cast: Cast, endpoint: FakeServer) -> None:
    target, actor = add(cast, endpoint.url), cast.lead.as_actor()
    report = services.conformance_start(actor=actor, target=target)
    with pytest.raises(Conflict):
        services.conformance_start(actor=actor, target=target)
    services.conformance_execute(report.pk)
    services.conformance_execute(report.pk)  # a copy of the task
    report.refresh_from_db()
    assert (report.state, report.error) == (ReportState.DONE, "")
    assert (report.steps_done, report.steps) in ((8, 8), (0, 0))
    habits = {habit["code"]: habit for habit in report.report["habits"]}
    assert habits["unknown_model"]["effect"] == "not_seen"
    assert habits["answers"]["effect"] == "harmless"
    again = services.conformance_start(actor=actor, target=target)
    assert again.pk != report.pk


def test_habits_of_an_endpoint_that_is_gone_fail_with_a_sentence(cast: Cast) -> None:
    report = services.conformance_start(actor=cast.lead.as_actor(), target=add(cast, "http://127.0.0.1:9/v1"))
    services.conformance_execute(report.pk)
    report.refresh_from_db()
    assert report.state == ReportState.FAILED
    assert "cannot reach" in report.error


def test_the_engine_has_no_stream_habits_to_look_at(cast: Cast, target: Target) -> None:
    with pytest.raises(InvalidInput):
        services.conformance_start(actor=cast.lead.as_actor(), target=target)
    assert check_state(target) is None


def test_who_may_look(cast: Cast) -> None:
    target = add(cast, "http://127.0.0.1:9/v1")
    for user, error in ((cast.viewer, NotPermitted), (cast.outsider, NotFound)):
        with pytest.raises(error):
            services.conformance_start(actor=user.as_actor(), target=target)
        with pytest.raises(error):
            services.target_check(actor=user.as_actor(), target=target)


def test_a_credential_is_in_no_row_log_report_or_audit_entry(
    cast: Cast, caplog: pytest.LogCaptureFixture
) -> None:
    """The server throws it back in its error, as careless ones do."""

    def echo(body: dict[str, Any], n: int) -> Script:
        return Script([(0, json.dumps({"error": f"wrong key {SECRET}"}).encode())], 401, "application/json")

    caplog.set_level(logging.DEBUG)
    with Served(echo) as server:
        target = add(cast, server.url, credential=SECRET)
        found = services.target_check(actor=cast.lead.as_actor(), target=target)
        report = services.conformance_start(actor=cast.lead.as_actor(), target=target)
        services.conformance_execute(report.pk)
    stored = bytes(Target.objects.get(pk=target.pk).credential)
    assert SECRET.encode() not in stored
    kept = json.dumps(list(TargetReport.objects.values("report", "error")), default=str)
    audited = json.dumps([str(vars(entry)) for entry in AuditEntry.objects.all()])
    for text in (kept, audited, caplog.text, json.dumps(found)):
        assert SECRET not in text


def test_settings_of_an_endpoint_are_checked(cast: Cast) -> None:
    settings = {"endpoint": "completions", "streamed": True, "metrics_url": "http://gpu:9/metrics"}
    target = add(cast, "http://gpu/v1", endpoint_settings=settings)
    assert target.endpoint_settings == {"endpoint": "completions", "metrics_url": "http://gpu:9/metrics"}
    for wrong in ({"endpoint": "x"}, {"streamed": 1}, {"metrics_url": "gpu"}, {"colour": "red"}):
        with pytest.raises(InvalidInput) as caught:
            add(cast, "http://gpu/v1", name="U", endpoint_settings=wrong)
        assert caught.value.errors[0].pointer == f"/endpoint_settings/{next(iter(wrong))}"


def test_every_verdict_has_its_sentence() -> None:
    assert {code for code, _ in CHECK_TEXTS} == set(CHECK_TITLES)
    assert check_headline({"items": []})
