"""What a page says about audit entries: words of the reader's language, no raw values."""

import pytest
from django.db import transaction
from django.utils.translation import override

from pocs.common import audit
from pocs.common.models import AuditEntry
from pocs.projects.models import ProjectMember
from pocs.projects.ui.entries import readable
from pocs.runs.choices import RunState
from tests.factories import Cast, make_cast, make_run

pytestmark = pytest.mark.django_db


@pytest.fixture
def cast() -> Cast:
    return make_cast()


def _record(cast: Cast, obj: object, **sides: dict) -> list[AuditEntry]:
    with transaction.atomic(), override("en"):
        entry = audit.record(
            actor=cast.lead.as_actor(), verb="x.y", obj=obj, project_id=cast.project.pk, **sides
        )
    return [entry]


def test_the_object_reads_in_the_language_of_the_reader(cast: Cast) -> None:
    entries = _record(cast, ProjectMember.objects.get(user=cast.reviewer))
    with override("zh-hans"):
        [shown] = readable(entries)
    assert shown.object.endswith("· 评审人")
    with override("en"):
        [shown] = readable(entries)
    assert shown.object.endswith("· Reviewer")


def test_a_state_is_shown_in_words_and_its_field_by_name(cast: Cast) -> None:
    run = make_run(cast.project)
    entries = _record(cast, run, before={"state": RunState.MEASURING}, after={"state": RunState.COMPLETE})
    with override("zh-hans"):
        [change] = readable(entries)[0].changes
        assert (change.field, change.before, change.after) == (
            "状态",
            str(RunState.MEASURING.label),
            str(RunState.COMPLETE.label),
        )
    assert change.after != "complete"


def test_yes_and_no_and_definitions_are_no_python(cast: Cast) -> None:
    run = make_run(cast.project)
    after = {"credential": False, "engine_settings": {"dtype": "auto"}, "note": ""}
    entries = _record(cast, run, after=after)
    with override("en"):
        shown = {change.field: change.after for change in readable(entries)[0].changes}
    assert shown == {"credential stored": "no", "engine settings": '{"dtype": "auto"}', "note": None}


def test_an_entry_of_something_that_no_longer_exists_is_still_readable(cast: Cast) -> None:
    [entry] = _record(cast, cast.project, after={"odd_name": 3})
    entry.object_type = "gone.thing"
    [change] = readable([entry])[0].changes
    assert (change.field, change.after) == ("odd name", "3")
