"""Live events: numbered, stored with the change, replayed in order, guarded by kind."""

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
