"""Live events: numbered, stored with the change, replayed in order, guarded by kind."""

import pytest
from pytest_django import DjangoCaptureOnCommitCallbacks

from pocs.common import events
from pocs.projects import services
from tests.factories import Cast, complete_plan


def test_events_are_numbered_per_stream_and_replayed_after_a_number(db: None) -> None:
    for value in range(3):
        events.emit("run:1", "sample", {"value": value})
    events.emit("run:2", "sample", {"value": 9})
    assert [event["number"] for event in events.events_after("run:1", 1)] == [2, 3]
    assert events.last_number("run:1") == 3
    assert events.last_number("run:3") == 0


def test_a_number_taken_by_another_writer_is_passed_over(db: None, monkeypatch: pytest.MonkeyPatch) -> None:
    events.emit("run:1", "sample", {"value": 0})
    seen = iter([0, 0, 1])
    monkeypatch.setattr(events, "last_number", lambda stream: next(seen))
    assert events.emit("run:1", "sample", {"value": 1}).number == 2


def test_events_are_published_after_the_commit(
    db: None,
    monkeypatch: pytest.MonkeyPatch,
    django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks,
) -> None:
    published: list[tuple[str, int]] = []
    monkeypatch.setattr(
        events, "_publisher", lambda stream, event: published.append((stream, event["number"]))
    )
    with django_capture_on_commit_callbacks(execute=True):
        events.emit("run:1", "state", {})
        assert published == []
    assert published == [("run:1", 1)]


def test_a_step_of_a_project_is_an_event_of_its_stream(cast: Cast) -> None:
    complete_plan(cast.project, cast.team)
    services.project_advance(actor=cast.lead.as_actor(), project=cast.project, to="planned")
    (event,) = events.events_after(f"project:{cast.project.pk}", 0)
    assert event["kind"] == "state"
    assert event["data"]["state"] == "planned"


def test_only_those_who_see_the_project_follow_it(cast: Cast) -> None:
    stream = f"project:{cast.project.pk}"
    assert events.may_follow(cast.viewer.pk, stream)
    assert events.may_follow(cast.auditor.pk, stream)
    for stranger in (cast.bystander, cast.outsider):
        assert not events.may_follow(stranger.pk, stream)
    for wrong in ("project:", "project:x", "other:1", ""):
        assert not events.may_follow(cast.lead.pk, wrong)
