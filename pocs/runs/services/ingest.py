"""Results that CI measured elsewhere (`poc-run/1`): checked, stored once, judged like any other run."""

from datetime import datetime
from typing import Any

from django.db import IntegrityError, transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from inference.criteria import judge_limits
from inference.diagnosis import diagnose
from pocs.common import audit
from pocs.common.actors import Actor
from pocs.common.canonical import digest
from pocs.common.errors import Conflict, FieldError, InvalidInput
from pocs.people import policies
from pocs.projects.models import Project, ScenarioVersion
from pocs.projects.selectors import scenario_version_find
from pocs.runs.choices import MetricSet, Outcome, RunOrigin, RunState
from pocs.runs.diagnosing import setting_of
from pocs.runs.judgement import judge
from pocs.runs.lifecycle import announce
from pocs.runs.manifest import manifest_of_rows
from pocs.runs.models import RequestRecord, Run, RunArtifact
from pocs.runs.poc_run import in_house_units, poc_run_check
from pocs.runs.services.running import check_open, next_run_number, responsible_person

ATTEMPTS = 5


def run_ingest(*, actor: Actor, project: Project, payload: dict[str, Any]) -> tuple[Run, bool]:
    """Store a finished result; returns the run and whether it is new.

    Equal content for the same provider, run, attempt and scenario gives the stored run again; other
    content raises Conflict that names the stored commit. Wrong input raises InvalidInput by pointer.
    """
    policies.require(actor, "run.execute", project)
    check_open(project)
    poc_run_check(payload)
    version = scenario_version_find(project, payload["scenario"])
    outcomes = _outcomes(payload)
    for attempt in range(ATTEMPTS):
        try:
            with transaction.atomic():
                number = next_run_number(project)
                stored = _stored(project, version, payload)
                if stored is not None:
                    return _same_or_conflict(stored, payload), False
                return _store(actor, version, payload, outcomes, number), True
        except IntegrityError:
            if attempt == ATTEMPTS - 1:
                raise
    raise AssertionError("unreachable")


def _stored(project: Project, version: ScenarioVersion, payload: dict[str, Any]) -> Run | None:
    return Run.objects.filter(
        project=project,
        origin=RunOrigin.INGESTED,
        ci_provider=payload["provider"],
        ci_run=payload["run"],
        ci_attempt=payload["attempt"],
        scenario_version=version,
    ).first()


def _same_or_conflict(stored: Run, payload: dict[str, Any]) -> Run:
    if stored.ci_payload_digest == digest(payload):
        return stored
    text = _(
        "%(provider)s run %(run)s, attempt %(attempt)s is already stored as %(stored)s with commit "
        "%(commit)s and other content; submit a new attempt instead."
    ) % {
        "provider": stored.ci_provider,
        "run": stored.ci_run,
        "attempt": stored.ci_attempt,
        "stored": stored,
        "commit": stored.ci_commit,
    }
    raise Conflict(text, stored_commit=stored.ci_commit, stored_run=stored.pk)


def _store(
    actor: Actor,
    version: ScenarioVersion,
    payload: dict[str, Any],
    outcomes: dict[str, int],
    number: int,
) -> Run:
    now, project = timezone.now(), version.scenario.project
    summary = _summary(payload, outcomes)
    rows = _request_rows(payload)
    if limits := version.spec.get("limits"):
        summary["limits"] = judge_limits(limits, rows, summary)
    artifacts = payload.get("artifacts") or []
    run = Run(
        project=project,
        number=number,
        scenario_version=version,
        origin=RunOrigin.INGESTED,
        metric_set=payload.get("metric_set") or MetricSet.POC_SIX,
        state=RunState.FINALISING if artifacts else RunState.COMPLETE,
        requested_by_id=responsible_person(actor),
        token_id=actor.token_id,
        tenant=payload.get("tenant") or "",
        application=payload.get("application") or "",
        progress={
            "phase": "complete",
            "done": payload["load"]["requests"],
            "total": payload["load"]["requests"],
            "failed": _failed(outcomes),
        },
        summary=summary,
        configuration={"configuration": payload["configuration"], "environment": payload["environment"]},
        configuration_digest=digest(payload["configuration"]),
        started_at=_moment(payload["load"].get("started_at")) or now,
        finished_at=_moment(payload["load"].get("finished_at")) or now,
        ci_provider=payload["provider"],
        ci_run=payload["run"],
        ci_attempt=payload["attempt"],
        ci_commit=payload["commit"],
        ci_payload_digest=digest(payload),
        submission={key: value for key, value in payload.items() if key != "requests"},
    )
    run.diagnosis = diagnose([], summary, setting=setting_of(run))
    run.validity, run.validity_reasons = judge(run.metric_set, summary)
    run.manifest = manifest_of_rows(rows)
    run.save(force_insert=True)
    for row in rows:
        row.run = run
    RequestRecord.objects.bulk_create(rows, batch_size=200)
    RunArtifact.objects.bulk_create([RunArtifact(run=run, **artifact) for artifact in artifacts])
    audit.record(
        actor=actor,
        verb="run.ingested",
        obj=run,
        project_id=project.pk,
        after={
            "state": run.state,
            "validity": run.validity,
            "scenario": str(version),
            "commit": run.ci_commit,
            "payload": run.ci_payload_digest,
        },
    )
    announce(run)
    return run


def _moment(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text) if text else None


def _outcomes(payload: dict[str, Any]) -> dict[str, int]:
    """Requests by outcome, counted from the requests where `outcomes` is absent; empty when neither tells.

    Raises InvalidInput when the counts contradict each other.
    """
    rows = payload.get("requests") or []
    counted = {name: sum(row["outcome"] == name for row in rows) for name in Outcome.values}
    attempted = payload["load"]["requests"]
    given = payload.get("outcomes")
    if given is None and not rows:
        return {}
    stated = counted if given is None else {name: given.get(name, 0) for name in Outcome.values}
    wrong = []
    if sum(stated.values()) != attempted:
        text = _("The outcomes add up to %(sum)s, but %(attempted)s requests were attempted.")
        figures = {"sum": sum(stated.values()), "attempted": attempted}
        wrong.append(FieldError("/outcomes" if given else "/requests", "sum", text % figures))
    if given is not None and rows and stated != counted:
        wrong.append(
            FieldError("/outcomes", "contradicts", _("The outcomes are not those of the requests listed."))
        )
    if wrong:
        raise InvalidInput(_("The numbers of requests contradict each other."), wrong)
    return stated


def _failed(outcomes: dict[str, int]) -> int:
    return sum(count for name, count in outcomes.items() if name not in ("success", "cancelled"))


def _summary(payload: dict[str, Any], outcomes: dict[str, int]) -> dict[str, Any]:
    """The fields of summary.json, each figure from the payload; null where it told nothing."""
    metrics, load = in_house_units(payload), payload["load"]
    error_rate = metrics["error_rate"]
    if error_rate is None and outcomes:
        error_rate = _failed(outcomes) / load["requests"]
    return {
        "schema": "phasegate-run/1",
        "source": "ingested",
        "requests": outcomes or None,
        "attempted": load["requests"],
        "succeeded": outcomes.get("success"),
        "window_s": load.get("window_s"),
        "load": load,
        "input_tokens": metrics["input_tokens"],
        "output_tokens": metrics["output_tokens"],
        "output_tokens_per_second": metrics["output_throughput"],
        "total_tokens_per_second": metrics["total_throughput"],
        "requests_per_second": metrics["request_throughput"],
        "error_rate": error_rate,
        **{
            f"{name}_ms": metrics[name]
            for name in ("ttft", "tpot", "itl", "e2e", "queue_wait", "prefill", "decode")
        },
        "cache_hit_rate": metrics["cache_hit_rate"],
        "memory": _told(peak_bytes=metrics["memory_peak"]),
        "engine": _told(gpu_utilisation_mean=metrics["gpu_utilisation"]),
        "validity": {"valid": True, "reasons": []},
        "environment": payload["environment"],
    }


def _told(**values: float | None) -> dict[str, float] | None:
    """What was told of these figures; null when nothing was."""
    return {name: value for name, value in values.items() if value is not None} or None


def _request_rows(payload: dict[str, Any]) -> list[RequestRecord]:
    rows = []
    for index, given in enumerate(payload.get("requests") or []):
        intervals = given.get("intervals_ms") or {}
        rows.append(
            RequestRecord(
                index=index,
                request_id=given["id"],
                outcome=given["outcome"],
                finish_reason=given.get("finish_reason"),
                error=given.get("error"),
                tenant=given.get("tenant") or payload.get("tenant") or "",
                application=given.get("application") or payload.get("application") or "",
                output_tokens_source=given.get("output_tokens_source") or "",
                text=given.get("text") or "",
                reasoning_text=given.get("reasoning_text") or "",
                intervals_ms=intervals,
                queue_wait_ms=intervals.get("queue_wait"),
                prefill_ms=intervals.get("prefill"),
                decode_ms=intervals.get("decode"),
                **{
                    name: given.get(name)
                    for name in (
                        "input_tokens",
                        "cached_tokens",
                        "output_tokens",
                        "ttft_ms",
                        "ttfv_ms",
                        "ttfot_ms",
                        "tpot_ms",
                        "e2e_ms",
                        "max_gap_ms",
                    )
                },
            )
        )
    return rows
