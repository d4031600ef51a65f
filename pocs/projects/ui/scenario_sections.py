"""The fields of a scenario's form by section: what is seldom asked is folded away until it says something."""

from dataclasses import dataclass
from typing import Any

from django import forms
from django.forms.boundfield import BoundField
from django.utils.translation import gettext_lazy

from pocs.common.errors import Text


@dataclass(frozen=True)
class Section:
    """One group of fields; a folded one is open when something in it is wrong or not as proposed."""

    title: Text
    fields: list[BoundField]
    folded: bool = False

    @property
    def open(self) -> bool:
        return any(field.errors or _differs(field) for field in self.fields)


_SECTIONS: tuple[tuple[Text, bool, tuple[str, ...]], ...] = (
    ("", False, ("slug", "name", "kind")),
    (gettext_lazy("What is sent"), False, (
        "source", "prompts", "workload", "workload_file", "workload_format", "workload_columns",
        "workload_skip_faulty", "too_long", "language", "distinct_prompts", "input_tokens", "output_tokens",
    )),
    (gettext_lazy("Spread of lengths, shared prefixes, conversations"), True, (
        "input_lengths", "output_lengths", "shared_prefix_tokens", "distinct_prefixes", "prefix_share",
        "turns", "think_time_s",
    )),
    (gettext_lazy("How it arrives"), False, (
        "load_shape", "rate", "gamma_shape", "burst_size", "burst_period_s", "ramp_from", "ramp_to",
        "ramp_seconds", "rate_steps", "spacing", "speed", "concurrency", "requests",
    )),
    (gettext_lazy("Warm-up, time limit, sampling, tenants"), True, (
        "warmup_requests", "timeout_s", "temperature", "seed", "tenants", "applications",
    )),
    (gettext_lazy("What is interrupted and what is judged"), False, ()),  # and all that is named nowhere
)  # fmt: skip


def sections_of(form: forms.Form) -> list[Section]:
    """The form's fields in sections, empty ones left out."""
    named = {name for _title, _folded, names in _SECTIONS for name in names}
    rest = [name for name in form.fields if name not in named]
    found = []
    for title, folded, names in _SECTIONS:
        fields = [form[name] for name in names or rest if name in form.fields]
        if fields:
            found.append(Section(title, fields, folded))
    return found


def _differs(field: BoundField) -> bool:
    """Whether a field has another value than an empty form proposes."""
    return _plain(field.value()) not in ("", _plain(field.field.initial), _PROPOSED.get(field.name))


def _plain(value: Any) -> str:
    return "" if value is None else str(value)


#: what fields of a stored spec say that were never touched
_PROPOSED = {
    "distinct_prefixes": "1", "prefix_share": "1.0", "turns": "1", "think_time_s": "0.0",
}  # fmt: skip
