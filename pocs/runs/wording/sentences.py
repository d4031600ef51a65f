"""One code with its figures as a sentence in the reader's language, each figure with its unit."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from django.db.models import TextChoices
from django.utils.formats import number_format
from django.utils.translation import gettext as _

from pocs.runs.choices import MetricSet, RunState
from pocs.runs.metric_sets import METRIC_NAMES

MS_PER_S = 1000.0


@dataclass(frozen=True)
class Sentence:
    """One finding, advice or reason: its code, its sentence, and the figures it rests on."""

    code: str
    text: str
    figures: Mapping[str, Any]
    stage: str = ""  # advice: the stage it acts on
    area: str = ""  # advice: its action area (D7), in words
    technique: str = ""  # advice: its technique (T1–T9), in words
    risks: tuple[str, ...] = ()  # advice: what the technique may spoil (T10), in words
    serves_goal: bool | None = None  # advice: whether it serves the stated goal; None: there is none
    confidence: str = ""  # advice: in words
    settle: str = ""  # what would settle it, in words


def sentence(templates: Mapping[str, Any], item: Mapping[str, Any], **more: Any) -> Sentence:
    """The sentence of `item["code"]`; a code without one is shown as it is, so that nothing is hidden."""
    code, figures = str(item.get("code")), item.get("figures") or {}
    template = templates.get(code)
    text = str(template) % _Shown(figures) if template is not None else code
    return Sentence(code=code, text=text, figures=figures, **more)


class _Shown(dict[str, str]):
    """The figures of one code as text with their unit, by name; "—" for what was not observed."""

    def __init__(self, figures: Mapping[str, Any]) -> None:
        super().__init__({name: shown(name, value) for name, value in figures.items()})

    def __missing__(self, name: str) -> str:
        return "—"


#: figures that are shares by other names
SHARES = frozenset({"kv_usage_peak", "kv_fragmentation_peak", "utilisation", "threshold"})


def shown(name: str, value: Any) -> str:
    """One figure with the unit that its name states."""
    if value is None:
        return "—"
    if name in _NAMED:
        return _NAMED[name](value)
    if isinstance(value, str):
        return value
    if name.endswith("_ms") or "ms_per_" in name:
        return _("%(value)s ms") % {"value": shown_number(value)}
    if name.endswith("_per_second"):
        return _("%(value)s tokens/s") % {"value": shown_number(value)}
    share = name.endswith(("share", "_rate")) or name in SHARES
    return f"{shown_number(value * 100)} %" if share else shown_number(value)


def shown_value(value: float | None, unit: str) -> str:
    """One figure with its unit: ms, share (as per cent), tokens/s or requests/s."""
    if value is None:
        return "—"
    if unit == "share":
        return f"{shown_number(value * 100)} %"
    templates = {
        "ms": _("%(value)s ms"),
        "tokens/s": _("%(value)s tokens/s"),
        "requests/s": _("%(value)s requests/s"),
    }
    return templates.get(unit, "%(value)s " + unit) % {"value": shown_number(value)}


def _label_of(choices: type[TextChoices]) -> Callable[[str], str]:
    return lambda value: str(choices(value).label) if value in choices.values else value


def _duration(value: float) -> str:
    """Milliseconds as seconds from one second on."""
    if value >= MS_PER_S:
        return _("%(value)s s") % {"value": shown_number(value / MS_PER_S)}
    return _("%(value)s ms") % {"value": shown_number(value)}


_NAMED: dict[str, Callable[[Any], str]] = {
    "total_ms": _duration,
    "missing": lambda codes: _(", ").join(str(METRIC_NAMES.get(code, code)) for code in codes),
    "metric_set": _label_of(MetricSet),
    "state": _label_of(RunState),
}


def shown_number(value: float) -> str:
    """At most three significant digits below 100, whole numbers above."""
    if isinstance(value, int):
        return number_format(value)
    size = abs(value)
    decimals = 0 if size >= 100 else 1 if size >= 10 else 2
    return number_format(round(value, decimals), decimal_pos=decimals)
