"""The digests of a run's records, so that nobody can change a measured figure unseen."""

import hashlib
from collections.abc import Iterable
from typing import Any

from django.db.models import QuerySet

from pocs.common.canonical import canonical_json
from pocs.runs.models import RequestRecord, Run

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


def manifest_of_rows(rows: Iterable[RequestRecord]) -> dict[str, Any]:
    """`{"requests": {"lines", "sha256"}}`: SHA-256 over the canonical JSON lines warm-up first."""
    lines = hashlib.sha256()
    count = 0
    for row in rows:
        lines.update(canonical_json(request_line(row)) + b"\n")
        count += 1
    return {"requests": {"lines": count, "sha256": lines.hexdigest()}}


def records_in_order(run: Run) -> QuerySet[RequestRecord]:
    """The run's records as the manifest takes them: warm-up first, then input order."""
    return run.requests.order_by("-warmup", "index")


def manifest_check(run: Run) -> bool:
    """Whether the stored records still are those that the manifest names."""
    return run.manifest is not None and manifest_of_rows(records_in_order(run)) == run.manifest
