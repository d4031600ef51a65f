"""What each kind of scenario asks of its author and what it proves: texts and own fields of the form.

What a kind does is in `inference.kinds`, in a module of the kind's name; names, defaults and ranges here are
held against it by a test.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from pocs.common.errors import FieldError, Text
from pocs.projects.choices import ScenarioKind


@dataclass(frozen=True)
class KindField:
    """A field that only this kind has: a number with its range, or a text (`low` is None)."""

    name: str
    label: Text
    default: float | str
    low: float | None = None
    high: float | None = None
    whole: bool = False
    help_text: Text = ""

    @property
    def is_text(self) -> bool:
        return self.low is None


@dataclass(frozen=True)
class KindForm:
    """One kind as its author sees it. `answers` are the gates and questions that it serves."""

    kind: ScenarioKind
    proves: Text
    answers: tuple[str, ...]
    fields: tuple[KindField, ...] = ()
    needs_engine: bool = False
    needs_limits: bool = False


_RATES = (
    KindField("rate_low", gettext_lazy("lowest rate (requests per second)"), 0.5, 0.001, 100_000),
    KindField("rate_high", gettext_lazy("highest rate (requests per second)"), 8, 0.001, 100_000),
)
_STEP_REQUESTS = KindField(
    "step_requests",
    gettext_lazy("requests per step"),
    40,
    5,
    100_000,
    whole=True,
    help_text=gettext_lazy("With fewer than 80, a p95 stays inconclusive even where no request is above it."),
)

KIND_FORMS: dict[str, KindForm] = {
    form.kind.value: form
    for form in (
        KindForm(
            ScenarioKind.SHORT_REQUEST,
            gettext_lazy(
                "Proves what a request costs before its first token when there is little to compute."
            ),
            ("S1", "Q1"),
        ),
        KindForm(
            ScenarioKind.LONG_CONTEXT,
            gettext_lazy(
                "Proves what a thousand tokens of context cost, and how much of them the cache saves."
            ),
            ("S2", "S8", "Q2"),
        ),
        KindForm(
            ScenarioKind.HIGH_CONCURRENCY,
            gettext_lazy("Proves that the load is really there at once, and what batching does to the tail."),
            ("S3", "S10", "Q7", "Q15"),
        ),
        KindForm(
            ScenarioKind.STREAMING,
            gettext_lazy("Proves that answers flow: stalls, jitter and the share of the longest gap (M11)."),
            ("S4", "M11"),
            (
                KindField("stall_ms", gettext_lazy("a stall lasts at least (ms)"), 500, 1, 600_000),
                KindField(
                    "stall_factor",
                    gettext_lazy("and so many times the median gap of its answer"),
                    5,
                    1,
                    1_000,
                ),
            ),
        ),
        KindForm(
            ScenarioKind.INTERRUPTION,
            gettext_lazy(
                "Proves that what clients leave in queue, prefill or decode is given back: blocks, running "
                "requests and memory are watched until they are at their level before (M18)."
            ),
            ("S5", "S11", "Q6", "G3"),
            (KindField("release_limit_s", gettext_lazy("watch at most (s)"), 30, 1, 3_600),),
        ),
        KindForm(
            ScenarioKind.MODEL_SWITCH,
            gettext_lazy(
                "Proves that a failed load leaves the old model answering, and that a switch can be taken "
                "back (M21, M22)."
            ),
            ("S6", "Q8", "G7"),
            (
                KindField(
                    "second_model",
                    gettext_lazy("the other model"),
                    "",
                    help_text=gettext_lazy(
                        "A model folder or .gguf file beside the target's own; empty: the same model is "
                        "loaded anew."
                    ),
                ),
            ),
            needs_engine=True,
        ),
        KindForm(
            ScenarioKind.RESOURCE_RECLAIM,
            gettext_lazy(
                "Proves that memory comes back: cycles of load and rest, the watermark of each, and the "
                "slope of what stays, with its interval."
            ),
            ("S7", "Q6", "Q10"),
            (
                KindField("cycles", gettext_lazy("cycles of load and rest"), 4, 2, 1_000, whole=True),
                KindField("rest_s", gettext_lazy("rest after each (s)"), 3, 0, 3_600),
            ),
        ),
        KindForm(
            ScenarioKind.LONG_ANSWER,
            gettext_lazy(
                "Proves that answers get as long as asked, and that tokens do not slow down meanwhile."
            ),
            ("S12", "S9", "M9"),
        ),
        KindForm(
            ScenarioKind.PRODUCTION_REPLAY,
            gettext_lazy("Proves which class of requests suffers when all of them come together."),
            ("S13", "Q1", "Q11"),
            (
                KindField(
                    "classes",
                    gettext_lazy("classes of requests"),
                    "",
                    help_text=gettext_lazy(
                        "One a line: name, share, input and output tokens, such as “chat 75% 200 100”. "
                        "Empty: the scenario's own requests, by application."
                    ),
                ),
            ),
        ),
        KindForm(
            ScenarioKind.CAPACITY_SEARCH,
            gettext_lazy(
                "Proves up to which offered load every limit holds, by bisection, with its interval (M27)."
            ),
            ("M27", "Q10", "Q12"),
            (
                *_RATES,
                KindField("steps", gettext_lazy("at most so many steps"), 6, 2, 30, whole=True),
                _STEP_REQUESTS,
                KindField(
                    "error_share_max", gettext_lazy("share of errors that is allowed (0–1)"), 0.01, 0, 0.5
                ),
            ),
            needs_limits=True,
        ),
        KindForm(
            ScenarioKind.SOAK,
            gettext_lazy(
                "Proves that hours of even load change nothing: drift of TTFT, TPOT and memory (M28)."
            ),
            ("M28", "Q10"),
            (
                KindField("duration_s", gettext_lazy("duration (s)"), 1800, 1, 604_800),
                KindField("windows", gettext_lazy("windows of time"), 6, 3, 200, whole=True),
            ),
        ),
        KindForm(
            ScenarioKind.THROTTLING,
            gettext_lazy(
                "Proves from which rate on the service refuses (429, 503), and whether it serves after the "
                "wait that it names (M24)."
            ),
            ("M24", "Q12"),
            (
                KindField("rate_low", gettext_lazy("lowest rate (requests per second)"), 1, 0.001, 100_000),
                KindField(
                    "rate_high", gettext_lazy("highest rate (requests per second)"), 32, 0.001, 100_000
                ),
                KindField("steps", gettext_lazy("at most so many steps"), 5, 2, 30, whole=True),
                KindField("step_requests", gettext_lazy("requests per step"), 40, 5, 100_000, whole=True),
            ),
        ),
    )
}

_CLASS_LINE = re.compile(r"\S+\s+\d+(\.\d+)?%?\s+[1-9]\d*\s+[1-9]\d*")
TEXT_MAX = 4_000


def options_wrong(kind: str, spec: Mapping[str, Any]) -> list[FieldError]:
    """What is wrong with the kind's own fields, and with what the kind needs beside them."""
    form = KIND_FORMS.get(kind)
    if form is None:
        return []
    wrong: list[FieldError] = []
    options = spec.get("options") or {}
    known = {field.name: field for field in form.fields}
    for name, value in options.items():
        pointer = f"/spec/options/{name}"
        if name not in known:
            unknown = _("A scenario of the kind “%(kind)s” has no such field.") % {"kind": form.kind.label}
            wrong.append(FieldError(pointer, "unknown", unknown))
        elif (text := _field_wrong(known[name], value)) is not None:
            wrong.append(FieldError(pointer, "range", text))
    if not wrong:
        wrong += _together_wrong(form, spec, options)
    return wrong


def _field_wrong(field: KindField, value: Any) -> str | None:
    if field.is_text:
        if not isinstance(value, str) or len(value) > TEXT_MAX:
            return _("This must be a text of at most %(most)s characters.") % {"most": TEXT_MAX}
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return _("This must be a number.")
    if field.whole and value != int(value):
        return _("This must be a whole number.")
    assert field.low is not None
    assert field.high is not None
    if not field.low <= value <= field.high:
        return _("This must lie between %(low)s and %(high)s; it is %(value)s.") % {
            "low": f"{field.low:g}", "high": f"{field.high:g}", "value": f"{value:g}",
        }  # fmt: skip
    return None


def _together_wrong(form: KindForm, spec: Mapping[str, Any], options: Mapping[str, Any]) -> list[FieldError]:
    defaults = {field.name: field.default for field in form.fields}
    values = defaults | dict(options)
    wrong = []
    if form.needs_limits and not spec.get("limits"):
        text = _("A search for the capacity needs at least one limit: without it no load is too high.")
        wrong.append(FieldError("/spec/limits", "required", text))
    if "rate_low" in values and not values["rate_low"] < values["rate_high"]:
        text = _("The lowest rate must be below the highest.")
        wrong.append(FieldError("/spec/options/rate_low", "range", text))
    for line in filter(None, map(str.strip, str(values.get("classes", "")).splitlines())):
        if not _CLASS_LINE.fullmatch(line):
            text = _("“%(line)s” is no class of requests; write for example “chat 75%% 200 100”.")
            wrong.append(FieldError("/spec/options/classes", "invalid", text % {"line": line[:80]}))
    return wrong


def options_shown(kind: str, spec: Mapping[str, Any]) -> list[tuple[Text, Any]]:
    """The kind's own fields with the values in force, by label."""
    form = KIND_FORMS.get(kind)
    given = spec.get("options") or {}
    return [(field.label, given.get(field.name, field.default)) for field in (form.fields if form else ())]
