"""Runtime evidence by tenant or application: groups of requests with their figures, and the requests.

The requests of an ended run never change, so they are read once into groups (`RequestGroup`). A query
then reads a few packed rows; percentiles over them are exact, not estimated.
"""

from array import array
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from django.db import IntegrityError, transaction

from pocs.common.canonical import digest
from pocs.evidence.models import RequestGroup, RunIndex
from pocs.runs.choices import FINAL_STATES, Outcome
from pocs.runs.models import RequestRecord, Run
from pocs.runs.populations import ASKED_FOR, counts_of_summary, figures_of_sorted

FIGURES = ("ttft_ms", "tpot_ms", "queue_wait_ms")
READ_ROWS = 20_000


@dataclass(frozen=True)
class Filter:
    """Which requests are asked for; an empty word asks for all."""

    tenant: str = ""
    application: str = ""
    outcome: str = ""

    def takes(self, tenant: str, application: str, outcome: str = "") -> bool:
        return (
            self.tenant in ("", tenant)
            and self.application in ("", application)
            and (not outcome or self.outcome in ("", outcome))
        )


@dataclass(frozen=True)
class Population:
    """The measured requests of one tenant and application; distributions in ms over the successes.

    `source` says what they rest on: `records` of single requests, or the `summary` of a run that
    was submitted without them.
    """

    tenant: str
    application: str
    source: str
    runs: tuple[int, ...]  # numbers
    outcomes: dict[str, int]
    ttft_ms: dict[str, Any]
    tpot_ms: dict[str, Any]
    queue_wait_ms: dict[str, Any]

    @property
    def attempted(self) -> int:
        return sum(self.outcomes.values())

    @property
    def succeeded(self) -> int:
        return self.outcomes.get(Outcome.SUCCESS, 0)

    @property
    def errors(self) -> int:
        """Unsuccessful requests that were not asked for."""
        return sum(count for outcome, count in self.outcomes.items() if outcome not in ASKED_FOR)

    @property
    def error_rate(self) -> float | None:
        """Errors ÷ all attempted; null without any."""
        return self.errors / self.attempted if self.attempted else None


def populations(runs: Iterable[Run], wanted: Filter = Filter()) -> list[Population]:
    """One population per tenant and application over these runs, warm-up left out."""
    parts: dict[tuple[str, str], list[tuple[Run, RequestGroup]]] = defaultdict(list)
    found = []
    for run, groups in _with_groups(runs):
        for group in groups:
            if wanted.takes(group.tenant, group.application):
                parts[group.tenant, group.application].append((run, group))
        if not groups and run.summary and wanted.takes(run.tenant, run.application):
            found.append(_of_summary(run))
    found += [_merged(key, members) for key, members in parts.items()]
    return sorted(found, key=lambda group: (group.tenant, group.application, group.source, group.runs))


@dataclass(frozen=True)
class Presence:
    """How many requests of one tenant and application there are, and how many show each figure."""

    tenant: str
    application: str
    attempted: int
    succeeded: int
    first_tokens: int
    output_times: int


def presences(runs: Iterable[Run]) -> list[Presence]:
    """What `populations` would find, counted without reading a single value."""
    counts: dict[tuple[str, str], list[int]] = defaultdict(lambda: [0, 0, 0, 0])
    for run, groups in _with_groups(runs):
        for group in groups:
            count = counts[group.tenant, group.application]
            count[0] += group.count
            if group.outcome == Outcome.SUCCESS:
                count[1] += group.count
                count[2] += group.figures["ttft_ms"]["n"]
                count[3] += group.figures["tpot_ms"]["n"]
        if not groups and run.summary:
            stated = _of_summary(run)
            count = counts[run.tenant, run.application]
            count[0] += stated.attempted
            count[1] += stated.succeeded
            count[2] += stated.ttft_ms.get("n") or 0
            count[3] += stated.tpot_ms.get("n") or 0
    return [Presence(*key, *count) for key, count in sorted(counts.items())]


@dataclass(frozen=True)
class RequestPage:
    """Some of the requests asked for, of `count` in all."""

    records: list[RequestRecord]
    count: int


def requests_matching(runs: Iterable[Run], wanted: Filter, *, offset: int, limit: int) -> RequestPage:
    """The requests from `offset` on: by run, tenant, application and outcome, then as they were recorded."""
    ids: list[int] = []
    count = 0
    for _run, groups in _with_groups(runs):
        for group in groups:
            if not wanted.takes(group.tenant, group.application, group.outcome):
                continue
            start = max(offset - count, 0)
            if len(ids) < limit and start < group.count:
                packed = np.frombuffer(group.record_ids, dtype="<i8")
                ids += [int(pk) for pk in packed[start : start + limit - len(ids)]]
            count += group.count
    rows = RequestRecord.objects.select_related("run").defer("reads", "token_ids", "stamps", "text")
    found = rows.in_bulk(ids)
    return RequestPage([found[pk] for pk in ids if pk in found], count)


def names_in(runs: Iterable[Run]) -> tuple[list[str], list[str]]:
    """Tenants and applications that requests of these runs carry, for a reader to choose from."""
    seen = {(group.tenant, group.application) for _run, groups in _with_groups(runs) for group in groups}
    return sorted({tenant for tenant, _ in seen} - {""}), sorted({name for _, name in seen} - {""})


def run_index(run: Run) -> RunIndex | None:
    """The index of an ended run, built when there is none for the records that its manifest names."""
    return _indexes([run]).get(run.pk)


def _indexes(runs: Sequence[Run]) -> dict[int, RunIndex]:
    """The indexes of those of the runs that have ended, by the run's number in the database."""
    ended = [run for run in runs if run.state in FINAL_STATES]
    known = {index.run_id: index for index in RunIndex.objects.filter(run__in=ended)}
    for run in ended:
        records = digest(run.manifest)
        if run.pk not in known or known[run.pk].records_digest != records:
            known[run.pk] = _build_index(run, records)
    return known


def _build_index(run: Run, records: str) -> RunIndex:
    groups = _read_groups(run)
    try:
        with transaction.atomic():
            RunIndex.objects.filter(run=run).delete()
            index = RunIndex.objects.create(run=run, records_digest=records)
            for group in groups:
                group.index = index
            RequestGroup.objects.bulk_create(groups, batch_size=50)
    except IntegrityError:  # another reader was faster; the same records give the same groups
        index = RunIndex.objects.get(run=run)
    return index


def _with_groups(runs: Iterable[Run]) -> list[tuple[Run, list[RequestGroup]]]:
    """The runs in order, each with its groups; of ended runs packed values are read only when asked for."""
    ordered = sorted(runs, key=lambda run: (run.number, run.pk))
    indexes = _indexes(ordered)
    found = RequestGroup.objects.filter(index__in=[index.pk for index in indexes.values()])
    stored: dict[int, list[RequestGroup]] = defaultdict(list)
    for group in found.defer("record_ids", *FIGURES).order_by("tenant", "application", "outcome"):
        stored[group.index_id].append(group)
    return [(run, stored[indexes[run.pk].pk] if run.pk in indexes else _read_groups(run)) for run in ordered]


def _read_groups(run: Run) -> list[RequestGroup]:
    """The run's measured requests, grouped; one pass over its records."""
    collected: dict[tuple[str, str, str], _Columns] = defaultdict(_Columns)
    rows = RequestRecord.objects.filter(run=run, warmup=False).order_by("pk")
    for tenant, application, outcome, pk, *figures in rows.values_list(
        "tenant", "application", "outcome", "pk", *FIGURES
    ).iterator(chunk_size=READ_ROWS):
        collected[tenant, application, outcome].add(pk, figures)
    return [
        _packed(tenant, application, outcome, columns)
        for (tenant, application, outcome), columns in sorted(collected.items())
    ]


def _packed(tenant: str, application: str, outcome: str, columns: "_Columns") -> RequestGroup:
    values = {name: np.sort(np.array(column, dtype="<f8")) for name, column in columns.figures()}
    return RequestGroup(
        tenant=tenant,
        application=application,
        outcome=outcome,
        count=len(columns.ids),
        record_ids=np.array(columns.ids, dtype="<i8").tobytes(),
        figures={name: figures_of_sorted(ordered) for name, ordered in values.items()},  # type: ignore[arg-type]
        **{name: ordered.tobytes() for name, ordered in values.items()},
    )


class _Columns:
    """The packed columns of one group while its run is read."""

    def __init__(self) -> None:
        self.ids = array("q")
        self._figures = [array("d") for _name in FIGURES]

    def add(self, pk: int, figures: Sequence[float | None]) -> None:
        self.ids.append(pk)
        for column, value in zip(self._figures, figures, strict=True):
            if value is not None:
                column.append(value)

    def figures(self) -> Iterator[tuple[str, "array[float]"]]:
        return zip(FIGURES, self._figures, strict=True)


def _merged(key: tuple[str, str], members: list[tuple[Run, RequestGroup]]) -> Population:
    outcomes: dict[str, int] = defaultdict(int)
    for _run, group in members:
        outcomes[group.outcome] += group.count
    successes = _with_values([group for _run, group in members if group.outcome == Outcome.SUCCESS])
    return Population(
        tenant=key[0],
        application=key[1],
        source="records",
        runs=tuple(sorted({run.number for run, _group in members})),
        outcomes=dict(outcomes),
        **{name: _figures(successes, name) for name in FIGURES},
    )


def _with_values(groups: list[RequestGroup]) -> list[RequestGroup]:
    """The same groups; several come with their packed values, which one query reads for all of them."""
    stored = [group.pk for group in groups if group.pk is not None]
    if len(groups) < 2 or not stored:
        return groups
    read = RequestGroup.objects.filter(pk__in=stored).only(*FIGURES)
    return [*read, *(group for group in groups if group.pk is None)]


def _figures(groups: list[RequestGroup], name: str) -> dict[str, Any]:
    """The figures of one group as stored, of several over all their values."""
    if len(groups) == 1:
        return dict(groups[0].figures[name])
    parts = [np.frombuffer(getattr(group, name), dtype="<f8") for group in groups]
    # ascending parts: a stable sort merges them
    joined: Any = np.sort(np.concatenate(parts), kind="stable") if parts else ()
    return figures_of_sorted(joined)


def _of_summary(run: Run) -> Population:
    stated = counts_of_summary(run)
    return Population(
        tenant=run.tenant,
        application=run.application,
        source="summary",
        runs=(run.number,),
        outcomes=stated.outcomes,
        ttft_ms=stated.ttft_ms,
        tpot_ms=stated.tpot_ms,
        queue_wait_ms=stated.queue_wait_ms,
    )
