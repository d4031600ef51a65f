"""What the kinds of scenarios found, in words: one sentence a code, one name a figure, one title a table.

`inference.kinds` states codes and figures whose names end in their unit; both are looked up here, and what
has no words is shown as it is.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, pgettext_lazy

from pocs.common.errors import Text
from pocs.runs.models import Run
from pocs.runs.wording.kind_names import COLUMNS, NAMES, STAGES, TABLES, VALUES
from pocs.runs.wording.sentences import Sentence, shown_number

STATEMENTS: dict[str, Text] = {
    "short_request_first_token": gettext_lazy(
        "Of a short request's time, %(first_token_share)s passes before its first token (median over %(n)s); "
        "TTFT p95 is %(ttft_p95_ms)s."
    ),
    "long_context_prefill": gettext_lazy(
        "A thousand tokens of context cost %(p50_ms)s of prefill (p50; p95 %(p95_ms)s) over %(n)s requests "
        "of up to %(input_max_tokens)s, tokens from the cache left out."
    ),
    "long_context_first_token": gettext_lazy(
        "The server does not tell its prefill; a thousand tokens of context take %(p50_ms)s to the first "
        "token (p50; p95 %(p95_ms)s) over %(n)s requests, waiting included."
    ),
    "concurrency_reached": gettext_lazy(
        "%(peak_at_once)s requests were under way at once; %(asked_at_once)s were asked for."
    ),
    "concurrency_not_reached": gettext_lazy(
        "Only %(peak_at_once)s requests were ever under way at once; %(asked_at_once)s were asked for, so "
        "the figures are of a smaller load."
    ),
    "tail_under_concurrency": gettext_lazy(
        "Under this load TTFT is %(ttft_p50_ms)s at p50 and %(ttft_p95_ms)s at p95 (n = %(n)s), gaps between "
        "tokens %(gap_p50_ms)s at p50 and %(gap_p99_ms)s at p99; the median request waits "
        "%(queue_share)s of its time in the queue (Q7)."
    ),
    "stream_flows": gettext_lazy(
        "No stall in %(streams)s streams; the longest gap is %(longest_gap_max_ms)s, jitter p95 "
        "%(jitter_p95_ms)s."
    ),
    "stream_stalls": gettext_lazy(
        "%(stalls)s stalls in %(stalled_streams_share)s of %(streams)s streams; the longest gap is "
        "%(longest_gap_p95_ms)s at p95 and %(longest_gap_max_ms)s at most."
    ),
    "stream_not_observed": gettext_lazy("No answer was streamed, so its flow was not observed."),
    "answers_keep_pace": gettext_lazy(
        "Tokens keep their pace in answers of up to %(output_max_tokens)s: %(first_quarter_gap_ms)s a gap in "
        "the first quarter, %(last_quarter_gap_ms)s in the last (medians over %(n)s answers)."
    ),
    "answers_slow_down": gettext_lazy(
        "Tokens slow down as answers grow to %(output_max_tokens)s: %(first_quarter_gap_ms)s a gap in the "
        "first quarter, %(last_quarter_gap_ms)s in the last (medians over %(n)s answers)."
    ),
    "blocks_released": gettext_lazy(
        "What %(n)s left requests held was free %(release_p95_ms)s later at p95, %(release_max_ms)s at most "
        "(M18)."
    ),
    "level_back": gettext_lazy(
        "All watched resources that had risen were back at their level before after %(level_back_ms)s."
    ),
    "level_not_back": gettext_lazy(
        "Not back at their level before within %(limit_s)s: %(gauges)s. This is a leak until shown otherwise."
    ),
    "gauges_frozen": gettext_lazy(
        "The server's gauges stood still after the cut, even after a small request; nothing is said about "
        "release."
    ),
    "level_not_told": gettext_lazy("The target does not tell what it holds, so release was not observed."),
    "failed_load_harmless": gettext_lazy(
        "A broken model did not load, and the old one went on answering; %(failed_requests)s requests failed "
        "because of it."
    ),
    "failed_load_hurt": gettext_lazy(
        "A broken model did not load, and the old one was hurt by it (%(outcome)s): %(failed_requests)s "
        "requests failed."
    ),
    "switched": gettext_lazy(
        "%(model)s was loaded in %(load_ms)s; nobody was served for %(outage_ms)s, and %(failed_requests)s "
        "requests failed because of the switch (M22)."
    ),
    "switch_failed": gettext_lazy("%(model)s does not serve; the switch failed."),
    "rolled_back_same": gettext_lazy(
        "The old model was back after %(total_ms)s (outage %(outage_ms)s) and gives the same answer as "
        "before (M21)."
    ),
    "rolled_back_not_compared": gettext_lazy(
        "The old model was back after %(total_ms)s (outage %(outage_ms)s); its answers were not compared."
    ),
    "rolled_back_different": gettext_lazy(
        "The old model is back but gives another answer than before: the rollback is not clean (M21)."
    ),
    "rollback_failed": gettext_lazy("The way back failed (%(outcome)s)."),
    "same_model_loaded": gettext_lazy(
        "No other model was named, so the same one was loaded anew: this proves the mechanism, not the other "
        "model."
    ),
    "memory_returns": gettext_lazy(
        "Over %(cycles)s cycles the memory at rest changes by %(slope_bytes)s a cycle (95 %% interval "
        "%(slope_low_bytes)s to %(slope_high_bytes)s): no leak is seen."
    ),
    "memory_leaks": gettext_lazy(
        "The memory at rest grows by %(slope_bytes)s a cycle (95 %% interval %(slope_low_bytes)s to "
        "%(slope_high_bytes)s, %(cycles)s cycles): a leak."
    ),
    "leak_not_decided": gettext_lazy(
        "Memory at rest changed by %(slope_bytes)s a cycle; %(cycles)s cycles are too few for an interval."
    ),
    "cache_returns": gettext_lazy("After each of %(cycles)s cycles no block of the cache was held."),
    "cache_held": gettext_lazy("Up to %(held_bytes)s of the cache were still held at rest: blocks are lost."),
    "memory_not_told": gettext_lazy("The target does not tell its memory, so nothing is said about leaks."),
    "class_that_waits": gettext_lazy(
        "“%(worst)s” waits longest: TTFT p95 %(worst_ttft_p95_ms)s (n = %(worst_n)s) against "
        "%(best_ttft_p95_ms)s of “%(best)s” (n = %(best_n)s)."
    ),
    "one_class_only": gettext_lazy(
        "Only one class of requests was seen (“%(name)s”), so none can be compared."
    ),
    "capacity_found": gettext_lazy(
        "Every limit holds up to %(capacity_requests_per_second)s; surely up to %(low_requests_per_second)s "
        "and surely no more at %(high_requests_per_second)s (%(steps)s steps of %(n)s requests, 95 %%)."
    ),
    "capacity_thin": gettext_lazy(
        "Every limit held up to %(capacity_requests_per_second)s, but %(n)s requests a step do not make an "
        "interval with two ends: %(low_requests_per_second)s to %(high_requests_per_second)s."
    ),
    "capacity_below": gettext_lazy(
        "The limits do not even hold at the lowest rate of %(rate_requests_per_second)s."
    ),
    "capacity_above": gettext_lazy(
        "The limits still hold at the highest rate of %(rate_requests_per_second)s: the capacity lies above."
    ),
    "drift_steady": gettext_lazy(
        "%(figure)s: no drift beyond its noise over %(windows)s windows (%(first)s at first, "
        "%(last)s at last)."
    ),
    "drift_rising": gettext_lazy(
        "%(figure)s rises: %(first)s in the first window, %(last)s in the last of %(windows)s."
    ),
    "drift_falling": gettext_lazy(
        "%(figure)s falls: %(first)s in the first window, %(last)s in the last of %(windows)s."
    ),
    "drift_unknown": gettext_lazy("%(figure)s: too few windows (%(windows)s) to speak of drift."),
    "nobody_refused": gettext_lazy(
        "Nobody was refused up to %(rate_requests_per_second)s: throttling starts above, or there is none."
    ),
    "refused_from": gettext_lazy(
        "From %(rate_requests_per_second)s on the service refuses: %(refused_share)s of %(n)s requests (M24)."
    ),
    "retry_after_kept": gettext_lazy(
        "It names how long to wait, and after %(wait_s)s it served %(served)s of %(sent_again)s requests "
        "that were sent again."
    ),
    "retry_after_broken": gettext_lazy(
        "It names how long to wait, but after %(wait_s)s only %(served)s of %(sent_again)s requests "
        "that were sent again were served."
    ),
    "retry_after_not_named": gettext_lazy(
        "It does not name how long to wait; after %(wait_s)s, %(served)s of %(sent_again)s requests "
        "that were sent again were served."
    ),
}

UNITS = ("requests_per_second", "bytes", "tokens", "share", "ms", "s")
_PLACED = re.compile(rf"(?P<base>.+?)_(?P<place>n|p50|p95|max|low|high)(?:_(?P<unit>{'|'.join(UNITS)}))?")
_UNIT = re.compile(rf"(?P<base>.+?)_(?P<unit>{'|'.join(UNITS)})")
YES, NO = pgettext_lazy("fact", "yes"), pgettext_lazy("fact", "no")


@dataclass(frozen=True)
class Fact:
    """One line of facts: its name, and its figures with their units in one text."""

    name: str
    label: str
    text: str


@dataclass(frozen=True)
class Table:
    """One table: its title, the labels of its columns, and its cells as text."""

    title: str
    columns: list[str]
    rows: list[list[str]]


@dataclass(frozen=True)
class KindFindings:
    """What a run's kind found, in words."""

    code: str
    label: str
    sentences: list[Sentence]
    facts: list[Fact]
    tables: list[Table]
    stages: list[dict[str, Any]]


def kind_findings_of(run: Run) -> KindFindings | None:
    """The block `kind` of the run's summary in words; None for a run without one."""
    found = (run.summary or {}).get("kind")
    if not found:
        return None
    return KindFindings(
        code=found["code"],
        label=str(run.scenario_version.scenario.get_kind_display()),
        sentences=[statement(item) for item in found["statements"]],
        facts=facts_shown(found["facts"]),
        tables=[_table(name, rows) for name, rows in found["tables"].items() if rows],
        stages=[stage | {"label": stage_name(stage["name"])} for stage in found["stages"]],
    )


def statement(item: Mapping[str, Any]) -> Sentence:
    """One statement as a sentence with its figures in the reader's form."""
    code, figures = str(item["code"]), dict(item.get("figures") or {})
    template = STATEMENTS.get(code)
    if code.startswith("drift_"):
        figures |= {end: figure(str(figures["figure"]), figures[end]) for end in ("first", "last")}
    words = {name: figure(name, value) for name, value in figures.items()}
    text = code if template is None else str(template) % words
    return Sentence(code=code, text=text, figures=item.get("figures") or {})


def stage_name(name: str) -> str:
    return str(STAGES.get(name, name))


def facts_shown(facts: Mapping[str, Any]) -> list[Fact]:
    """The facts with n, percentiles and intervals of one figure in one line."""
    lines: dict[str, list[tuple[str, str]]] = {}
    for name, value in facts.items():
        base, place, unit = _parts(name)
        shown = figure(f"{base}_{unit}" if unit else base, value)
        lines.setdefault(base, []).append((place, shown))
    return [
        Fact(base, str(NAMES.get(base, base)), _line(parts))
        for base, parts in lines.items()
        if any(shown != "—" for _place, shown in parts)
    ]


def _parts(name: str) -> tuple[str, str, str]:
    if name in NAMES:
        return name, "", ""
    placed, plain = _PLACED.fullmatch(name), _UNIT.fullmatch(name)
    if placed is not None:
        return placed["base"], placed["place"], placed["unit"] or ""
    return (plain["base"], "", plain["unit"]) if plain is not None else (name, "", "")


def _line(parts: list[tuple[str, str]]) -> str:
    found = dict(parts)
    texts = [found[""]] if "" in found else []
    texts += [f"{place} {found[place]}" for place in ("p50", "p95", "max") if place in found]
    if "low" in found:
        interval = _("95 %% interval %(low)s to %(high)s") % {"low": found["low"], "high": found["high"]}
        texts.append(interval)
    if "n" in found:
        texts.append(f"n = {found['n']}")
    return " · ".join(texts)


def figure(name: str, value: Any) -> str:
    """One figure with the unit that its name ends in; words of the procedures in the reader's language."""
    if value is None or value == "":
        return "—"
    if isinstance(value, bool):
        return str(YES if value else NO)
    if isinstance(value, str):
        return str(NAMES.get(value.rpartition("_")[0], value)) if name == "figure" else _word(value)
    unit = _UNIT.fullmatch(name)
    return _with_unit(value, unit["unit"] if unit else "share" if name.endswith("share") else "")


def _word(value: str) -> str:
    parts = value.split(", ")
    return _(", ").join(str(VALUES.get(part, part)) for part in parts)


def _with_unit(value: float, unit: str) -> str:
    if unit == "share":
        return f"{shown_number(value * 100)} %"
    if unit == "bytes":
        return _("%(value)s MiB") % {"value": shown_number(value / 2**20)}
    templates = {
        "requests_per_second": _("%(value)s requests/s"),
        "tokens": _("%(value)s tokens"),
        "ms": _("%(value)s ms"),
        "s": _("%(value)s s"),
    }
    return templates.get(unit, "%(value)s") % {"value": shown_number(value)}


def _table(name: str, rows: list[dict[str, Any]]) -> Table:
    present = [column for column in TABLES.get(name, ()) if any(row.get(column) is not None for row in rows)]
    columns = present or [column for column in rows[0] if not isinstance(rows[0][column], list)]
    return Table(
        title=str(NAMES.get(f"table_{name}", name)),
        columns=[str(COLUMNS.get(column, column)) for column in columns],
        rows=[[_cell(row, column) for column in columns] for row in rows],
    )


def _cell(row: Mapping[str, Any], column: str) -> str:
    """One cell; the figures of a gauge have the unit that the gauge's name ends in, counts no decimals."""
    value, gauge = row.get(column), row.get("gauge")
    if not isinstance(gauge, str) or column not in ("before", "peak", "after"):
        return figure(column, value)
    whole = isinstance(value, float) and value.is_integer() and not _UNIT.fullmatch(gauge)
    return figure(gauge, int(value) if whole and value is not None else value)
