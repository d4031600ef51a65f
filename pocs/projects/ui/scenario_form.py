"""The form of a scenario version: a spec as people type it, and back."""

import re
from typing import Any

from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from pocs.common.errors import InvalidInput
from pocs.common.ui.mixins import add_service_error
from pocs.projects.choices import ScenarioKind
from pocs.projects.limits import limit_of_line
from pocs.projects.models import Project
from pocs.projects.output_checks import CHECK_KINDS, Check, quality_of_file
from pocs.projects.scenario_kinds import KIND_FORMS, KindField
from pocs.projects.scenario_spec import LANGUAGES, ScenarioSpec
from pocs.projects.ui.load_fields import LoadFields, load_as_typed
from pocs.projects.ui.scenario_sections import Section, sections_of

_INTERRUPTION = re.compile(
    r"(?P<phase>\w+)(?:\s+every\s+(?P<every>\d+))?(?:\s+after\s+(?P<after>\d+)(?:\s+tokens?)?)?"
)
_CHECK = re.compile(r"(?P<kind>\w+)(?:\s+(?P<min>\d*\.?\d+))?\s*[:：]\s*(?P<value>.+)")
_PROMPT_BREAK = re.compile(r"^\s*---\s*$", re.MULTILINE)
_PLAIN = (
    "input_tokens",
    "output_tokens",
    "concurrency",
    "requests",
    "rate",
    "warmup_requests",
    "distinct_prompts",
    "shared_prefix_tokens",
    "language",
    "temperature",
    "seed",
    "timeout_s",
)
#: what is asked first: where requests come from, how long they are, how they arrive
FIELD_ORDER = [
    "source", "prompts", "workload", "workload_file", "workload_format", "workload_columns",
    "workload_skip_faulty", "too_long", "language", "distinct_prompts", "input_tokens", "input_lengths",
    "output_tokens", "output_lengths", "shared_prefix_tokens", "distinct_prefixes", "prefix_share", "turns",
    "think_time_s", "load_shape", "rate", "gamma_shape", "burst_size", "burst_period_s", "ramp_from",
    "ramp_to", "ramp_seconds",
    "rate_steps", "spacing", "speed", "concurrency", "requests", "warmup_requests", "timeout_s",
]  # fmt: skip
LANGUAGE_NAMES = {
    "en": gettext_lazy("in English"),
    "zh": gettext_lazy("in Chinese"),
    "mixed": gettext_lazy("mixed Chinese and English"),
}


class SpecForm(LoadFields):
    """The spec of one version; half-empty and wrong input is judged by `ScenarioSpec.from_json`."""

    input_tokens = forms.IntegerField(label=gettext_lazy("input length (tokens)"))
    output_tokens = forms.IntegerField(label=gettext_lazy("output length (tokens)"))
    concurrency = forms.IntegerField(label=gettext_lazy("concurrency"))
    requests = forms.IntegerField(label=gettext_lazy("number of requests"))
    rate = forms.FloatField(
        label=gettext_lazy("rate (requests per second)"),
        required=False,
        help_text=gettext_lazy("Requests leave at their time whatever the target does (open loop)."),
    )
    warmup_requests = forms.IntegerField(label=gettext_lazy("warm-up requests"), initial=1)
    distinct_prompts = forms.IntegerField(
        label=gettext_lazy("distinct prompts"),
        initial=8,
        help_text=gettext_lazy("One prompt proves nothing (X6)."),
    )
    shared_prefix_tokens = forms.IntegerField(label=gettext_lazy("shared prefix (tokens)"), initial=0)
    language = forms.ChoiceField(
        label=gettext_lazy("language of generated prompts"),
        choices=[(value, LANGUAGE_NAMES[value]) for value in LANGUAGES],
    )
    temperature = forms.FloatField(label=gettext_lazy("temperature"), initial=0.0)
    seed = forms.IntegerField(label=gettext_lazy("seed"), initial=0)
    timeout_s = forms.FloatField(label=gettext_lazy("time limit per request (s)"), initial=120.0)
    tenants = forms.CharField(
        label=gettext_lazy("tenants"), required=False, help_text=gettext_lazy("Separated by commas.")
    )
    applications = forms.CharField(
        label=gettext_lazy("applications"), required=False, help_text=gettext_lazy("Separated by commas.")
    )
    interruptions = forms.CharField(
        label=gettext_lazy("interruptions"),
        required=False,
        widget=forms.Textarea(attrs={"rows": 3}),
        help_text=gettext_lazy(
            "One a line, such as “decode every 4 after 8 tokens”; queue, prefill or decode."
        ),
    )
    limits = forms.CharField(
        label=gettext_lazy("limits"),
        required=False,
        widget=forms.Textarea(attrs={"rows": 3}),
        help_text=gettext_lazy(
            "One a line: times with percentile and phase, such as “p95 ttft_ms <= 800”, figures of the whole "
            "run without, such as “error_rate <= 1 %” or “output_tokens_per_second >= 100”."
        ),
    )
    prompts = forms.CharField(
        label=gettext_lazy("real prompts"),
        required=False,
        widget=forms.Textarea(attrs={"rows": 5}),
        help_text=gettext_lazy(
            "Separated by lines of “---”. Empty: prompts of the input length are generated."
        ),
    )

    checks = forms.CharField(
        label=gettext_lazy("checks of the answers"),
        required=False,
        widget=forms.Textarea(attrs={"rows": 4}),
        help_text=gettext_lazy(
            "One a line: “contains: text”, “pattern: regular expression”, “similarity 0.8: reference "
            "answer”, “json_schema: {…}”."
        ),
    )
    quality_file = forms.FileField(
        label=gettext_lazy("quality set"),
        required=False,
        help_text=gettext_lazy(
            "JSONL or CSV with prompt and answer; asked after the load, greedy, and compared exactly. "
            "Without a file the set stays as it is."
        ),
    )
    quality_match = forms.ChoiceField(
        label=gettext_lazy("an answer of the quality set is right when it"),
        choices=[
            ("exact", gettext_lazy("is the expected answer")),
            ("contains", gettext_lazy("contains the expected answer")),
        ],
        required=False,
    )
    quality_drop = forms.BooleanField(label=gettext_lazy("take the quality set out"), required=False)

    field_order = FIELD_ORDER
    pointer_fields = {"/file": "workload_file", "/format": "workload_format", "/arrival": "load_shape",
                      "/spec/arrival": "load_shape"}  # fmt: skip

    def __init__(
        self,
        *args: Any,
        kind: str = "",
        kept_quality: Any = (),
        project: Project | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        self.prepare_load(project)
        self.kept_quality = list(kept_quality)
        if not self.kept_quality:
            del self.fields["quality_drop"]
        form = KIND_FORMS.get(kind)
        self.options = form.fields if form else ()
        for option in self.options:
            self.fields[option.name] = _option_field(option)

    def sections(self) -> list[Section]:
        """The fields as the page groups them."""
        return sections_of(self)

    def clean_checks(self) -> list[Any]:
        """Lines like `contains: refund` as objects."""
        return [_check(line) for line in _lines(self.cleaned_data["checks"])]

    def clean_quality_file(self) -> list[dict[str, str]] | None:
        uploaded = self.cleaned_data["quality_file"]
        if uploaded is None:
            return None
        try:
            return quality_of_file(uploaded.name, uploaded.read())
        except InvalidInput as error:
            raise forms.ValidationError(str(error.detail)) from error

    def clean_interruptions(self) -> list[dict[str, Any]]:
        """Lines like `decode every 4 after 8 tokens` as the objects of a spec."""
        found = []
        for line in _lines(self.cleaned_data["interruptions"]):
            match = _INTERRUPTION.fullmatch(line)
            if match is None:
                text = _("“%(line)s” is no interruption; write for example “decode every 4 after 8 tokens”.")
                raise forms.ValidationError(text % {"line": line[:80]})
            item: dict[str, Any] = {"phase": match["phase"]}
            if match["every"]:
                item["every"] = int(match["every"])
            if match["after"]:
                item["after_tokens"] = int(match["after"])
            found.append(item)
        return found

    def clean_limits(self) -> list[Any]:
        """Lines like `p95 ttft_ms <= 800` as objects; other lines as typed, for the spec to refuse."""
        return [limit_of_line(line) for line in _lines(self.cleaned_data["limits"])]

    def clean_tenants(self) -> list[str]:
        return _comma_list(self.cleaned_data["tenants"])

    def clean_applications(self) -> list[str]:
        return _comma_list(self.cleaned_data["applications"])

    def clean_prompts(self) -> list[str]:
        parts = _PROMPT_BREAK.split(self.cleaned_data["prompts"])
        return [part.strip() for part in parts if part.strip()]

    def clean(self) -> None:
        """Show what the spec refuses together with what is not filled in, not one after the other."""
        self.check_load()
        try:
            ScenarioSpec.from_json(self.spec())
        except InvalidInput as error:
            open_errors = [wrong for wrong in error.errors if wrong.pointer.split("/")[1] not in self.errors]
            if open_errors:
                add_service_error(self, InvalidInput(error.detail, open_errors))

    def spec(self) -> dict[str, Any]:
        """The spec as typed, for the service to judge."""
        names = (*_PLAIN, "tenants", "applications", "interruptions", "limits", "prompts", "checks")
        spec = {name: self.cleaned_data[name] for name in names if name in self.cleaned_data}
        spec |= self.load_spec()
        spec["options"] = self._options()
        uploaded = self.cleaned_data.get("quality_file")
        dropped = self.cleaned_data.get("quality_drop")
        spec["quality"] = uploaded or ([] if dropped else self.kept_quality)
        spec["quality_match"] = self.cleaned_data.get("quality_match") or "exact"
        return spec

    def _options(self) -> dict[str, Any]:
        """The kind's own fields as typed; what is left empty takes the default of its kind."""
        typed = {option: self.cleaned_data.get(option.name) for option in self.options}
        return {
            option.name: int(value) if option.whole else value
            for option, value in typed.items()
            if value not in (None, "")
        }


class ScenarioForm(SpecForm):
    """A new scenario with its first version."""

    slug = forms.CharField(
        label=gettext_lazy("short name"),
        max_length=60,
        help_text=gettext_lazy("Small letters, digits and hyphens; a version is written short-name@1."),
    )
    name = forms.CharField(label=gettext_lazy("name"), max_length=160)
    kind = forms.ChoiceField(label=gettext_lazy("kind"), choices=ScenarioKind.choices)
    field_order = ["slug", "name", "kind", *FIELD_ORDER]


def spec_as_typed(data: dict[str, Any]) -> dict[str, Any]:
    """Initial values of a `SpecForm` for a stored spec."""
    spec = ScenarioSpec.from_json(data)
    interruptions = [
        f"{item.phase} every {item.every} after {item.after_tokens} tokens" for item in spec.interruptions
    ]
    return {name: getattr(spec, name) for name in _PLAIN} | {
        "tenants": ", ".join(spec.tenants),
        "applications": ", ".join(spec.applications),
        "interruptions": "\n".join(interruptions),
        "limits": "\n".join(str(item) for item in spec.limits),
        "prompts": "\n---\n".join(spec.prompts),
        "checks": "\n".join(map(_check_as_typed, spec.checks)),
        "quality_match": spec.quality_match,
        **spec.options,
        **load_as_typed(spec),
    }


def _check_as_typed(check: Check) -> str:
    least = f" {check.min:g}" if check.kind == "similarity" else ""
    return f"{check.kind}{least}: {check.value}"


def _option_field(option: KindField) -> forms.Field:
    if option.is_text:
        widget = forms.Textarea(attrs={"rows": 3}) if option.name == "classes" else forms.TextInput()
        return forms.CharField(
            label=str(option.label),
            required=False,
            help_text=str(option.help_text),
            widget=widget,
            initial=option.default,
        )
    number = forms.IntegerField if option.whole else forms.FloatField
    return number(
        label=str(option.label), required=False, help_text=str(option.help_text), initial=option.default
    )


def _check(line: str) -> Any:
    match = _CHECK.fullmatch(line)
    if match is None or match["kind"] not in CHECK_KINDS:
        text = _("“%(line)s” is no check; write for example “contains: refund”.")
        raise forms.ValidationError(text % {"line": line[:80]})
    item: dict[str, Any] = {"kind": match["kind"], "value": match["value"].strip()}
    if match["min"] and match["kind"] == "similarity":
        item["min"] = float(match["min"])
    return item


def _lines(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.strip()]


def _comma_list(text: str) -> list[str]:
    return [part.strip() for part in text.replace("，", ",").split(",") if part.strip()]
