"""Form fields of the load of a scenario: how requests arrive and where they come from, then its figures.

A field says by `data-shown-for` with which choice it belongs; choices.js hides the others. Without scripts
all are there, and those of other choices are not read.
"""

import re
from typing import Any

from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from pocs.projects.models import Project
from pocs.projects.scenario_spec import ScenarioSpec
from pocs.projects.workload_port import workload_reader

RATED = ("poisson", "constant", "gamma")
SHAPES = (
    ("closed", gettext_lazy("closed loop: the next one when an answer is complete")),
    ("poisson", gettext_lazy("at a rate, at random (Poisson)")),
    ("constant", gettext_lazy("at a rate, evenly")),
    ("gamma", gettext_lazy("at a rate, in clusters or smoother (gamma)")),
    ("burst", gettext_lazy("in bursts")),
    ("ramp", gettext_lazy("rising or falling rate")),
    ("steps", gettext_lazy("rates in steps")),
    ("trace", gettext_lazy("as in the file (replay)")),
)
SOURCES = (
    ("generated", gettext_lazy("generated texts")),
    ("typed", gettext_lazy("real prompts, typed here")),
    ("file", gettext_lazy("a request set or trace")),
)
_STEP = re.compile(r"(?P<rate>\d*\.?\d+)\s*[x×*]\s*(?P<seconds>\d*\.?\d+)")
_SHOWN_FOR = {
    "rate": f"load_shape={','.join(RATED)}",
    "gamma_shape": "load_shape=gamma",
    "burst_size": "load_shape=burst",
    "burst_period_s": "load_shape=burst",
    "ramp_from": "load_shape=ramp",
    "ramp_to": "load_shape=ramp",
    "ramp_seconds": "load_shape=ramp",
    "rate_steps": "load_shape=steps",
    "spacing": "load_shape=ramp,steps",
    "speed": "load_shape=trace",
    "prompts": "source=typed",
    "language": "source=generated,file",
    "distinct_prompts": "source=generated",
    "shared_prefix_tokens": "source=generated",
    "distinct_prefixes": "source=generated",
    "prefix_share": "source=generated",
    "turns": "source=generated,typed",
    "think_time_s": "source=generated,typed",
    "input_lengths": "source=generated",
    "output_lengths": "source=generated,typed",
    "workload": "source=file",
    "workload_file": "source=file",
    "workload_format": "source=file",
    "workload_columns": "source=file",
    "workload_skip_faulty": "source=file",
    "too_long": "source=file",
}
UPLOAD_FIELDS = ("workload_file", "workload_format", "workload_columns", "workload_skip_faulty")
#: the figures of each shape that has any of its own
_FIGURES = {
    "gamma": ("gamma_shape",),
    "burst": ("burst_size", "burst_period_s"),
    "ramp": ("ramp_from", "ramp_to", "ramp_seconds"),
    "steps": ("rate_steps",),
}


class LoadFields(forms.Form):
    """The part of a scenario's form that is about its load."""

    source = forms.ChoiceField(label=gettext_lazy("requests come from"), choices=SOURCES, required=False)
    workload = forms.ChoiceField(label=gettext_lazy("file"), required=False)
    workload_file = forms.FileField(
        label=gettext_lazy("or upload one"),
        required=False,
        help_text=gettext_lazy(
            "JSONL, JSON, CSV or text of any known tool. Personal numbers and addresses are taken out before "
            "anything is kept; you see what was read before it is used."
        ),
    )
    workload_format = forms.ChoiceField(label=gettext_lazy("format of the upload"), required=False)
    workload_columns = forms.CharField(
        label=gettext_lazy("columns of a CSV upload"),
        required=False,
        help_text=gettext_lazy("Only where headings are unusual, such as “prompt=Customer question”."),
    )
    workload_skip_faulty = forms.BooleanField(
        label=gettext_lazy("pass over faulty lines and list them"), required=False
    )
    too_long = forms.ChoiceField(
        label=gettext_lazy("requests beyond the target's context"),
        choices=[("reject", gettext_lazy("leave out and count")), ("clip", gettext_lazy("clip and count"))],
        required=False,
    )
    input_lengths = forms.CharField(
        label=gettext_lazy("spread of input lengths"),
        required=False,
        help_text=gettext_lazy(
            "Empty: all as above. Otherwise such as uniform:min=100,max=900, normal:mean=512,sigma=128 or "
            "lognormal:p50=400,p95=1800."
        ),
    )
    output_lengths = forms.CharField(label=gettext_lazy("spread of output lengths"), required=False)
    turns = forms.IntegerField(
        label=gettext_lazy("turns of a conversation"),
        required=False,
        help_text=gettext_lazy("Each turn is sent after the answer before it and carries the conversation."),
    )
    think_time_s = forms.FloatField(label=gettext_lazy("time to think between turns (s)"), required=False)
    distinct_prefixes = forms.IntegerField(label=gettext_lazy("distinct prefixes"), required=False)
    prefix_share = forms.FloatField(
        label=gettext_lazy("share of prompts with a prefix (0 to 1)"), required=False
    )
    load_shape = forms.ChoiceField(label=gettext_lazy("requests arrive"), choices=SHAPES, required=False)
    gamma_shape = forms.FloatField(
        label=gettext_lazy("shape of the gaps"),
        required=False,
        help_text=gettext_lazy("Below 1 in clusters, above 1 smoother than at random."),
    )
    burst_size = forms.IntegerField(label=gettext_lazy("requests of a burst"), required=False)
    burst_period_s = forms.FloatField(label=gettext_lazy("a burst every (s)"), required=False)
    ramp_from = forms.FloatField(label=gettext_lazy("from (requests per second)"), required=False)
    ramp_to = forms.FloatField(label=gettext_lazy("to (requests per second)"), required=False)
    ramp_seconds = forms.FloatField(
        label=gettext_lazy("within (s)"), required=False, help_text=gettext_lazy("Afterwards the rate stays.")
    )
    rate_steps = forms.CharField(
        label=gettext_lazy("steps"),
        required=False,
        help_text=gettext_lazy("Rate × seconds, by comma, such as “2x30, 8x30”; the last one stays."),
    )
    spacing = forms.ChoiceField(
        label=gettext_lazy("requests within the rate"),
        choices=[("poisson", gettext_lazy("at random")), ("even", gettext_lazy("evenly"))],
        required=False,
    )
    speed = forms.FloatField(label=gettext_lazy("speed of the replay"), required=False)

    def prepare_load(self, project: Project | None) -> None:
        """Choices of the project and of the reader; which fields belong to which choice."""
        files = project.workloads.defer("content") if project else ()
        self.fields["workload"].choices = [("", _("choose a file"))] + [  # type: ignore[attr-defined]
            (file.digest, f"{file.name} · {file.report['format']} · n = {file.report['n']}") for file in files
        ]
        formats = [(name, name) for name in workload_reader().formats]
        self.fields["workload_format"].choices = [  # type: ignore[attr-defined]
            ("", _("find out")),
            *formats,
        ]
        for name, choice in _SHOWN_FOR.items():
            if name in self.fields:
                self.fields[name].widget.attrs["data-shown-for"] = choice

    def clean_workload_columns(self) -> dict[str, str]:
        """`prompt=Question, max_tokens=Most` as a mapping."""
        found = {}
        for part in self.cleaned_data["workload_columns"].replace("，", ",").split(","):
            field, equals, heading = part.partition("=")
            if part.strip() and not (equals and field.strip() and heading.strip()):
                text = _("“%(part)s” names no column; write for example “prompt=Customer question”.")
                raise forms.ValidationError(text % {"part": part.strip()[:80]})
            if part.strip():
                found[field.strip()] = heading.strip()
        return found

    def clean_rate_steps(self) -> str:
        """`2 × 30, 8 x 30` as the words of a shape."""
        parts = [
            part.strip() for part in re.split(r"[,，;；\n]", self.cleaned_data["rate_steps"]) if part.strip()
        ]
        for part in parts:
            if not _STEP.fullmatch(part):
                text = _("“%(part)s” is no step; write for example “2x30” for 2 requests a second over 30 s.")
                raise forms.ValidationError(text % {"part": part[:80]})
        return ",".join("{rate}x{seconds}".format(**_step(part)) for part in parts)

    def load_spec(self) -> dict[str, Any]:
        """The load's fields of a spec, without those of other choices."""
        shape = self.cleaned_data.get("load_shape") or self._shape_of_old()
        source = self.cleaned_data.get("source") or (
            "typed" if self.cleaned_data.get("prompts") else "generated"
        )
        spec: dict[str, Any] = {"arrival": self._arrival(shape)}
        if shape not in RATED:
            spec["rate"] = None
        if source != "typed":
            spec["prompts"] = []
        wanted = {
            name: choice.split("=")[1].split(",")
            for name, choice in _SHOWN_FOR.items()
            if choice.startswith("source=")
        }
        for name in (*_KEPT, "workload", "too_long"):
            value = self.cleaned_data.get(name)
            if value not in (None, "") and source in wanted[name]:
                spec[name] = value
        return spec

    def check_load(self) -> None:
        """What the chosen shape or source needs and is not there."""
        shape = self.cleaned_data.get("load_shape")
        for name in _FIGURES.get(shape or "", ()):
            if self.cleaned_data.get(name) in (None, "") and name not in self.errors:
                self.add_error(name, _("This is required."))
        if shape in RATED and self.cleaned_data.get("rate") is None and "rate" not in self.errors:
            self.add_error("rate", _("This is required."))
        source = self.cleaned_data.get("source")
        if source == "file" and not self.cleaned_data.get("workload") and not self.files.get("workload_file"):
            self.add_error("workload", _("Choose a file or upload one."))
        if source == "typed" and not self.cleaned_data.get("prompts"):
            self.add_error("prompts", _("This is required."))

    def _shape_of_old(self) -> str:
        return "poisson" if self.cleaned_data.get("rate") is not None else "closed"

    def _arrival(self, shape: str) -> str:
        """The word of a shape; empty for what a spec says without it."""
        typed = {name: self.cleaned_data.get(name) for name in self.fields}
        figures = [typed[name] for name in _FIGURES.get(shape, ())]
        if any(value in (None, "") for value in figures):
            return ""
        spacing = ",poisson" if (typed["spacing"] or "poisson") == "poisson" else ""
        words = {
            "constant": "constant",
            "gamma": "gamma:{gamma_shape:g}",
            "burst": "burst:{burst_size}/{burst_period_s:g}",
            "ramp": "ramp:{ramp_from:g}-{ramp_to:g}/{ramp_seconds:g}" + spacing,
            "steps": "steps:{rate_steps}" + spacing,
            "trace": f"trace:{typed['speed']:g}" if typed["speed"] not in (None, 1) else "trace",
        }
        return words.get(shape, "").format(**typed)


_KEPT = ("input_lengths", "output_lengths", "turns", "think_time_s", "distinct_prefixes", "prefix_share")


def _step(part: str) -> dict[str, str]:
    match = _STEP.fullmatch(part)
    return match.groupdict() if match else {}


def load_as_typed(spec: ScenarioSpec) -> dict[str, Any]:
    """Initial values of these fields for a stored spec."""
    shape, _colon, text = spec.arrival.partition(":")
    typed: dict[str, Any] = {name: getattr(spec, name) for name in (*_KEPT, "workload", "too_long")}
    typed["source"] = "file" if spec.workload else "typed" if spec.prompts else "generated"
    typed["load_shape"] = shape or ("poisson" if spec.rate is not None else "closed")
    typed["spacing"] = "poisson" if text.endswith(",poisson") or not shape else "even"
    figures = text.removesuffix(",poisson").removesuffix(",even")
    if shape == "gamma":
        typed["gamma_shape"] = figures
    elif shape == "burst":
        typed["burst_size"], _slash, typed["burst_period_s"] = figures.partition("/")
    elif shape == "ramp":
        rates, _slash, typed["ramp_seconds"] = figures.partition("/")
        typed["ramp_from"], _dash, typed["ramp_to"] = rates.partition("-")
    elif shape == "steps":
        typed["rate_steps"] = figures.replace(",", ", ")
    elif shape == "trace":
        typed["speed"] = figures
    return typed
