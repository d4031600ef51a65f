"""Raw records of a run: in segments, found from rows, brought back after a crash, reported when damaged."""

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from pocs.projects.models import ScenarioVersion
from pocs.runs import selectors, services
from pocs.runs.choices import RunState
from pocs.runs.execution import run_execute
from pocs.runs.manifest import manifest_check, segments_check
from pocs.runs.models import RequestRecord, Run, Target
from pocs.runs.raw_reads import DamagedRecords, records_root
from pocs.runs.recovery import CUT_OFF, RECOVERED
from tests.factories import Cast
from tests.pocs.runs.fakes import FakeTarget


@pytest.fixture(autouse=True)
def media_of_this_test(tmp_path: Any, settings: Any) -> None:
    settings.MEDIA_ROOT = tmp_path / "media"


@pytest.fixture
def ended(cast: Cast, version: ScenarioVersion, target: Target, fake_target: FakeTarget) -> Run:
    run = services.run_start(
        actor=cast.contributor.as_actor(), project=cast.project, scenario_version=version, target=target
    )
    run_execute(run.pk, worker="w1")
    return Run.objects.get(pk=run.pk)


def test_reads_lie_in_the_segment_and_come_back_through_the_row(ended: Run) -> None:
    rows = list(selectors.requests_of(ended))

    assert all(row.segment == 1 for row in rows)
    assert RequestRecord.objects.filter(run=ended).values_list("reads", flat=True).distinct()[0] == []
    for row in rows:
        assert len(row.reads) == row.output_tokens
        assert row.reads[0][0] == row.stamps["first_ns"]
    assert [facts["items"] for facts in ended.manifest["segments"]] == [2 + len(rows) + 1]
    assert manifest_check(ended)


def test_a_changed_segment_is_named_and_its_requests_say_so(ended: Run) -> None:
    path = records_root() / ended.segments.get().name
    content = bytearray(path.read_bytes())
    content[-20] ^= 0xFF
    path.write_bytes(content)

    assert not manifest_check(ended)
    [check] = segments_check(ended)
    assert (check.state, bool(check.damage)) == ("changed", True)
    last = ended.requests.order_by("-segment_item").first()
    with pytest.raises(DamagedRecords, match="segment 1"):
        last.reads  # noqa: B018
    path.unlink()
    assert [check.state for check in segments_check(ended)] == ["missing"]


def test_a_dead_workers_requests_are_brought_back_from_its_segments(ended: Run) -> None:
    before = {row.index: (row.ttft_ms, row.reads) for row in selectors.requests_of(ended)}
    ended.requests.filter(index__gte=1).delete()  # rows that were not stored yet when it died
    lapsed = timezone.now() - timedelta(minutes=5)
    Run.objects.filter(pk=ended.pk).update(state=RunState.MEASURING, lease_expires_at=lapsed, manifest=None)

    assert services.reap_expired_leases() == [ended.pk]

    run = Run.objects.get(pk=ended.pk)
    assert (run.state, "5 requests" in run.error) == (RunState.INTERRUPTED, True)
    assert {row.index: (row.ttft_ms, row.reads) for row in selectors.requests_of(run)} == before
    assert manifest_check(run)


def test_requests_under_way_come_back_as_incomplete_with_what_they_had_shown(
    ended: Run, tmp_path: Any
) -> None:
    from inference.recording.segments import SegmentWriter

    folder = records_root() / "crashed"
    folder.mkdir()
    writer = SegmentWriter(folder / "000001.pgrec", 1)
    part = {
        "kind": "partial",
        "id": "r7",
        "index": 6,
        "warmup": False,
        "scheduled_ns": 900,
        "dispatched_ns": 950,
    }
    part |= {"sent_ns": 1000, "from_read": 0, "reads": {"from": 2_001_000, "after": [0, 50], "tokens": 1}}
    later = part | {"from_read": 2, "reads": {"from": 2_001_900, "after": [0], "tokens": 1}}
    writer.append([{"kind": "started", "started_ns": 500, "open_loop": False}, part, later])
    writer.close()
    with (folder / "000001.pgrec").open("ab") as file:
        file.write(b"\xf9PGF torn")
    ended.requests.all().delete()
    ended.segments.update(name="crashed/000001.pgrec")
    lapsed = timezone.now() - timedelta(minutes=5)
    Run.objects.filter(pk=ended.pk).update(state=RunState.MEASURING, lease_expires_at=lapsed, manifest=None)

    services.reap_expired_leases()

    [row] = Run.objects.get(pk=ended.pk).requests.all()
    assert (row.index, row.outcome, row.error, RECOVERED in row.flags) == (6, "incomplete", CUT_OFF, True)
    assert (len(row.reads), row.ttft_ms) == (3, 2.0)
    assert ended.segments.get().torn_bytes == 9
    assert [check.state for check in segments_check(Run.objects.get(pk=ended.pk))] == ["torn"]


def test_a_request_that_left_right_before_the_kill_is_accounted_for(ended: Run) -> None:
    """Nothing but the ledger tells of it: no second has passed in which a part of it was written."""
    from inference.recording.ledger import SentLedger
    from inference.recording.segments import SegmentWriter

    folder = records_root() / "killed"
    folder.mkdir()
    writer = SegmentWriter(folder / "000001.pgrec", 1)
    for offset, ids in ((0, ["a", "b"]), (2, ["2-a", "2-b", "2-c"])):
        writer.append(
            [{"kind": "started", "started_ns": 5, "open_loop": False, "offset": offset, "ids": ids}]
        )
    writer.close()
    ledgers = [SentLedger(folder / f"{first:09d}.sent", planned) for first, planned in ((0, 2), (2, 3))]
    ledgers[0].mark(0, 1000)
    ledgers[1].mark(1, 2000)  # not closed: its process was killed
    ended.requests.all().delete()
    ended.segments.update(name="killed/000001.pgrec")
    lapsed = timezone.now() - timedelta(minutes=5)
    Run.objects.filter(pk=ended.pk).update(state=RunState.MEASURING, lease_expires_at=lapsed, manifest=None)

    services.reap_expired_leases()

    run = Run.objects.get(pk=ended.pk)
    rows = [(row.index, row.request_id, row.outcome, row.error) for row in selectors.requests_of(run)]
    assert rows == [(0, "a", "incomplete", CUT_OFF), (3, "2-b", "incomplete", CUT_OFF)]
    assert run.error.endswith("3 of its planned requests were never sent.")
    assert manifest_check(run)
