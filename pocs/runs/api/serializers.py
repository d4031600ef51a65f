"""Runs, their requests, targets and matrices as the API shows and takes them."""

from typing import Any

from rest_framework import serializers

from pocs.common.api.serializers import StrictSerializer
from pocs.runs.choices import (
    MetricSet,
    Outcome,
    ReportKind,
    ReportState,
    RunOrigin,
    RunState,
    TargetKind,
    Validity,
)
from pocs.runs.engine_settings import DEFAULTS
from pocs.runs.exports import readable_line
from pocs.runs.models import RequestRecord, Run
from pocs.runs.wording import Sentence, validity_sentences, verdict_of
from pocs.runs.wording.kinds import statement


class ProgressSerializer(serializers.Serializer):
    phase = serializers.CharField()
    done = serializers.IntegerField(allow_null=True)
    total = serializers.IntegerField(allow_null=True)
    failed = serializers.IntegerField(allow_null=True)
    elapsed_ms = serializers.IntegerField(allow_null=True, required=False)
    stage = serializers.CharField(required=False, help_text="part of the kind's procedure")
    stage_number = serializers.IntegerField(required=False)
    stages = serializers.IntegerField(required=False)


class SentenceSerializer(serializers.Serializer):
    """One finding, advice or reason: a stable code, its sentence, and the figures it rests on."""

    code = serializers.CharField()
    text = serializers.CharField()
    figures = serializers.DictField()


class CISerializer(serializers.Serializer):
    """Where a submitted result comes from."""

    provider = serializers.CharField(source="ci_provider")
    run = serializers.CharField(source="ci_run")
    attempt = serializers.IntegerField(source="ci_attempt")
    commit = serializers.CharField(source="ci_commit")


class RunItemSerializer(serializers.Serializer):
    """A run as lists show it: without summary, diagnosis, configuration and manifest."""

    id = serializers.IntegerField()
    number = serializers.IntegerField()
    project = serializers.IntegerField(source="project_id")
    scenario = serializers.SerializerMethodField(help_text="slug@version")
    target = serializers.IntegerField(source="target_id", allow_null=True)
    matrix = serializers.IntegerField(source="matrix_id", allow_null=True)
    origin = serializers.ChoiceField(choices=RunOrigin.choices)
    metric_set = serializers.ChoiceField(choices=MetricSet.choices)
    state = serializers.ChoiceField(choices=RunState.choices)
    validity = serializers.ChoiceField(choices=Validity.choices)
    progress = ProgressSerializer()
    error = serializers.CharField(allow_blank=True)
    tenant = serializers.CharField(allow_blank=True)
    application = serializers.CharField(allow_blank=True)
    ci = serializers.SerializerMethodField()
    created_at = serializers.DateTimeField()
    started_at = serializers.DateTimeField(allow_null=True)
    finished_at = serializers.DateTimeField(allow_null=True)
    version = serializers.IntegerField()

    def get_scenario(self, run: Run) -> str:
        return str(run.scenario_version)

    def get_ci(self, run: Run) -> CISerializer(allow_null=True):  # type: ignore[valid-type]
        return CISerializer(run).data if run.origin == RunOrigin.INGESTED else None


class ArtifactSerializer(serializers.Serializer):
    """A file that a submitted result names; the run completes when all of them are verified."""

    name = serializers.CharField()
    sha256 = serializers.CharField()
    size_bytes = serializers.IntegerField()
    verified_at = serializers.DateTimeField(allow_null=True)


class RunSerializer(RunItemSerializer):
    """One run with everything it states; what was not observed is null."""

    validity_reasons = serializers.SerializerMethodField()
    summary = serializers.DictField(allow_null=True, help_text="the fields of summary.json (phasegate-run/1)")
    diagnosis = serializers.SerializerMethodField()
    kind_findings = serializers.SerializerMethodField(
        help_text="what the scenario's kind found, in sentences; its figures are in summary.kind"
    )
    configuration = serializers.DictField(allow_null=True)
    configuration_digest = serializers.CharField(allow_blank=True)
    manifest = serializers.DictField(allow_null=True, help_text="digests of the run's records")
    superseded_by = serializers.IntegerField(source="superseded_by_id", allow_null=True)
    attempt = serializers.IntegerField()
    cancel_requested_at = serializers.DateTimeField(allow_null=True)
    artifacts = ArtifactSerializer(many=True)

    def get_validity_reasons(self, run: Run) -> SentenceSerializer(many=True):  # type: ignore[valid-type]
        return [_as_json(sentence) for sentence in validity_sentences(run)]

    def get_kind_findings(self, run: Run) -> SentenceSerializer(many=True):  # type: ignore[valid-type]
        return _kind_findings(run)

    def get_diagnosis(self, run: Run) -> dict[str, Any] | None:
        """The verdict with its sentences in the caller's language."""
        verdict = verdict_of(run)
        if verdict is None:
            return None
        found = dict(run.diagnosis or {})
        findings = [_as_json(sentence) for sentence in verdict.findings]
        advice = [
            _as_json(sentence) | {"stage": sentence.stage, "area": sentence.area}
            for sentence in verdict.advice
        ]
        return found | {"text": verdict.headline, "findings": findings, "advice": advice}


def _kind_findings(run: Run) -> list[dict[str, Any]]:
    found = (run.summary or {}).get("kind") or {}
    return [_as_json(statement(item)) for item in found.get("statements", ())]


def _as_json(sentence: Sentence) -> dict[str, Any]:
    return {"code": sentence.code, "text": sentence.text, "figures": dict(sentence.figures)}


class RequestSerializer(serializers.Serializer):
    """One request of a run: the fields of a line of requests.jsonl; null where nothing was observed."""

    id = serializers.CharField()
    outcome = serializers.ChoiceField(choices=Outcome.choices)
    finish_reason = serializers.CharField(allow_null=True)
    error = serializers.CharField(allow_null=True)
    text = serializers.CharField()
    reasoning_text = serializers.CharField()
    token_ids = serializers.ListField(child=serializers.IntegerField(), allow_null=True)
    input_tokens = serializers.IntegerField(allow_null=True)
    cached_tokens = serializers.IntegerField(allow_null=True)
    output_tokens = serializers.IntegerField(allow_null=True)
    output_tokens_source = serializers.CharField(allow_null=True)
    ttft_ms = serializers.FloatField(allow_null=True)
    ttfv_ms = serializers.FloatField(allow_null=True)
    ttfot_ms = serializers.FloatField(allow_null=True)
    tpot_ms = serializers.FloatField(allow_null=True)
    e2e_ms = serializers.FloatField(allow_null=True)
    max_gap_ms = serializers.FloatField(allow_null=True)
    stamps = serializers.DictField(help_text="`*_ns` on the monotonic clock of the measuring host")
    intervals_ms = serializers.DictField(child=serializers.FloatField(allow_null=True))
    reads = serializers.ListField(help_text="[[ns, tokens], …]")
    tenant = serializers.CharField()
    application = serializers.CharField()
    warmup = serializers.BooleanField()
    flags = serializers.ListField(child=serializers.CharField())
    detail = serializers.DictField()

    def to_representation(self, instance: RequestRecord) -> dict[str, Any]:
        return readable_line(instance)


class RunExecuteSerializer(StrictSerializer):
    """Ask the platform to execute a scenario."""

    scenario = serializers.CharField(max_length=80, help_text="slug@version of an approved scenario")
    execute = serializers.BooleanField(help_text="true")
    target = serializers.CharField(
        required=False, max_length=120, help_text="name of a target of the project; its first one otherwise"
    )
    tenant = serializers.CharField(required=False, allow_blank=True, max_length=120)
    application = serializers.CharField(required=False, allow_blank=True, max_length=120)
    metric_set = serializers.ChoiceField(required=False, choices=MetricSet.choices)


class PocRunSerializer(serializers.Serializer):
    """A finished result; `GET /schemas/poc-run/1/` is the JSON schema that it is checked against."""

    schema = serializers.CharField(help_text="poc-run/1")
    scenario = serializers.CharField(help_text="slug@version")
    provider = serializers.CharField()
    run = serializers.CharField()
    attempt = serializers.IntegerField()
    commit = serializers.CharField()
    metric_set = serializers.ChoiceField(required=False, choices=MetricSet.choices)
    tenant = serializers.CharField(required=False, allow_null=True)
    application = serializers.CharField(required=False, allow_null=True)
    environment = serializers.DictField()
    configuration = serializers.DictField()
    configuration_digest = serializers.CharField(required=False)
    load = serializers.DictField()
    outcomes = serializers.DictField(required=False, child=serializers.IntegerField())
    metrics = serializers.DictField()
    requests = serializers.ListField(required=False, child=serializers.DictField())
    events = serializers.ListField(required=False, child=serializers.DictField())
    artifacts = serializers.ListField(required=False, child=serializers.DictField())


class SupersedeSerializer(StrictSerializer):
    by = serializers.IntegerField(help_text="id of the run that replaces this one")


class UploadSerializer(serializers.Serializer):
    file = serializers.FileField()


class EngineSettingsField(serializers.DictField):
    """The engine's switches by name, see docs/engine.md; the service checks names and values."""

    default_help = "any of: " + ", ".join(DEFAULTS)

    def __init__(self, **named: Any) -> None:
        super().__init__(**{"help_text": self.default_help} | named)


class TargetSerializer(StrictSerializer):
    """What is measured; the credential can be written and is never shown."""

    id = serializers.IntegerField(read_only=True)
    name = serializers.CharField(max_length=120)
    kind = serializers.ChoiceField(choices=TargetKind.choices)
    location = serializers.CharField(max_length=500)
    model = serializers.CharField(max_length=200, required=False, allow_blank=True)
    engine_settings = EngineSettingsField(required=False)
    endpoint_settings = serializers.DictField(
        required=False,
        help_text="of an endpoint: `endpoint` (chat, completions), `streamed`, `metrics_url` (auto, off "
        "or an address), `device_metrics_url` (a DCGM exporter)",
    )
    baseline = serializers.IntegerField(
        source="baseline_id",
        read_only=True,
        allow_null=True,
        help_text="the target that this one is a candidate of",
    )
    credential = serializers.CharField(write_only=True, required=False, allow_blank=True)
    has_credential = serializers.SerializerMethodField()
    version = serializers.IntegerField(read_only=True)

    def get_has_credential(self, target: Any) -> bool:
        return target.credential is not None


class TargetChangeSerializer(StrictSerializer):
    """The changeable fields of a target; those not named stay."""

    name = serializers.CharField(max_length=120, required=False)
    location = serializers.CharField(max_length=500, required=False)
    model = serializers.CharField(max_length=200, required=False, allow_blank=True)
    engine_settings = EngineSettingsField(required=False)
    endpoint_settings = serializers.DictField(required=False)
    credential = serializers.CharField(required=False, allow_blank=True)


class CandidateSerializer(StrictSerializer):
    """The one switch in which the candidate differs."""

    change = serializers.DictField(
        help_text='one setting with its value, as `{"dtype": "int8"}`; or `location`'
    )


class TargetCheckSerializer(serializers.Serializer):
    ok = serializers.BooleanField()
    text = serializers.CharField()
    configuration = serializers.DictField()
    report = serializers.IntegerField(allow_null=True, help_text="the stored report; null for the engine")


class TargetReportSerializer(serializers.Serializer):
    """A stored look at an endpoint: the check before a run, or the habits of its streams."""

    id = serializers.IntegerField()
    kind = serializers.ChoiceField(choices=ReportKind.choices)
    state = serializers.ChoiceField(choices=ReportState.choices)
    target_version = serializers.IntegerField()
    steps_done = serializers.IntegerField()
    steps = serializers.IntegerField()
    ok = serializers.BooleanField(allow_null=True)
    report = serializers.DictField()
    error = serializers.CharField(allow_blank=True)
    created_at = serializers.DateTimeField()
    finished_at = serializers.DateTimeField(allow_null=True)


class MatrixStartSerializer(StrictSerializer):
    target = serializers.CharField(required=False, max_length=120, help_text="name of a target")


class MatrixSerializer(serializers.Serializer):
    """One execution of the project's matrix with its runs."""

    id = serializers.IntegerField()
    number = serializers.IntegerField()
    project = serializers.IntegerField(source="project_id")
    target = serializers.IntegerField(source="target_id")
    created_at = serializers.DateTimeField()
    runs = serializers.SerializerMethodField()

    def get_runs(self, matrix: Any) -> RunItemSerializer(many=True):  # type: ignore[valid-type]
        rows = matrix.runs.select_related("scenario_version__scenario").order_by("number")
        return RunItemSerializer(rows, many=True).data
