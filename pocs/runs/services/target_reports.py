"""Looks at endpoints: the check before a run, and the habits of their streams."""

import asyncio
import logging
import queue
from concurrent.futures import ThreadPoolExecutor, wait
from typing import Any

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from inference.errors import InferenceError
from inference.targets.check import check_endpoint
from inference.targets.openai_conformance import conformance
from pocs.common import audit
from pocs.common.actors import Actor
from pocs.common.errors import Conflict, DomainError, InvalidInput
from pocs.people import policies
from pocs.runs.choices import ReportKind, ReportState, TargetKind
from pocs.runs.credentials import unseal
from pocs.runs.endpoint_settings import options_of
from pocs.runs.endpoint_wording import check_headline
from pocs.runs.models import Target, TargetReport
from pocs.runs.queue import enqueue_conformance
from pocs.runs.services.targets import model_path
from pocs.runs.target_reports import under_way
from pocs.runs.targets import endpoint_target

logger = logging.getLogger(__name__)

PROGRESS_EVERY_S = 0.5


def target_check(*, actor: Actor, target: Target) -> dict[str, Any]:
    """Whether the target can be measured now: `{"ok", "text": one sentence, "configuration", "report"}`.

    An engine target is checked by its files (nothing is loaded), an endpoint by one short answer; its
    report is stored and is what a run started later refers to.
    """
    policies.require(actor, "target.edit", target.project)
    if target.kind == TargetKind.ENGINE:
        try:
            model_path(target.location)
        except InvalidInput as error:
            return {"ok": False, "text": str(error.errors[0].detail), "configuration": {}, "report": None}
        return {"ok": True, "text": _("The model files are there."), "configuration": {}, "report": None}
    found = asyncio.run(check_endpoint(endpoint_target(target), has_key=target.credential is not None))
    with transaction.atomic():
        report = TargetReport.objects.create(
            target=target,
            kind=ReportKind.CHECK,
            state=ReportState.DONE,
            target_version=target.version,
            requested_by_id=actor.user_id,
            ok=found["ok"],
            report=found,
            finished_at=timezone.now(),
        )
        audit.record(
            actor=actor,
            verb="target.checked",
            obj=target,
            project_id=target.project_id,
            after={"ok": found["ok"], "report": report.pk, "target_version": target.version},
        )
    return {
        "ok": found["ok"],
        "text": check_headline(found),
        "configuration": found["configuration"],
        "report": report.pk,
    }


def conformance_start(*, actor: Actor, target: Target) -> TargetReport:
    """Queue a look at the stream habits of an endpoint; Conflict while one is under way."""
    policies.require(actor, "target.edit", target.project)
    if target.kind != TargetKind.HTTP:
        raise InvalidInput(_("Stream habits are looked at for endpoints; the embedded engine is known."))
    with transaction.atomic():
        Target.objects.select_for_update().get(pk=target.pk)
        if under_way(target):
            raise Conflict(_("The stream habits of this target are being looked at already."))
        report = TargetReport.objects.create(
            target=target,
            kind=ReportKind.CONFORMANCE,
            target_version=target.version,
            requested_by_id=actor.user_id,
        )
        audit.record(
            actor=actor,
            verb="target.conformance_started",
            obj=target,
            project_id=target.project_id,
            after={"report": report.pk, "target_version": target.version},
        )
        enqueue_conformance(report.pk)
    return report


def conformance_execute(report_id: int) -> None:
    """Look at the habits of a queued report's target; a redelivered copy finds it taken and returns."""
    taken = TargetReport.objects.filter(pk=report_id, state=ReportState.QUEUED)
    if not taken.update(state=ReportState.RUNNING):
        return
    report = TargetReport.objects.select_related("target").get(pk=report_id)
    try:
        found = _look(report)
    except (InferenceError, DomainError) as error:
        _end(report, state=ReportState.FAILED, ok=False, error=str(error))
    except Exception as error:
        logger.exception("stream habits of target %s", report.target_id)
        text = _("It failed inside the platform (%(kind)s); the worker's log has the details.")
        _end(report, state=ReportState.FAILED, ok=False, error=text % {"kind": type(error).__name__})
    else:
        misleading = any(habit["effect"] == "misleads" for habit in found["habits"])
        _end(report, state=ReportState.DONE, ok=not misleading, report=found)


def _look(report: TargetReport) -> dict[str, Any]:
    """Send the requests from a loop in a thread of its own; this thread writes how far they are."""
    target, steps = report.target, queue.SimpleQueue[tuple[int, int]]()
    key = unseal(target.credential)

    def look() -> dict[str, Any]:
        return asyncio.run(
            conformance(
                target.location,
                target.model,
                api_key=key,
                endpoint=options_of(target.endpoint_settings)["endpoint"],
                on_step=lambda done, of: steps.put((done, of)),
            )
        )

    with ThreadPoolExecutor(1, thread_name_prefix="conformance") as pool:
        work = pool.submit(look)
        while not work.done():
            wait([work], timeout=PROGRESS_EVERY_S)
            _progress(report, steps)
    return work.result()


def _progress(report: TargetReport, steps: "queue.SimpleQueue[tuple[int, int]]") -> None:
    last = None
    while not steps.empty():
        last = steps.get()
    if last is not None:
        TargetReport.objects.filter(pk=report.pk).update(steps_done=last[0], steps=last[1])


def _end(row: TargetReport, /, **changes: Any) -> None:
    for name, value in changes.items():
        setattr(row, name, value)
    row.finished_at = timezone.now()
    row.save(update_fields=[*changes, "finished_at"])
