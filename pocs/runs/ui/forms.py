"""Forms of runs and targets: they shape input, the services judge it."""

from typing import Any

from django import forms
from django.utils.text import format_lazy
from django.utils.translation import gettext_lazy as _

from inference.engine.options import DRAFT
from pocs.common.actors import Actor
from pocs.projects.models import Project, ScenarioVersion
from pocs.projects.selectors import approved_versions
from pocs.runs.choices import TargetKind
from pocs.runs.engine_settings import CHOICES, DEFAULTS, NGRAM, RANGES
from pocs.runs.models import Target
from pocs.runs.selectors import targets_of

DRAFT_MODEL = "draft"


def choice_of(name: str, label: Any) -> forms.ChoiceField:
    """One of the engine's named values, or what the engine takes by itself."""
    values = [(value, value) for value in CHOICES[name]]
    return forms.ChoiceField(label=label, required=False, choices=[("", _("engine's default")), *values])


def count_of(name: str, label: Any) -> forms.IntegerField:
    """A whole number in the range of the setting; what the engine takes by itself is said below it."""
    least, most = RANGES[name]
    default = DEFAULTS[name]
    help_text = format_lazy(_("engine's default: {value}"), value=default) if default else _("by the machine")
    # the service refuses what is out of range, with the name and the value
    widget = forms.NumberInput(attrs={"min": least, "max": most})
    return forms.IntegerField(label=label, required=False, widget=widget, help_text=help_text)


class VersionChoice(forms.ModelChoiceField):
    def label_from_instance(self, obj: Any) -> str:
        version: ScenarioVersion = obj
        return f"{version} · {version.scenario.name}"


class TargetChoice(forms.ModelChoiceField):
    def label_from_instance(self, obj: Any) -> str:
        target: Target = obj
        return f"{target.name} · {target.get_kind_display()}"


class MatrixStartForm(forms.Form):
    """Which target the whole matrix runs against."""

    target = TargetChoice(label=_("Target"), queryset=Target.objects.none(), empty_label=None)

    def __init__(self, *args: Any, actor: Actor, project: Project, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["target"].queryset = targets_of(actor, project)  # type: ignore[attr-defined]


class RunStartForm(MatrixStartForm):
    """Which scenario version runs against which target, on behalf of whom."""

    scenario_version = VersionChoice(
        label=_("Scenario"), queryset=ScenarioVersion.objects.none(), empty_label=None
    )
    tenant = forms.CharField(
        label=_("Tenant"), max_length=120, required=False, help_text=_("Written into every request's record.")
    )
    application = forms.CharField(label=_("Application"), max_length=120, required=False)
    field_order = ["scenario_version", "target", "tenant", "application"]

    def __init__(self, *args: Any, actor: Actor, project: Project, **kwargs: Any) -> None:
        super().__init__(*args, actor=actor, project=project, **kwargs)
        self.fields["scenario_version"].queryset = approved_versions(project)  # type: ignore[attr-defined]


class TargetForm(forms.Form):
    """A target: the embedded engine with a model folder, or an OpenAI-compatible endpoint."""

    name = forms.CharField(label=_("Name"), max_length=120)
    kind = forms.ChoiceField(
        label=_("Kind"), choices=TargetKind.choices, widget=forms.RadioSelect, initial=TargetKind.ENGINE
    )
    location = forms.CharField(
        label=_("Model folder, .gguf file or base URL"),
        max_length=500,
        help_text=_(
            "Embedded engine: a folder or .gguf file below the model folder. Endpoint: http://host:port/v1"
        ),
    )
    model = forms.CharField(
        label=_("Model name"),
        max_length=200,
        required=False,
        help_text=_("The name the endpoint serves it under."),
    )
    credential = forms.CharField(
        label=_("Credential of the endpoint"),
        required=False,
        max_length=500,
        widget=forms.PasswordInput(attrs={"autocomplete": "off"}),
        help_text=_("Sent as a bearer token. Stored encrypted and never shown again."),
    )
    remove_credential = forms.BooleanField(label=_("Remove the stored credential"), required=False)
    endpoint = forms.ChoiceField(
        label=_("Asked through"),
        required=False,
        choices=[
            ("chat", "chat/completions"),
            ("completions", "completions"),
            ("ollama", "Ollama: /api/chat"),
        ],
    )
    not_streamed = forms.BooleanField(
        label=_("Ask for answers in one piece (no first token is then observed)"), required=False
    )
    metrics_url = forms.CharField(
        label=_("Metrics of the server"),
        max_length=500,
        required=False,
        help_text=_("Empty: /metrics beside the API. “off”: not read. Else the address of the page."),
    )
    device_metrics_url = forms.CharField(
        label=_("Metrics of its GPUs"),
        max_length=500,
        required=False,
        help_text=_("Address of a DCGM exporter, if there is one."),
    )
    dtype = choice_of("dtype", _("Data type of the weights"))
    speculate = forms.ChoiceField(
        label=_("Speculative decoding"),
        required=False,
        choices=[
            ("", _("off")),
            (NGRAM, _("ngram: guesses from the prompt")),
            (DRAFT_MODEL, _("a draft model guesses")),
        ],
    )
    draft_model = forms.CharField(
        label=_("Draft model"),
        max_length=500,
        required=False,
        help_text=_("A small model with the same tokenizer: its folder below the model folder."),
    )
    speculate_tokens = count_of("speculate_tokens", _("Most guessed tokens in a step"))
    speculate_max_batch = count_of("speculate_max_batch", _("Largest batch that guesses"))
    block_tokens = count_of("block_tokens", _("Tokens per KV block"))
    kv_blocks = count_of("kv_blocks", _("KV blocks"))
    max_batch = count_of("max_batch", _("Largest batch"))
    prefill_chunk_tokens = count_of("prefill_chunk_tokens", _("Prefill chunk (tokens)"))
    max_waiting = count_of("max_waiting", _("Longest waiting list (requests)"))
    prefix_cache = forms.TypedChoiceField(
        label=_("Prefix cache"),
        required=False,
        choices=[("", _("engine's default")), ("on", _("on")), ("off", _("off"))],
        coerce=lambda value: value == "on",
        empty_value=None,
    )
    device = forms.CharField(
        label=_("Device"), max_length=12, required=False, help_text=_("auto, cpu, cuda or cuda:N")
    )
    kernels = choice_of("kernels", _("Kernels"))
    threads = count_of("threads", _("Threads"))
    cuda_graphs = choice_of("cuda_graphs", _("CUDA graphs"))
    step_limit_s = forms.FloatField(
        label=_("A step is stuck after (s)"),
        required=False,
        help_text=format_lazy(_("engine's default: {value}"), value=round(DEFAULTS["step_limit_s"])),
    )
    version = forms.IntegerField(widget=forms.HiddenInput, required=False)

    def __init__(self, *args: Any, target: Target | None = None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if target is None:
            del self.fields["remove_credential"]
            return
        self.fields["kind"].disabled = True
        self.fields["kind"].initial = target.kind
        if target.credential is None:
            del self.fields["remove_credential"]
        else:
            self.fields["credential"].help_text = _("A credential is stored. Leave this empty to keep it.")

    @staticmethod
    def initial_of(target: Target) -> dict[str, Any]:
        """The form's initial values for editing `target`."""
        settings = dict(target.engine_settings)
        if "prefix_cache" in settings:
            settings["prefix_cache"] = "on" if settings["prefix_cache"] else "off"
        guesser = str(settings.get("speculate", ""))
        if guesser.startswith(DRAFT):
            settings |= {"speculate": DRAFT_MODEL, "draft_model": guesser.removeprefix(DRAFT)}
        return {
            "name": target.name,
            "kind": target.kind,
            "location": target.location,
            "model": target.model,
            "version": target.version,
            **TargetForm._endpoint_initial(target),
            **settings,
        }

    def engine_settings(self) -> dict[str, Any]:
        """The engine's settings that were given; none for an endpoint."""
        if self.cleaned_data["kind"] != TargetKind.ENGINE:
            return {}
        given = {name: self.cleaned_data.get(name) for name in DEFAULTS}
        if given["speculate"] == DRAFT_MODEL:
            given["speculate"] = f"{DRAFT}{self.cleaned_data['draft_model']}"
        return {name: value for name, value in given.items() if value not in (None, "")}

    @staticmethod
    def _endpoint_initial(target: Target) -> dict[str, Any]:
        stored = target.endpoint_settings
        return {
            "endpoint": stored.get("endpoint", "chat"),
            "not_streamed": stored.get("streamed") is False,
            "metrics_url": stored.get("metrics_url", ""),
            "device_metrics_url": stored.get("device_metrics_url", ""),
        }

    def endpoint_settings(self) -> dict[str, Any]:
        """How the endpoint is asked; none for the engine."""
        if self.cleaned_data["kind"] != TargetKind.HTTP:
            return {}
        names = ("endpoint", "metrics_url", "device_metrics_url")
        given: dict[str, Any] = {name: self.cleaned_data.get(name) for name in names}
        return given | {"streamed": not self.cleaned_data.get("not_streamed")}

    def fields_of_target(self) -> dict[str, Any]:
        """What `target_create` and `target_update` take in common."""
        data = self.cleaned_data
        return {
            "name": data["name"],
            "location": data["location"],
            "model": data["model"],
            "engine_settings": self.engine_settings(),
            "endpoint_settings": self.endpoint_settings(),
        }
