"""What a run whose worker died had observed, read from its segments into rows: nothing finished is lost."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from django.db import transaction

from inference.phases import derive
from inference.recording.ledger import SUFFIX as LEDGER_SUFFIX
from inference.recording.ledger import LedgerReader
from inference.recording.packing import (
    PARTIAL,
    RECORD,
    STARTED,
    packed_reads,
    record_of,
    unpacked_reads,
)
from inference.recording.segments import SUFFIX, Place, SegmentFacts, file_sha256, read_segment
from inference.records import RequestRecord as Record
from inference.records import Trace
from inference.requests import GenerationRequest
from pocs.runs.manifest import RowDigests, records_in_order, run_manifest
from pocs.runs.models import RecordSegment, RequestRecord, Run
from pocs.runs.raw_reads import records_root
from pocs.runs.rows import as_row

RECOVERED = "recovered_after_a_crash"
#: a request that was under way when its worker died; in English, as every error of a request
CUT_OFF = "the measuring worker ended while this request was under way"


@dataclass
class Found:
    """Everything sound in the segments of a run."""

    records: list[tuple[Place, Record]] = field(default_factory=list)
    partials: dict[tuple[bool, int], list[dict[str, Any]]] = field(default_factory=dict)
    started: dict[str, Any] = field(default_factory=dict)
    plans: dict[int, dict[str, Any]] = field(default_factory=dict)  # by the place of their first request
    sent: dict[int, int] = field(
        default_factory=dict
    )  # place → when it left, of what is told of nowhere else
    segments: list[tuple[SegmentFacts, int]] = field(default_factory=list)  # with the bytes torn off


@dataclass(frozen=True)
class Recovered:
    """How many requests a run has rows of; how many planned ones were never sent (None: unknown)."""

    kept: int
    never_sent: int | None = None


def records_recover(run: Run) -> Recovered:
    """Add the rows that the run's segments hold and the database does not.

    Requests that were under way become `incomplete` with the reads they had shown; one of which only the
    ledger tells that it left has none. Files are left as they
    are: what of their end is torn is noted beside them. In the caller's transaction the manifest is set.
    """
    found = _read(run)
    if found is None:
        return Recovered(run.requests.count())
    known = set(run.requests.values_list("warmup", "index"))
    started_ns = found.started.get("started_ns")
    rows = [
        as_row(run, record, started_ns, place)
        for place, record in found.records
        if (record.warmup, record.index) not in known
    ]
    ended = known | {(record.warmup, record.index) for _place, record in found.records}
    rows += [
        as_row(run, _unfinished(run, parts, found.started), started_ns)
        for key, parts in sorted(found.partials.items())
        if key not in ended
    ]
    told = ended | found.partials.keys()
    rows += [
        as_row(run, _sent_only(run, index, ns, found), started_ns)
        for index, ns in sorted(found.sent.items())
        if (False, index) not in told
    ]
    with transaction.atomic():
        RequestRecord.objects.bulk_create(rows, batch_size=100, ignore_conflicts=True)
        for facts, torn_bytes in found.segments:
            RecordSegment.objects.update_or_create(
                run=run,
                number=facts.number,
                defaults={
                    "name": facts.name,
                    "records": facts.items,
                    "size_bytes": facts.size_bytes,
                    "sha256": facts.sha256,
                    "torn_bytes": torn_bytes,
                },
            )
        digests = RowDigests()
        digests.add(records_in_order(run).iterator(chunk_size=500))
        run.manifest = run_manifest(digests, [facts for facts, _torn in found.segments])
        run.save(update_fields=["manifest"])
    planned = sum(len(plan["ids"]) for plan in found.plans.values())
    measured = sum(not warmup for warmup, _index in known) + sum(not row.warmup for row in rows)
    return Recovered(len(known) + len(rows), planned - measured if planned else None)


def _read(run: Run) -> Found | None:
    """The contents of all segments in the folder that the run's first segment names; None without one."""
    first = run.segments.order_by("number").first()
    if first is None:
        return None
    folder = records_root() / Path(first.name).parent
    found = Found()
    for path in sorted(folder.glob(f"*{SUFFIX}")):
        number = int(path.stem)
        contents = read_segment(path, number)
        size = path.stat().st_size
        name = f"{folder.name}/{path.name}"
        facts = SegmentFacts(number, name, len(contents.items), size, file_sha256(path))
        found.segments.append((facts, size - contents.good_bytes))
        for place, item in contents.items:
            _sort_in(found, place, item)
    for path in sorted(folder.glob(f"*{LEDGER_SUFFIX}")):
        begin = int(path.stem)
        found.sent |= {begin + at: ns for at, ns in LedgerReader(path).new()}
    return found


def _sort_in(found: Found, place: Place, item: dict[str, Any]) -> None:
    if item.get("kind") == RECORD:
        found.records.append((place, record_of(item)))
    elif item.get("kind") == PARTIAL:
        found.partials.setdefault((item["warmup"], item["index"]), []).append(item)
    elif item.get("kind") == STARTED:
        found.started = item
        if "offset" in item:
            found.plans[item["offset"]] = item


def _sent_only(run: Run, index: int, ns: int, found: Found) -> Record:
    """The record of a request that left so shortly before the end that nothing else was written of it."""
    plans = [plan for first, plan in found.plans.items() if first <= index < first + len(plan["ids"])]
    identity = plans[-1]["ids"][index - plans[-1]["offset"]] if plans else f"#{index + 1}"
    part = {"id": identity, "index": index, "warmup": False, "scheduled_ns": None, "dispatched_ns": ns}
    part |= {"sent_ns": None, "from_read": 0, "reads": packed_reads([])}
    return _unfinished(run, [part], plans[-1] if plans else found.started)


def _unfinished(run: Run, parts: list[dict[str, Any]], started: dict[str, Any]) -> Record:
    """The record of a request of which only parts were written."""
    head = parts[0]
    trace = Trace(
        head["id"],
        head["index"],
        head["warmup"],
        scheduled_ns=head["scheduled_ns"],
        dispatched_ns=head["dispatched_ns"],
        sent_ns=parts[-1]["sent_ns"],
        ended="cut",
    )
    for part in sorted(parts, key=lambda part: part["from_read"]):
        trace.reads += unpacked_reads(part["reads"])
    request = GenerationRequest(id=head["id"], tenant=run.tenant, application=run.application)
    record = derive(
        trace,
        request,
        open_loop=bool(started.get("open_loop")),
        index=head["index"],
        warmup=head["warmup"],
    )
    record.error = CUT_OFF
    record.flags.append(RECOVERED)
    return record
