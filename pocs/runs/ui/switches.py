"""The engine's switches as pages offer them: by technique, with what each gained when it was measured."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django import forms
from django.utils.formats import number_format
from django.utils.translation import gettext as _

from pocs.runs import effects
from pocs.runs.effects import Effect, Effects
from pocs.runs.techniques import COMPUTING, TECHNIQUES, Technique

#: the field of the form that stands for a part of a setting's value
EXTRA_FIELDS = {"speculate": ("speculate", "draft_model")}
#: switches that trade throughput for the tail: one figure alone would mislead
TRADED = ("max_batch", "prefill_chunk_tokens")


@dataclass(frozen=True)
class SwitchGroup:
    """The fields of one technique (None: where and how it is computed), and its effects in short."""

    code: str
    technique: Technique | None
    name: str
    fields: tuple[forms.BoundField, ...]
    effects: tuple[str, ...]


def switch_groups(form: forms.Form) -> list[SwitchGroup]:
    """The form's switches by technique, the others last."""
    found = effects.measured()
    groups = [
        SwitchGroup(
            technique.code,
            technique,
            str(technique.name),
            _fields(form, technique.settings),
            tuple(shortly(effect) for effect in telling(found, technique)),
        )
        for technique in TECHNIQUES
        if technique.settings[0] in form.fields and technique.settings != ("location",)
    ]
    return [
        *groups,
        SwitchGroup("computing", None, _("Where and how it is computed"), _fields(form, COMPUTING), ()),
    ]


def telling(found: Effects | None, technique: Technique) -> list[Effect]:
    """One effect for each value of a switch: on the work that was measured first, which should show it."""
    first: dict[Any, Effect] = {}
    for effect in found.of(technique.settings) if found else ():
        first.setdefault(effect.change, effect)
    return list(first.values())


def shortly(effect: Effect) -> str:
    """One effect in a few words, by processor time."""
    shown = {
        "change": effect.change.text,
        "work": effect.work,
        "ratio": number_format(round(effect.cpu_ratio.median, 2), 2),
        "n": effect.pairs,
    }
    before_ms, after_ms = effect.tpot_p99_ms
    if effect.change.setting not in TRADED or before_ms is None or after_ms is None:
        return _("%(change)s: %(work)s %(ratio)s× as fast (n = %(n)s)") % shown
    shown |= {"before": number_format(round(before_ms)), "after": number_format(round(after_ms))}
    text = _("%(change)s: %(work)s %(ratio)s× as fast (n = %(n)s), TPOT p99 %(before)s → %(after)s ms")
    return text % shown


def _fields(form: forms.Form, settings: Sequence[str]) -> tuple[forms.BoundField, ...]:
    names = [name for setting in settings for name in EXTRA_FIELDS.get(setting, (setting,))]
    return tuple(form[name] for name in names if name in form.fields)
