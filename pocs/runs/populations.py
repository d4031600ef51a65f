"""The requests of several runs by tenant and application: counts, errors, first token and generation."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from django.db.models import Count, Q

from inference.stats import figures
from pocs.runs.choices import Outcome
from pocs.runs.models import RequestRecord, Run

#: outcomes that are no errors: it worked, or we asked for its end
ASKED_FOR = (Outcome.SUCCESS, Outcome.CANCELLED)


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
    attempted: int
    succeeded: int
    errors: int
    ttft_ms: dict[str, Any]
    tpot_ms: dict[str, Any]
    queue_wait_ms: dict[str, Any]

    @property
    def error_rate(self) -> float | None:
        """Unsuccessful requests that were not asked for ÷ all attempted; null without any."""
        return self.errors / self.attempted if self.attempted else None


@dataclass(frozen=True)
class PopulationCount:
    """The same group in counts only: cheap over many requests, enough to say what is missing."""

    tenant: str
    application: str
    attempted: int
    succeeded: int
    with_first_token: int  # successes whose TTFT was observed
    with_generation: int  # successes whose TPOT was observed


def population_counts(runs: Iterable[Run]) -> list[PopulationCount]:
    """Counts per tenant and application over these runs, warm-up left out."""
    by_pk = {run.pk: run for run in runs}
    rows = RequestRecord.objects.filter(run__in=by_pk, warmup=False).order_by()
    success = Q(outcome=Outcome.SUCCESS)
    grouped = rows.values("tenant", "application").annotate(
        attempted=Count("pk"),
        succeeded=Count("pk", filter=success),
        with_first_token=Count("ttft_ms", filter=success),
        with_generation=Count("tpot_ms", filter=success),
    )
    found = [PopulationCount(**row) for row in grouped]
    recorded: set[Any] = set(rows.values_list("run_id", flat=True).distinct())
    for run in by_pk.values():
        if run.pk not in recorded and run.summary:
            group = _of_summary(run)
            found.append(
                PopulationCount(
                    tenant=group.tenant,
                    application=group.application,
                    attempted=group.attempted,
                    succeeded=group.succeeded,
                    with_first_token=group.ttft_ms.get("n") or 0,
                    with_generation=group.tpot_ms.get("n") or 0,
                )
            )
    return sorted(found, key=lambda group: (group.tenant, group.application))


def populations(runs: Iterable[Run]) -> list[Population]:
    """One population per tenant and application over these runs, warm-up left out."""
    by_pk = {run.pk: run for run in runs}
    groups: dict[tuple[str, str], list[tuple[Any, ...]]] = defaultdict(list)
    recorded: set[Any] = set()
    rows = RequestRecord.objects.filter(run__in=by_pk, warmup=False).order_by()
    for tenant, application, *row in rows.values_list(
        "tenant", "application", "run_id", "outcome", "ttft_ms", "tpot_ms", "queue_wait_ms"
    ):
        groups[tenant, application].append(tuple(row))
        recorded.add(row[0])
    found = [_of_records(key, rows, by_pk) for key, rows in groups.items()]
    found += [_of_summary(run) for run in by_pk.values() if run.pk not in recorded and run.summary]
    return sorted(found, key=lambda group: (group.tenant, group.application, group.source, group.runs))


def _of_records(key: tuple[str, str], rows: list[tuple[Any, ...]], by_pk: dict[int, Run]) -> Population:
    successes = [row for row in rows if row[1] == Outcome.SUCCESS]
    return Population(
        tenant=key[0],
        application=key[1],
        source="records",
        runs=tuple(sorted(by_pk[pk].number for pk in {row[0] for row in rows})),
        attempted=len(rows),
        succeeded=len(successes),
        errors=sum(row[1] not in ASKED_FOR for row in rows),
        ttft_ms=figures(row[2] for row in successes),
        tpot_ms=figures(row[3] for row in successes),
        queue_wait_ms=figures(row[4] for row in successes),
    )


def _of_summary(run: Run) -> Population:
    summary: dict[str, Any] = run.summary or {}
    counts = {outcome.value: (summary.get("requests") or {}).get(outcome.value) or 0 for outcome in Outcome}
    empty = figures([])
    return Population(
        tenant=run.tenant,
        application=run.application,
        source="summary",
        runs=(run.number,),
        attempted=sum(counts.values()),
        succeeded=counts[Outcome.SUCCESS],
        errors=sum(count for outcome, count in counts.items() if outcome not in ASKED_FOR),
        ttft_ms=summary.get("ttft_ms") or empty,
        tpot_ms=summary.get("tpot_ms") or empty,
        queue_wait_ms=summary.get("queue_wait_ms") or empty,
    )
