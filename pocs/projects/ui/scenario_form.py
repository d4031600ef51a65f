"""The form of a scenario version: a spec as people type it, and back."""

import re
from typing import Any

from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from pocs.common.errors import InvalidInput
from pocs.common.ui.mixins import add_service_error
from pocs.projects.choices import ScenarioKind
from pocs.projects.scenario_spec import LANGUAGES, LIMIT_METRICS, ScenarioSpec

_LIMIT = re.compile(r"(?P<percentile>\w+)\s+(?P<metric>\w+)\s*(?:<=|≤|<)\s*(?P<max>[\d.]+)")
_INTERRUPTION = re.compile(
    r"(?P<phase>\w+)(?:\s+every\s+(?P<every>\d+))?(?:\s+after\s+(?P<after>\d+)(?:\s+tokens?)?)?"
)
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
LANGUAGE_NAMES = {
    "en": gettext_lazy("in English"),
    "zh": gettext_lazy("in Chinese"),
    "mixed": gettext_lazy("mixed Chinese and English"),
}


class SpecForm(forms.Form):
    """The spec of one version; half-empty and wrong input is judged by `ScenarioSpec.from_json`."""

    input_tokens = forms.IntegerField(label=gettext_lazy("input length (tokens)"))
    output_tokens = forms.IntegerField(label=gettext_lazy("output length (tokens)"))
    concurrency = forms.IntegerField(label=gettext_lazy("concurrency"))
    requests = forms.IntegerField(label=gettext_lazy("number of requests"))
    rate = forms.FloatField(
        label=gettext_lazy("rate (requests per second)"),
        required=False,
        help_text=gettext_lazy("Open loop at this rate; empty: closed loop at the concurrency above."),
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
        help_text=gettext_lazy("One a line, with percentile and phase, such as “p95 ttft_ms <= 800”."),
    )
    prompts = forms.CharField(
        label=gettext_lazy("real prompts"),
        required=False,
        widget=forms.Textarea(attrs={"rows": 5}),
        help_text=gettext_lazy(
            "Separated by lines of “---”. Empty: prompts of the input length are generated."
        ),
    )

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
        return [_limit(line) for line in _lines(self.cleaned_data["limits"])]

    def clean_tenants(self) -> list[str]:
        return _comma_list(self.cleaned_data["tenants"])

    def clean_applications(self) -> list[str]:
        return _comma_list(self.cleaned_data["applications"])

    def clean_prompts(self) -> list[str]:
        parts = _PROMPT_BREAK.split(self.cleaned_data["prompts"])
        return [part.strip() for part in parts if part.strip()]

    def clean(self) -> None:
        """Show what the spec refuses together with what is not filled in, not one after the other."""
        try:
            ScenarioSpec.from_json(self.spec())
        except InvalidInput as error:
            open_errors = [wrong for wrong in error.errors if wrong.pointer.split("/")[1] not in self.errors]
            if open_errors:
                add_service_error(self, InvalidInput(error.detail, open_errors))

    def spec(self) -> dict[str, Any]:
        """The spec as typed, for the service to judge."""
        names = (*_PLAIN, "tenants", "applications", "interruptions", "limits", "prompts")
        return {name: self.cleaned_data[name] for name in names if name in self.cleaned_data}


class ScenarioForm(SpecForm):
    """A new scenario with its first version."""

    slug = forms.CharField(
        label=gettext_lazy("short name"),
        max_length=60,
        help_text=gettext_lazy("Small letters, digits and hyphens; a version is written short-name@1."),
    )
    name = forms.CharField(label=gettext_lazy("name"), max_length=160)
    kind = forms.ChoiceField(label=gettext_lazy("kind"), choices=ScenarioKind.choices)
    field_order = ["slug", "name", "kind"]


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
        "limits": "\n".join(f"{item.percentile} {item.metric} <= {item.max:g}" for item in spec.limits),
        "prompts": "\n---\n".join(spec.prompts),
    }


def _limit(line: str) -> Any:
    match = _LIMIT.fullmatch(line)
    if match is None or match["metric"] not in LIMIT_METRICS:
        return line
    try:
        return {"percentile": match["percentile"], "metric": match["metric"], "max": float(match["max"])}
    except ValueError:
        return line


def _lines(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.strip()]


def _comma_list(text: str) -> list[str]:
    return [part.strip() for part in text.replace("，", ",").split(",") if part.strip()]
