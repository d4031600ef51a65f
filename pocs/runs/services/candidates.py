"""Candidates: copies of an engine target with one switch changed, to be measured against it (T10)."""

from collections.abc import Mapping
from typing import Any

from django.utils.translation import gettext as _

from pocs.common.actors import Actor
from pocs.common.errors import Conflict, FieldError, InvalidInput
from pocs.people import policies
from pocs.runs.candidates import measured_against_baseline
from pocs.runs.choices import TargetKind
from pocs.runs.engine_settings import DEFAULTS, OF_SPECULATION
from pocs.runs.models import Target
from pocs.runs.services.targets import target_create
from pocs.runs.techniques import Change

LOCATION = "location"
NAME_LENGTH = 120


def candidate_create(*, actor: Actor, source: Target, change: Mapping[str, Any]) -> Target:
    """A copy of an engine target in which only one switch (or the model, by `location`) differs.

    Raises InvalidInput for none or several changes, or one that changes nothing; Conflict while the source
    is itself a candidate that was never measured against its own baseline.
    """
    policies.require(actor, "target.edit", source.project)
    if source.kind != TargetKind.ENGINE:
        raise _wrong(
            "", "engine", _("Only a target of the embedded engine has switches; this is an endpoint.")
        )
    one = _the_one(change)
    _check_differs(source, one)
    if source.baseline is not None and not measured_against_baseline(source):
        raise Conflict(
            _(
                "“%(name)s” is itself a candidate of “%(baseline)s” and was not measured against it yet: "
                "run the same scenario on both first, then change the next switch (T10, X5)."
            )
            % {"name": source.name, "baseline": source.baseline.name}
        )
    settings = dict(source.engine_settings)
    if one.setting != LOCATION:
        settings[one.setting] = one.value
    if settings.get("speculate") in (None, "none"):
        settings = {name: value for name, value in settings.items() if name not in OF_SPECULATION}
    return target_create(
        actor=actor,
        project=source.project,
        name=_name(source, one),
        kind=TargetKind.ENGINE,
        location=one.value if one.setting == LOCATION else source.location,
        model=source.model,
        engine_settings=settings,
        baseline=source,
    )


def _the_one(change: Mapping[str, Any]) -> Change:
    if len(change) > 1:
        text = _(
            "A candidate changes one switch, not %(n)s (%(names)s): with several at once nobody can say "
            "which one helped or harmed, and all must be rolled back together (T10, X5)."
        )
        raise _wrong("", "stacked", text % {"n": len(change), "names": ", ".join(change)})
    if not change:
        raise _wrong("", "required", _("Name the one switch that the candidate changes, with its value."))
    ((setting, value),) = change.items()
    if setting != LOCATION and setting not in DEFAULTS:
        raise _wrong(setting, "unknown", _("The engine has no setting “%(name)s”.") % {"name": setting})
    if value is None or value == "" or (setting == LOCATION and not isinstance(value, str)):
        raise _wrong(setting, "required", _("Give %(name)s a value.") % {"name": setting})
    return Change(setting, value)


def _check_differs(source: Target, one: Change) -> None:
    if one.setting == LOCATION:
        present = source.location
    else:
        present = source.engine_settings.get(one.setting, DEFAULTS[one.setting])
    wanted = None if one.setting == "speculate" and one.value == "none" else one.value
    if present == wanted:
        text = _("“%(target)s” has %(change)s already: the candidate would be the same.")
        raise _wrong(one.setting, "no_change", text % {"target": source.name, "change": one.text})


def _name(source: Target, one: Change) -> str:
    tail = f" · {one.text}"
    return f"{source.name[: max(1, NAME_LENGTH - len(tail))]}{tail}"[:NAME_LENGTH]


def _wrong(setting: str, code: str, text: str) -> InvalidInput:
    return InvalidInput(text, [FieldError(f"/change/{setting}".rstrip("/"), code, text)])
