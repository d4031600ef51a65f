"""The digests of a run's records, so that nobody can change a measured figure unseen."""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

from django.db.models import QuerySet

from inference.recording.segments import Damage, SegmentFacts, file_sha256, walk_segment
from pocs.common.canonical import canonical_json
from pocs.runs.models import RecordSegment, RequestRecord, Run
from pocs.runs.raw_reads import records_root

#: what the digest of the requests is taken over: the digests of their lines, in order
LINE_DIGESTS = "line digests"

#: fields of a line of requests.jsonl, in cli.md's order
LINE_FIELDS = (
    "outcome",
    "finish_reason",
    "error",
    "text",
    "reasoning_text",
    "token_ids",
    "input_tokens",
    "cached_tokens",
    "output_tokens",
    "output_tokens_source",
    "ttft_ms",
    "ttfv_ms",
    "ttfot_ms",
    "tpot_ms",
    "e2e_ms",
    "max_gap_ms",
    "stamps",
    "intervals_ms",
    "reads",
    "tenant",
    "application",
    "warmup",
    "flags",
    "detail",
)


def request_line(row: RequestRecord) -> dict[str, Any]:
    """One stored request as a line of requests.jsonl; null where nothing was observed."""
    line: dict[str, Any] = {"id": row.request_id} | {name: getattr(row, name) for name in LINE_FIELDS}
    line["output_tokens_source"] = row.output_tokens_source or None
    return line


def row_line(row: RequestRecord) -> dict[str, Any]:
    """The same of the row alone: reads that lie in a segment are stood for by their place."""
    line: dict[str, Any] = {"id": row.request_id}
    line |= {name: getattr(row, name) for name in LINE_FIELDS if name != "reads"}
    line["reads"] = row.__dict__.get("reads", []) if row.segment is None else []
    line["output_tokens_source"] = row.output_tokens_source or None
    if row.segment is not None:
        line["place"] = [row.segment, row.segment_block, row.segment_item]
    return line


class RowDigests:
    """SHA-256 of each row's canonical line, gathered as rows are stored in whatever order."""

    def __init__(self) -> None:
        self._digests: dict[tuple[bool, int], bytes] = {}

    def add(self, rows: Iterable[RequestRecord]) -> None:
        for row in rows:
            line = hashlib.sha256(canonical_json(row_line(row)))
            self._digests[not row.warmup, row.index] = line.digest()

    def as_json(self) -> dict[str, Any]:
        """SHA-256 over the lines' digests, warm-up first and then in input order."""
        whole = hashlib.sha256()
        for key in sorted(self._digests):
            whole.update(self._digests[key])
        return {"lines": len(self._digests), "sha256": whole.hexdigest(), "over": LINE_DIGESTS}


def run_manifest(digests: RowDigests, segments: Iterable[SegmentFacts]) -> dict[str, Any]:
    """`{"requests": {"lines", "sha256", "over"}, "segments": [{"number", "name", "items", …}, …]}`."""
    return {"requests": digests.as_json(), "segments": [facts.as_json() for facts in segments]}


def manifest_of_rows(rows: Iterable[RequestRecord]) -> dict[str, Any]:
    """The manifest of rows that have no segments; they come warm-up first, then in input order."""
    digests = RowDigests()
    digests.add(rows)
    return {"requests": digests.as_json()}


def records_in_order(run: Run) -> QuerySet[RequestRecord]:
    """The run's records as the manifest takes them: warm-up first, then input order."""
    return run.requests.order_by("-warmup", "index")


def manifest_check(run: Run) -> bool:
    """Whether the stored rows and segments still are those that the manifest names."""
    if run.manifest is None or not rows_check(run):
        return False
    return all(check.sound for check in segments_check(run))


def rows_check(run: Run) -> bool:
    """Whether the stored rows still are those that the manifest names; it reads all of them."""
    stated = (run.manifest or {}).get("requests") or {}
    rows = records_in_order(run).iterator(chunk_size=500)
    if stated.get("over") == LINE_DIGESTS:
        return manifest_of_rows(rows)["requests"] == stated
    return _lines_digest(rows) == stated


def _lines_digest(rows: Iterable[RequestRecord]) -> dict[str, Any]:
    """How runs of earlier versions were stated: SHA-256 over the lines themselves."""
    lines = hashlib.sha256()
    count = 0
    for row in rows:
        lines.update(canonical_json(request_line(row)) + b"\n")
        count += 1
    return {"lines": count, "sha256": lines.hexdigest()}


@dataclass(frozen=True)
class SegmentCheck:
    """One segment against the manifest: sound, missing, or changed with what of it cannot be read."""

    number: int
    name: str
    state: Literal["sound", "missing", "changed", "torn"]
    records: int
    size_bytes: int
    damage: tuple[Damage, ...] = ()

    @property
    def sound(self) -> bool:
        return self.state == "sound"


def segments_check(run: Run) -> list[SegmentCheck]:
    """Every segment of the run, read and compared with its digest."""
    stated = {facts["number"]: facts for facts in (run.manifest or {}).get("segments") or ()}
    return [
        _segment_check(segment, stated.get(segment.number)) for segment in run.segments.order_by("number")
    ]


def _segment_check(segment: RecordSegment, stated: dict[str, Any] | None) -> SegmentCheck:
    path = records_root() / segment.name
    facts = (segment.number, segment.name)
    if not path.is_file():
        return SegmentCheck(*facts, "missing", segment.records, segment.size_bytes)
    sha256 = segment.sha256 if stated is None else stated["sha256"]
    size = path.stat().st_size
    if sha256 and file_sha256(path) == sha256:
        return SegmentCheck(*facts, "torn" if segment.torn_bytes else "sound", segment.records, size)
    damage = tuple(each for each, _item in walk_segment(path) if isinstance(each, Damage))
    return SegmentCheck(*facts, "changed", segment.records, size, damage)
