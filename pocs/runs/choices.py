"""Choice sets of runs and targets."""

from django.db import models
from django.utils.translation import gettext_lazy as _


class TargetKind(models.TextChoices):
    ENGINE = "engine", _("Embedded engine")
    HTTP = "http", _("OpenAI-compatible endpoint")


class RunState(models.TextChoices):
    QUEUED = "queued", _("Queued")
    PREPARING = "preparing", _("Preparing")
    WARMING = "warming", _("Warming up")
    MEASURING = "measuring", _("Measuring")
    FINALISING = "finalising", _("Finalising")
    COMPLETE = "complete", _("Complete")
    FAILED = "failed", _("Failed")
    CANCELLED = "cancelled", _("Cancelled")
    INTERRUPTED = "interrupted", _("Interrupted")


ACTIVE_STATES = [
    RunState.QUEUED,
    RunState.PREPARING,
    RunState.WARMING,
    RunState.MEASURING,
    RunState.FINALISING,
]
#: states in which a worker holds the lease
LEASED_STATES = ACTIVE_STATES[1:]
FINAL_STATES = [RunState.COMPLETE, RunState.FAILED, RunState.CANCELLED, RunState.INTERRUPTED]


class Validity(models.TextChoices):
    PENDING = "pending", _("Not judged yet")
    VALID = "valid", _("Valid")
    INVALID = "invalid", _("Invalid")
    SUPERSEDED = "superseded", _("Superseded")


class RunOrigin(models.TextChoices):
    EXECUTED = "executed", _("Executed by the platform")
    INGESTED = "ingested", _("Submitted by CI")


class MetricSet(models.TextChoices):
    MINIMUM_EIGHT = "minimum_eight", _("Minimum eight (M1–M8)")
    POC_SIX = "poc_six", _("POC six (M1–M4, M6, M7)")
    MONITORING_FIVE = "monitoring_five", _("Monitoring five (M1, M2, M6, M7, M9)")


class Outcome(models.TextChoices):
    SUCCESS = "success", _("Success")
    FAILED = "failed", _("Failed")
    INCOMPLETE = "incomplete", _("Incomplete")
    CANCELLED = "cancelled", _("Cancelled on purpose")
    RATE_LIMITED = "rate_limited", _("Rate limited")
    TIMEOUT = "timeout", _("Timed out")
    REJECTED = "rejected", _("Rejected")


class ReportKind(models.TextChoices):
    """What was looked at of an endpoint."""

    CHECK = "check", _("check before a run")
    CONFORMANCE = "conformance", _("stream habits")


class ReportState(models.TextChoices):
    """How far a report is."""

    QUEUED = "queued", _("queued")
    RUNNING = "running", _("running")
    DONE = "done", _("done")
    FAILED = "failed", _("failed")


class ExperimentState(models.TextChoices):
    RUNNING = "running", _("Running")
    COMPLETE = "complete", _("Complete")
    CANCELLED = "cancelled", _("Cancelled")


class Side(models.TextChoices):
    BASELINE = "baseline", _("Baseline")
    CANDIDATE = "candidate", _("Candidate")


class AnswerVerdict(models.TextChoices):
    OPEN = "open", _("Not judged yet")
    ACCEPTED = "accepted", _("Accepted")
    REFUSED = "refused", _("Refused")
