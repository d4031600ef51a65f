"""The body of each type of evidence: its fields, their form, and what is captured instead of typed.

A body is a JSON object with exactly the fields of its type. A draft may be half written: a field
that is not written yet holds its empty value; `pocs.evidence.validation` says what is wrong or missing.
"""

from dataclasses import dataclass
from typing import Any, Literal

from django.utils.translation import gettext_lazy

from pocs.common.errors import Text
from pocs.evidence.choices import EvidenceType, ResponsibilityKind
from pocs.runs.models import Run

Kind = Literal["text", "line", "lines", "map", "digest", "run", "team", "user", "choice", "rows"]

TEXT_MAX_CHARACTERS = 20_000
LINE_MAX_CHARACTERS = 300
ITEMS_MAX = 200
MAP_MAX_DEPTH = 6


@dataclass(frozen=True)
class BodyField:
    """One field of a body: `kind` says its JSON form, `required` what a submission needs.

    text, line, digest: string · lines: list of strings · map: object of settings · run, team, user:
    id or null · choice: one of `choices` · rows: list of objects with the fields `columns`.
    """

    name: str
    label: Text
    kind: Kind = "text"
    help: Text = ""
    required: bool = True
    choices: tuple[str, ...] = ()
    columns: tuple["BodyField", ...] = ()


_f = BodyField

SCHEMAS: dict[EvidenceType, tuple[BodyField, ...]] = {
    EvidenceType.CONFIGURATION: (
        _f("source_run", gettext_lazy("Captured from run"), "run", required=False),
        _f("model", gettext_lazy("Model"), "map", gettext_lazy("Name, digest, precision, quantisation.")),
        _f(
            "engine_settings",
            gettext_lazy("Engine or service settings"),
            "map",
            gettext_lazy("Batch size, KV blocks, prefix cache, scheduling."),
        ),
        _f("versions", gettext_lazy("Versions"), "map", gettext_lazy("Engine, libraries, driver.")),
        _f(
            "environment",
            gettext_lazy("Environment"),
            "map",
            gettext_lazy("Machine, accelerator, operating system, network."),
        ),
        _f("configuration_digest", gettext_lazy("Configuration digest"), "digest", required=False),
        _f(
            "policy",
            gettext_lazy("Policy"),
            help=gettext_lazy("Which rules apply to the service: routing, limits, retention, content."),
        ),
        _f(
            "permissions",
            gettext_lazy("Permissions"),
            help=gettext_lazy("Who may call it, who may change it, and how that is enforced."),
        ),
        _f(
            "change_note",
            gettext_lazy("Change history"),
            help=gettext_lazy("What changed since the last one, by whom and why; or that it is the first."),
        ),
    ),
    EvidenceType.RUNTIME: (
        _f(
            "tenants",
            gettext_lazy("Tenants covered"),
            "lines",
            gettext_lazy("One a line."),
            required=False,
        ),
        _f(
            "applications",
            gettext_lazy("Applications covered"),
            "lines",
            gettext_lazy("One a line."),
            required=False,
        ),
        _f(
            "seen", gettext_lazy("What was seen"), help=gettext_lazy("The finding in two or three sentences.")
        ),
        _f(
            "first_token",
            gettext_lazy("Latency of the first token"),
            help=gettext_lazy("TTFT with its percentiles, read with the queue wait. Never a mean alone."),
        ),
        _f(
            "generation",
            gettext_lazy("Latency of the generation"),
            help=gettext_lazy("TPOT and the gaps between tokens, apart from the first token (E5)."),
        ),
        _f(
            "errors",
            gettext_lazy("Errors"),
            help=gettext_lazy("Which requests did not succeed, how, how often."),
        ),
        _f(
            "resources",
            gettext_lazy("Resources"),
            help=gettext_lazy("Memory watermark, queue, cache hits, utilisation during the runs."),
        ),
        _f(
            "call_logs",
            gettext_lazy("Call logs"),
            help=gettext_lazy("Where the logs lie and how an error is located in them (E6)."),
        ),
    ),
    EvidenceType.RESPONSIBILITY: (
        _f(
            "rows",
            gettext_lazy("Responsibilities"),
            "rows",
            gettext_lazy(
                "At least one approval, one ownership, one alert and one handler, each with its team."
            ),
            columns=(
                _f("kind", gettext_lazy("Kind"), "choice", choices=tuple(ResponsibilityKind.values)),
                _f("subject", gettext_lazy("Subject"), "line"),
                _f("team", gettext_lazy("Team"), "team"),
                _f("person", gettext_lazy("Person"), "user", required=False),
                _f("alert_route", gettext_lazy("Alert route"), "line", required=False),
                _f("on_call", gettext_lazy("On call"), "line", required=False),
            ),
        ),
    ),
    EvidenceType.RETROSPECTIVE: (
        _f(
            "degradation",
            gettext_lazy("Degradation"),
            help=gettext_lazy("What got slower, dearer or less accurate, when, and why."),
        ),
        _f(
            "rollback_outcome",
            gettext_lazy("Rollback outcome"),
            help=gettext_lazy("What was rolled back, how long it took, what state it left."),
        ),
        _f(
            "next_optimisation",
            gettext_lazy("Next optimisation"),
            help=gettext_lazy("One change at a time, measured against a baseline."),
        ),
        _f("conclusion", gettext_lazy("Conclusion")),
        _f("owner", gettext_lazy("Owner"), "user", gettext_lazy("Who answers for what follows.")),
    ),
}


def empty_value(field: BodyField) -> Any:
    """What an unwritten field holds."""
    if field.kind in ("run", "team", "user"):
        return None
    if field.kind in ("rows", "lines"):
        return []
    return {} if field.kind == "map" else ""


def empty_body(type: EvidenceType | str) -> dict[str, Any]:
    """A body of this type with nothing written yet."""
    return {field.name: empty_value(field) for field in SCHEMAS[EvidenceType(type)]}


def field_of(type: EvidenceType, name: str) -> BodyField:
    """The field of this name in the type's body."""
    return next(field for field in SCHEMAS[type] if field.name == name)


#: what the engine records about the model itself, beside `model` and `model_…`
MODEL_FACTS = ("architecture", "parameters", "dtype", "max_model_tokens", "shape", "weights_bytes")


def captured_configuration(run: Run) -> dict[str, Any]:
    """The part of a configuration body that is read from a run; what it did not record is empty.

    What the run recorded under another name than model, versions and environment belongs to the
    settings: nothing recorded is dropped.
    """
    recorded = dict(run.configuration or {})
    recorded |= _as_map(recorded.pop("configuration", None))  # as CI submits it, beside the environment
    model = _as_map(recorded.pop("model", None)) or _as_map(_as_map(recorded.get("target")).get("model"))
    facts = [name for name in recorded if name.startswith("model_") or name in MODEL_FACTS]
    model |= {name: recorded.pop(name) for name in facts}
    versions = _as_map(recorded.pop("versions", None))
    environment = _as_map(recorded.pop("environment", None))
    settings = _as_map(recorded.pop("engine_settings", None)) | _as_map(recorded.pop("engine", None))
    return {
        "model": model,
        "engine_settings": settings | recorded,
        "versions": versions,
        "environment": environment or _as_map((run.summary or {}).get("environment")),
        "configuration_digest": run.configuration_digest,
    }


def _as_map(value: Any) -> dict[str, Any]:
    if isinstance(value, dict):
        return value
    return {} if value is None else {"name": value}


def json_schema(type: EvidenceType | str) -> dict[str, Any]:
    """The body of a type as JSON schema, for the API's description."""
    kind = EvidenceType(type)
    return {
        "title": kind.value,
        "description": str(kind.label),
        **_object_schema(SCHEMAS[kind]),
    }


def _object_schema(fields: tuple[BodyField, ...]) -> dict[str, Any]:
    return {
        "type": "object",
        "additionalProperties": False,
        "properties": {field.name: _value_schema(field) for field in fields},
    }


def _value_schema(field: BodyField) -> dict[str, Any]:
    described = {"description": " · ".join(str(part) for part in (field.label, field.help) if part)}
    if field.kind == "choice":
        return described | {"type": "string", "enum": ["", *field.choices]}
    if field.kind == "map":
        return described | {"type": "object", "additionalProperties": True}
    if field.kind == "lines":
        return described | {"type": "array", "items": {"type": "string"}, "maxItems": ITEMS_MAX}
    if field.kind == "rows":
        return described | {"type": "array", "items": _object_schema(field.columns), "maxItems": ITEMS_MAX}
    if field.kind in ("run", "team", "user"):
        return described | {"type": "integer", "nullable": True}
    longest = TEXT_MAX_CHARACTERS if field.kind == "text" else LINE_MAX_CHARACTERS
    return described | {"type": "string", "maxLength": longest}
