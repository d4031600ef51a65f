"""Runs: targets, matrix executions, runs with their request records and telemetry."""

from django.db import models
from django.utils.translation import gettext_lazy as _

from pocs.common.models import VersionedModel
from pocs.people.models import User
from pocs.projects.models import CIToken, Project, ScenarioVersion
from pocs.runs.choices import (
    AnswerVerdict,
    ExperimentState,
    MetricSet,
    Outcome,
    ReportKind,
    ReportState,
    RunOrigin,
    RunState,
    Side,
    TargetKind,
    Validity,
)
from pocs.runs.raw_reads import ReadsField


class Target(VersionedModel):
    """What is measured: the embedded engine with a model folder, or an endpoint."""

    project = models.ForeignKey(Project, models.CASCADE, related_name="targets")
    name = models.CharField(_("name"), max_length=120)
    kind = models.CharField(_("kind"), max_length=10, choices=TargetKind.choices)
    location = models.CharField(_("model folder or base URL"), max_length=500)
    model = models.CharField(_("model name"), max_length=200, blank=True)
    engine_settings = models.JSONField(default=dict, blank=True)  # `pocs.runs.engine_settings`
    endpoint_settings = models.JSONField(default=dict, blank=True)  # `pocs.runs.endpoint_settings`
    # what an optimisation is measured against: this target is a copy of it with one switch changed
    baseline = models.ForeignKey("self", models.SET_NULL, related_name="candidates", null=True, blank=True)
    credential = models.BinaryField(null=True, editable=False)  # encrypted; write-only everywhere

    class Meta:
        ordering = ["name", "id"]
        constraints = [models.UniqueConstraint(fields=["project", "name"], name="target_name_once")]

    def __str__(self) -> str:
        return self.name


class TargetReport(models.Model):
    """One look at an endpoint: the check before a run, or the habits of its streams. Holds no credential."""

    target = models.ForeignKey(Target, models.CASCADE, related_name="reports")
    kind = models.CharField(max_length=12, choices=ReportKind.choices)
    state = models.CharField(max_length=10, choices=ReportState.choices, default=ReportState.QUEUED)
    target_version = models.PositiveIntegerField()  # a changed target is an unchecked one
    requested_by = models.ForeignKey(User, models.PROTECT, related_name="+", null=True)
    steps_done = models.PositiveIntegerField(default=0)
    steps = models.PositiveIntegerField(default=0)
    ok = models.BooleanField(null=True)
    report = models.JSONField(default=dict)  # `inference.targets.check` or `…openai_conformance`
    error = models.TextField(blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    finished_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["-id"]
        indexes = [
            # the newest report of a kind, for the target page and the start of a run
            models.Index(fields=["target", "kind", "-id"], name="target_report_newest"),
        ]

    def __str__(self) -> str:
        return f"{self.get_kind_display()} of {self.target_id}"


class MatrixExecution(models.Model):
    """One start of the project's whole matrix: its runs share one target and one page."""

    project = models.ForeignKey(Project, models.CASCADE, related_name="matrix_executions")
    number = models.PositiveIntegerField()
    target = models.ForeignKey(Target, models.PROTECT, related_name="+")
    started_by = models.ForeignKey(User, models.PROTECT, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["-number"]
        constraints = [models.UniqueConstraint(fields=["project", "number"], name="matrix_number_once")]

    def __str__(self) -> str:
        return f"M{self.number}"


class Run(VersionedModel):
    """One execution of one scenario version, or one result that CI measured and submitted."""

    project = models.ForeignKey(Project, models.CASCADE, related_name="runs")
    number = models.PositiveIntegerField()
    scenario_version = models.ForeignKey(ScenarioVersion, models.PROTECT, related_name="runs")
    matrix = models.ForeignKey(MatrixExecution, models.PROTECT, related_name="runs", null=True)
    target = models.ForeignKey(Target, models.PROTECT, related_name="runs", null=True)
    origin = models.CharField(max_length=10, choices=RunOrigin.choices, default=RunOrigin.EXECUTED)
    metric_set = models.CharField(max_length=20, choices=MetricSet.choices, default=MetricSet.POC_SIX)
    state = models.CharField(max_length=12, choices=RunState.choices, default=RunState.QUEUED)
    validity = models.CharField(max_length=12, choices=Validity.choices, default=Validity.PENDING)
    validity_reasons = models.JSONField(default=list)
    superseded_by = models.ForeignKey("self", models.PROTECT, related_name="supersedes", null=True)

    requested_by = models.ForeignKey(User, models.PROTECT, related_name="+")  # a token's sponsor counts
    token = models.ForeignKey(CIToken, models.PROTECT, related_name="runs", null=True)
    tenant = models.CharField(max_length=120, blank=True)
    application = models.CharField(max_length=120, blank=True)

    progress = models.JSONField(default=dict)  # {"phase", "done", "total", "failed"}
    summary = models.JSONField(null=True)  # summary.json of cli.md
    diagnosis = models.JSONField(null=True)  # inference.diagnosis verdict
    configuration = models.JSONField(null=True)  # model digest, engine settings, versions, environment
    configuration_digest = models.CharField(max_length=64, blank=True)
    manifest = models.JSONField(null=True)  # digests of the records and of their segments
    target_check = models.JSONField(null=True)  # what was known of the endpoint when the run was started
    rescored = models.JSONField(null=True)  # the same records by the definitions of other tools
    error = models.TextField(blank=True)

    enqueued_at = models.DateTimeField(null=True)  # when a task was last sent for it
    lease_owner = models.CharField(max_length=120, blank=True)
    lease_expires_at = models.DateTimeField(null=True)
    attempt = models.PositiveIntegerField(default=0)
    cancel_requested_at = models.DateTimeField(null=True)
    started_at = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)

    ci_provider = models.CharField(max_length=60, blank=True)
    ci_run = models.CharField(max_length=120, blank=True)
    ci_attempt = models.PositiveIntegerField(null=True)
    ci_commit = models.CharField(max_length=64, blank=True)
    ci_payload_digest = models.CharField(max_length=64, blank=True)
    submission = models.JSONField(null=True)  # what CI submitted (`poc-run/1`), without its requests

    class Meta:
        ordering = ["-number"]
        constraints = [
            models.UniqueConstraint(fields=["project", "number"], name="run_number_once"),
            models.UniqueConstraint(
                fields=["project", "ci_provider", "ci_run", "ci_attempt", "scenario_version"],
                condition=models.Q(origin="ingested"),
                name="ci_run_once",
            ),
        ]
        indexes = [
            # the reaper looks for expired leases among the few active runs
            models.Index(
                fields=["lease_expires_at"],
                condition=models.Q(state__in=["preparing", "warming", "measuring", "finalising"]),
                name="run_expired_lease",
            ),
            # the reaper looks for queued runs whose task was lost
            models.Index(fields=["enqueued_at"], condition=models.Q(state="queued"), name="run_still_queued"),
        ]

    def __str__(self) -> str:
        return f"R{self.number}"

    @property
    def counts_as_evidence(self) -> bool:
        """Only a complete and valid run may stand behind a statement."""
        return self.state == RunState.COMPLETE and self.validity == Validity.VALID


class RequestRecord(models.Model):
    """One request of a run: the row of `requests.jsonl`, its main figures as columns for queries."""

    run = models.ForeignKey(Run, models.CASCADE, related_name="requests")
    index = models.PositiveIntegerField()  # position in the input; warm-up requests count apart
    request_id = models.CharField(max_length=120)
    outcome = models.CharField(max_length=14, choices=Outcome.choices)
    finish_reason = models.CharField(max_length=40, null=True)  # noqa: DJ001 null means not told
    error = models.TextField(null=True)  # noqa: DJ001 null means none
    tenant = models.CharField(max_length=120, blank=True)
    application = models.CharField(max_length=120, blank=True)
    started_ms = models.FloatField(null=True)  # `sent` since the start of the run
    input_tokens = models.PositiveIntegerField(null=True)
    cached_tokens = models.PositiveIntegerField(null=True)
    output_tokens = models.PositiveIntegerField(null=True)
    output_tokens_source = models.CharField(max_length=12, blank=True)
    ttft_ms = models.FloatField(null=True)
    ttfv_ms = models.FloatField(null=True)
    ttfot_ms = models.FloatField(null=True)
    tpot_ms = models.FloatField(null=True)
    e2e_ms = models.FloatField(null=True)
    max_gap_ms = models.FloatField(null=True)
    queue_wait_ms = models.FloatField(null=True)
    prefill_ms = models.FloatField(null=True)
    decode_ms = models.FloatField(null=True)
    stamps = models.JSONField(default=dict)
    intervals_ms = models.JSONField(default=dict)
    reads = ReadsField(default=list)  # in the segment, where there is one
    # where the raw record lies: segment of the run, offset of its block, position in the block
    segment = models.PositiveIntegerField(null=True)
    segment_block = models.PositiveBigIntegerField(null=True)
    segment_item = models.PositiveIntegerField(null=True)
    text = models.TextField(blank=True)
    reasoning_text = models.TextField(blank=True)
    token_ids = models.JSONField(null=True)
    warmup = models.BooleanField(default=False)
    flags = models.JSONField(default=list)  # what a reader must know of the figures
    detail = models.JSONField(default=dict)  # status, prefill chunks, preemptions, what the server told

    class Meta:
        ordering = ["run_id", "-warmup", "index"]
        constraints = [models.UniqueConstraint(fields=["run", "warmup", "index"], name="request_index_once")]
        indexes = [
            # E2: "can be queried by tenant or application"
            models.Index(fields=["run", "tenant", "application"], name="request_by_tenant"),
            models.Index(fields=["run", "application"], name="request_by_application"),
            models.Index(fields=["run", "warmup", "outcome", "index"], name="request_by_outcome"),
            # the waterfall of the run page and queries by time
            models.Index(fields=["run", "warmup", "started_ms", "index"], name="request_by_time"),
            # slowest requests of a run
            models.Index(fields=["run", "-e2e_ms"], name="request_slowest"),
        ]

    def __str__(self) -> str:
        return self.request_id


class RecordSegment(models.Model):
    """One file of raw records of a run (`inference.recording`), with its digest once it is closed."""

    run = models.ForeignKey(Run, models.CASCADE, related_name="segments")
    number = models.PositiveIntegerField()
    name = models.CharField(max_length=200)  # below the folder of all records
    records = models.PositiveIntegerField(default=0)
    size_bytes = models.PositiveBigIntegerField(default=0)
    sha256 = models.CharField(max_length=64, blank=True)  # empty while it is written
    torn_bytes = models.PositiveBigIntegerField(default=0)  # cut off its end after a crash

    class Meta:
        ordering = ["run_id", "number"]
        constraints = [models.UniqueConstraint(fields=["run", "number"], name="segment_number_once")]

    def __str__(self) -> str:
        return self.name


class TelemetrySample(models.Model):
    """One sample of the resources during a run, on the run's own time axis."""

    run = models.ForeignKey(Run, models.CASCADE, related_name="telemetry")
    at_ms = models.FloatField()  # since the start of the run
    data = models.JSONField()  # keys as in `inference.telemetry`

    class Meta:
        ordering = ["run_id", "at_ms"]
        indexes = [models.Index(fields=["run", "at_ms"], name="telemetry_by_time")]

    def __str__(self) -> str:
        return f"{self.run_id} at {self.at_ms:.0f} ms"


class RunArtifact(models.Model):
    """A file that an ingested result names by digest; the run completes when every one is verified."""

    run = models.ForeignKey(Run, models.CASCADE, related_name="artifacts")
    name = models.CharField(max_length=200)
    sha256 = models.CharField(max_length=64)
    size_bytes = models.PositiveBigIntegerField()
    file = models.FileField(upload_to="artifacts/%Y/%m/", blank=True)
    verified_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["run_id", "name"]
        constraints = [models.UniqueConstraint(fields=["run", "name"], name="artifact_name_once")]

    def __str__(self) -> str:
        return self.name


class Experiment(VersionedModel):
    """A baseline and a candidate that differ in one declared change, run in turns and compared."""

    project = models.ForeignKey(Project, models.CASCADE, related_name="experiments")
    number = models.PositiveIntegerField()
    name = models.CharField(_("name"), max_length=160)
    scenario_version = models.ForeignKey(ScenarioVersion, models.PROTECT, related_name="+")
    candidate_version = models.ForeignKey(ScenarioVersion, models.PROTECT, related_name="+")
    baseline_target = models.ForeignKey(Target, models.PROTECT, related_name="+")
    candidate_target = models.ForeignKey(Target, models.PROTECT, related_name="+")
    declared_change = models.CharField(max_length=80)  # path of the one setting that differs
    repeats = models.PositiveSmallIntegerField(_("repeats of each side"))
    price_per_hour = models.FloatField(_("price of the device per hour"), null=True)
    state = models.CharField(max_length=10, choices=ExperimentState.choices, default=ExperimentState.RUNNING)
    result = models.JSONField(null=True)  # `pocs.runs.experimenting.conclusion`
    rollback_run = models.ForeignKey(Run, models.PROTECT, related_name="+", null=True)
    started_by = models.ForeignKey(User, models.PROTECT, related_name="+")

    class Meta:
        ordering = ["-number"]
        constraints = [models.UniqueConstraint(fields=["project", "number"], name="experiment_number_once")]
        indexes = [
            # the reaper looks for experiments whose runs may all have ended
            models.Index(fields=["state"], condition=models.Q(state="running"), name="experiment_running"),
        ]

    def __str__(self) -> str:
        return f"X{self.number}"


class ExperimentRun(models.Model):
    """One run of an experiment, with its side and its place in the order ABBA."""

    experiment = models.ForeignKey(Experiment, models.CASCADE, related_name="runs")
    run = models.OneToOneField(Run, models.PROTECT, related_name="experiment_run")
    side = models.CharField(max_length=10, choices=Side.choices)
    position = models.PositiveSmallIntegerField()

    class Meta:
        ordering = ["experiment_id", "position"]
        constraints = [
            models.UniqueConstraint(fields=["experiment", "position"], name="experiment_position_once")
        ]

    def __str__(self) -> str:
        return f"{self.experiment} {self.side} {self.position}"


class Baseline(VersionedModel):
    """Runs of one configuration that later ones are held against; what they differ by is its noise."""

    project = models.ForeignKey(Project, models.CASCADE, related_name="baselines")
    name = models.CharField(_("name"), max_length=120)
    runs = models.ManyToManyField(Run, related_name="baselines")
    noise = models.FloatField(null=True)  # share taken as noise where a single run tells none
    created_by = models.ForeignKey(User, models.PROTECT, related_name="+")

    class Meta:
        ordering = ["name", "id"]
        constraints = [models.UniqueConstraint(fields=["project", "name"], name="baseline_name_once")]

    def __str__(self) -> str:
        return self.name


class AnswerSample(models.Model):
    """Answers drawn by a seed, some of each scenario, for people to accept or refuse (Q14)."""

    project = models.ForeignKey(Project, models.CASCADE, related_name="answer_samples")
    number = models.PositiveIntegerField()
    seed = models.CharField(max_length=64)
    per_scenario = models.PositiveSmallIntegerField()
    drawn_by = models.ForeignKey(User, models.PROTECT, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["-number"]
        constraints = [
            models.UniqueConstraint(fields=["project", "number"], name="answer_sample_number_once")
        ]

    def __str__(self) -> str:
        return f"A{self.number}"


class SampledAnswer(VersionedModel):
    """One answer of a sample as it was when it was drawn, and what was said of it."""

    sample = models.ForeignKey(AnswerSample, models.CASCADE, related_name="answers")
    run = models.ForeignKey(Run, models.PROTECT, related_name="+")
    request_index = models.PositiveIntegerField()
    prompt = models.TextField()
    answer = models.TextField()
    verdict = models.CharField(max_length=8, choices=AnswerVerdict.choices, default=AnswerVerdict.OPEN)
    reason = models.TextField(blank=True)
    judged_by = models.ForeignKey(User, models.PROTECT, related_name="+", null=True)
    judged_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["sample_id", "id"]
        constraints = [
            models.UniqueConstraint(fields=["sample", "run", "request_index"], name="sampled_answer_once")
        ]

    def __str__(self) -> str:
        return f"{self.sample}: {self.run} #{self.request_index}"
