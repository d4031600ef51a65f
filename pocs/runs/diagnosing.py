"""What the diagnosis of a run and of one request needs from what is stored."""

from typing import Any, cast

from django.db.models import F

from inference.diagnosis import Goal, Setting, diagnose_request
from inference.diagnosis.crowd import Crowd, Span
from inference.diagnosis.requests import facts_of
from pocs.runs import selectors
from pocs.runs.models import RequestRecord, Run


def setting_of(run: Run) -> Setting:
    """What the run's figures cannot say: the project's goal, and how much its prompts share."""
    spec, settings = run.scenario_version.spec, run.target.engine_settings if run.target else {}
    return Setting(
        goal=cast("Goal | None", run.project.optimisation_goal or None),
        shared_prefix_tokens=spec.get("shared_prefix_tokens") or None,
        block_tokens=settings.get("block_tokens"),
    )


def request_diagnosis(record: RequestRecord) -> dict[str, Any]:
    """Where this request's time went, with who else was there and how full the cache was meanwhile."""
    if record.started_ms is None or record.e2e_ms is None:
        return diagnose_request(record.intervals_ms, e2e_ms=record.e2e_ms)
    end_ms = record.started_ms + record.e2e_ms
    return diagnose_request(
        record.intervals_ms,
        e2e_ms=record.e2e_ms,
        sent_ms=record.started_ms,
        crowd=Crowd(
            Span(start, start + before if before is not None else None, start + length)
            for start, before, length in _beside(record.run, record.started_ms, end_ms)
        ),
        samples=[
            {"at_ms": sample.at_ms, "kv_usage": sample.data.get("kv_usage")}
            for sample in selectors.samples_of(record.run).filter(at_ms__range=(record.started_ms, end_ms))
        ],
        facts=facts_of(record.__dict__, record.detail),
    )


def _beside(run: Run, start_ms: float, end_ms: float) -> list[tuple[float, float | None, float]]:
    """(sent, from sent to admitted, from sent to the end) in ms of the requests under way in a window."""
    rows = run.requests.filter(
        started_ms__lt=end_ms, e2e_ms__isnull=False, started_ms__gt=start_ms - F("e2e_ms")
    )
    found: list[tuple[float, float | None, float]] = []
    for sent_ms, length_ms, intervals_ms in rows.values_list("started_ms", "e2e_ms", "intervals_ms"):
        assert sent_ms is not None, "asked for by its beginning"
        assert length_ms is not None, "asked for by its end"
        queue_ms = intervals_ms.get("queue_wait")
        before = [intervals_ms.get(name) or 0.0 for name in ("throttled", "network")]
        found.append((sent_ms, None if queue_ms is None else sum(before) + queue_ms, length_ms))
    return found
