"""A run by the definitions of other tools: scored when it ends, and read for its pages and reports."""

import logging
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from inference.records import RequestRecord as Record
from inference.rescoring import collect, rescore_all
from inference.rescoring.definitions import OWN, TOOLS
from pocs.runs.choices import FINAL_STATES
from pocs.runs.manifest import records_in_order, request_line
from pocs.runs.models import Run
from pocs.runs.raw_reads import DamagedRecords

logger = logging.getLogger(__name__)

#: a run that was not scored when it ended (of an earlier version) is scored when read, up to so many requests
SCORED_WHEN_READ = 500

#: the sentences of `inference.rescoring.reasons`, code by code
REASONS: dict[str, Promise] = {
    "from_sent": gettext_lazy(
        "Counts from when the request was sent; ours counts from when the plan wanted it, so that a client "
        "or a slot that was late shows."
    ),
    "role_chunk_counts": gettext_lazy(
        "Takes the first chunk with choices for the first token, also one that only names the role; ours "
        "waits for output."
    ),
    "one_token_first": gettext_lazy(
        "Divides by all tokens but one; ours divides by the tokens that came after the first read, which "
        "held several."
    ),
    "finish_chunk_not_kept": gettext_lazy(
        "Runs to the chunk with the finish reason, whose time is not recorded here; the last token stands "
        "for it."
    ),
    "whole_load": gettext_lazy(
        "Divides by the time from the start of the load to its end, failed requests included; ours ends "
        "with the last token."
    ),
    "unfinished_counts": gettext_lazy(
        "Counts an answer that ended without a finish reason as a success; ours is “incomplete” and in no "
        "percentile."
    ),
    "includes_ttft": gettext_lazy(
        "Divides the whole latency, the time to the first token included, by all tokens; ours measures the "
        "time between tokens alone."
    ),
    "mean_of_request": gettext_lazy(
        "Is one mean for each request, in which a long gap disappears; ours pools every gap."
    ),
    "weighted_by_tokens": gettext_lazy(
        "Weights each request by its tokens and takes values that occurred; ours weights requests alike and "
        "interpolates."
    ),
    "nearest_rank": gettext_lazy(
        "Percentiles are values that occurred (nearest rank); ours are interpolated."
    ),
    "to_the_stream_end": gettext_lazy(
        "Ends at the last chunk of the stream, usage included; ours ends at the last token."
    ),
    "called_inter_token_latency": gettext_lazy(
        "Is called inter-token latency there, and divides by all tokens but one; ours divides by the tokens "
        "after the first read."
    ),
    "called_inter_chunk_latency": gettext_lazy(
        "Is called inter-chunk latency there; the gaps between chunks are pooled as ours are."
    ),
    "own_tokenizer": gettext_lazy(
        "Counts tokens with its own tokenizer unless told otherwise; here the server's count is used."
    ),
    "to_the_last_completion": gettext_lazy(
        "Divides by the time from the first request to the last completion, failed ones included; ours ends "
        "with the last token."
    ),
    "overlapping_warmup_stays": gettext_lazy(
        "Leaves out the warm-up requests themselves; ours also leaves out requests that overlap them."
    ),
}


@dataclass(frozen=True)
class Cell:
    """One tool's figures of one metric: p50 and p99 in ms, or one rate in `value`."""

    p50: float | None
    p99: float | None
    value: float | None
    other: bool  # than ours


@dataclass(frozen=True)
class Line:
    """One metric across the tools, in their order."""

    label: str
    unit: str
    rate: bool
    decimals: int  # of a rate
    cells: tuple[Cell, ...]


@dataclass(frozen=True)
class Why:
    """One difference of one tool, with its reason in one sentence."""

    tool: str
    label: str
    text: str


@dataclass(frozen=True)
class Rescored:
    """The table of one run: tools with their versions and sources, and a line for each metric."""

    tools: tuple[tuple[str, str, str], ...]
    lines: tuple[Line, ...]
    reasons: tuple[Why, ...]


def rescore_records(records: Sequence[Record], summary: Mapping[str, Any]) -> dict[str, Any]:
    """Every tool's figures of the records that `summary` states (`inference.rescoring`)."""
    columns = collect(
        records,
        open_loop=summary.get("latency_from") == "scheduled",
        excluded=summary.get("excluded_requests") or 0,
    )
    return rescore_all(columns)


def run_rescore(*, run: Run, records: Sequence[Record]) -> None:
    """Store the other tools' figures beside an ended run; a failure is logged and costs the run nothing."""
    try:
        scored = rescore_records(records, Run.objects.values_list("summary", flat=True).get(pk=run.pk) or {})
    except Exception:
        logger.exception("run %s could not be scored by other definitions", run.pk)
        return
    Run.objects.filter(pk=run.pk).update(rescored=scored)


def rescored_of(run: Run) -> Rescored | None:
    """The table for pages and reports; None where nothing was streamed, or too much to score it now."""
    stored = run.rescored
    if stored is None and run.state in FINAL_STATES and run.summary:
        stored = _scored_now(run)
    if not stored or not stored["tools"][OWN]["ttft_ms"]["n"]:
        return None
    # PostgreSQL keeps the keys of JSON in an order of its own
    tools = {name: stored["tools"][name] for name in TOOLS if name in stored["tools"]}
    return Rescored(
        tools=tuple((name, found["version"], found["source"]) for name, found in tools.items()),
        lines=tuple(_line(tools, *about) for about in _metrics()),
        reasons=_reasons(tools),
    )


def _scored_now(run: Run) -> dict[str, Any] | None:
    rows = list(records_in_order(run)[: SCORED_WHEN_READ + 1])
    if not rows or len(rows) > SCORED_WHEN_READ:
        return None
    try:
        records = [Record.from_json(_as_recorded(request_line(row), row.index)) for row in rows]
    except (DamagedRecords, TypeError, ValueError):
        return None
    return rescore_records(records, run.summary or {})


def _as_recorded(line: dict[str, Any], index: int) -> dict[str, Any]:
    streamed = bool((line.get("detail") or {}).get("streamed", True))
    return line | {"index": index, "streamed": streamed}


def _metrics() -> Iterable[tuple[str, str, str, bool]]:
    yield "ttft_ms", _("Time to first token (TTFT)"), "ms", False
    yield "tpot_ms", _("Time per output token (TPOT)"), "ms", False
    yield "itl_ms", _("Inter-token latency (ITL)"), "ms", False
    yield "e2e_ms", _("End to end"), "ms", False
    yield "output_tokens_per_second", _("Output throughput"), _("tokens/s"), True
    yield "requests_per_second", _("Requests"), _("requests/s"), True
    yield "requests", _("Requests that count"), "", True


def _line(tools: Mapping[str, Any], metric: str, label: str, unit: str, rate: bool) -> Line:
    own = tools[OWN][metric]
    cells = []
    for found in tools.values():
        value = found[metric]
        other = _other(value, own) if rate else any(_other(value[key], own[key]) for key in ("p50", "p99"))
        if rate:
            cells.append(Cell(p50=None, p99=None, value=value, other=other))
        else:
            cells.append(Cell(p50=value["p50"], p99=value["p99"], value=None, other=other))
    return Line(label, unit, rate, 1 if unit else 0, tuple(cells))


def _reasons(tools: Mapping[str, Any]) -> tuple[Why, ...]:
    """Every reason that a tool gave, metric by metric in the order of the table."""
    labels = {metric: label for metric, label, _unit, _rate in _metrics()}
    return tuple(
        Why(tool, labels[each["metric"]], str(REASONS[each["code"]]))
        for tool, found in tools.items()
        for metric in labels
        for each in found["reasons"]
        if each["metric"] == metric
    )


def _other(value: float | None, own: float | None) -> bool:
    """Whether two figures differ by more than rounding."""
    if value is None or own is None:
        return value is not own
    return not math.isclose(value, own, rel_tol=1e-9, abs_tol=1e-9)
