"""The switches of the embedded engine that a target may set: which there are, and what each may be.

A target stores only what differs from "let the engine choose"; the names and values are those of
`inference.engine.options.EngineOptions`, and this module refuses what would only fail at the load.
"""

from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields
from typing import Any

from django.utils.translation import gettext as _

from inference.engine.options import CUDA_GRAPHS, DEVICE, DRAFT, DTYPES, KERNELS, EngineOptions
from pocs.common.errors import FieldError, InvalidInput

#: what the engine itself takes where a target says nothing; None where it looks at the machine
DEFAULTS: dict[str, Any] = {
    option.name: option.default
    for option in fields(EngineOptions)
    if option.name != "path" and option.default is not MISSING
}
#: the name of each choice and its values
CHOICES: dict[str, tuple[str, ...]] = {"dtype": DTYPES, "kernels": KERNELS, "cuda_graphs": CUDA_GRAPHS}
#: whole numbers with the least and the most that is sensible: a typing error must not take a machine down
RANGES: dict[str, tuple[int, int]] = {
    "max_batch": (1, 4_096),
    "kv_blocks": (1, 16_777_216),
    "block_tokens": (1, 4_096),
    "prefill_chunk_tokens": (1, 1_048_576),
    "threads": (1, 1_024),
    "max_waiting": (1, 1_048_576),
    "speculate_tokens": (1, 64),
    "speculate_max_batch": (1, 4_096),
}
STEP_LIMIT_S = (1.0, 3_600.0)
NGRAM = "ngram"
#: settings that say how to guess, and so nothing where nothing is guessed
OF_SPECULATION = ("speculate_tokens", "speculate_max_batch")
QUANTISED = ("int8", "int4")


def checked_settings(given: Mapping[str, Any], find_model: Callable[[str], Any]) -> dict[str, Any]:
    """The settings that were given, without those left empty; a draft model's path as an absolute one.

    `find_model` gives the path of a model by what was written, or raises InvalidInput. Raises InvalidInput
    whose pointer names the setting and whose text names its value.
    """
    checked: dict[str, Any] = {}
    for name, value in given.items():
        if value is None or value == "":
            continue
        if name in CHOICES:
            checked[name] = _chosen(name, value)
        elif name in RANGES:
            checked[name] = _counted(name, value)
        elif name == "prefix_cache":
            checked[name] = _switched(name, value)
        elif name == "device":
            checked[name] = _device(value)
        elif name == "step_limit_s":
            checked[name] = _seconds(value)
        elif name == "speculate":
            if (guesser := _guesser(value, find_model)) is not None:
                checked[name] = guesser
        else:
            raise wrong(name, "unknown", _("The engine has no setting “%(name)s”.") % {"name": name})
    _check_together(checked)
    return checked


def wrong(name: str, code: str, text: str) -> InvalidInput:
    """The refusal of one setting."""
    return InvalidInput(text, [FieldError(f"/engine_settings/{name}", code, text)])


def _chosen(name: str, value: Any) -> str:
    if value not in CHOICES[name]:
        text = _("%(name)s is one of %(all)s, not “%(value)s”.")
        raise wrong(name, "choice", text % {"name": name, "all": ", ".join(CHOICES[name]), "value": value})
    return str(value)


def _counted(name: str, value: Any) -> int:
    least, most = RANGES[name]
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        text = _("%(name)s is a whole number from %(least)s to %(most)s, not “%(value)s”.")
        raise wrong(name, "range", text % {"name": name, "least": least, "most": most, "value": value})
    return value


def _switched(name: str, value: Any) -> bool:
    if not isinstance(value, bool):
        text = _("%(name)s is either true or false, not “%(value)s”.") % {"name": name, "value": value}
        raise wrong(name, "type", text)
    return value


def _device(value: Any) -> str:
    if not isinstance(value, str) or not DEVICE.fullmatch(value):
        text = _("device is auto, cpu, cuda or cuda:N with the number of a GPU, not “%(value)s”.")
        raise wrong("device", "choice", text % {"value": value})
    return value


def _seconds(value: Any) -> float:
    least, most = STEP_LIMIT_S
    if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value <= most:
        text = _("step_limit_s is a number of seconds from %(least)s to %(most)s, not “%(value)s”.")
        raise wrong("step_limit_s", "range", text % {"least": int(least), "most": int(most), "value": value})
    return float(value)


def _guesser(value: Any, find_model: Callable[[str], Any]) -> str | None:
    """`ngram`, `draft:` with the path of the model, or None for "none"."""
    if value == "none":
        return None
    if value == NGRAM:
        return NGRAM
    location = value.removeprefix(DRAFT).strip() if isinstance(value, str) and value.startswith(DRAFT) else ""
    if not location:
        text = _("speculate is none, ngram or draft:PATH with the folder of a small model, not “%(value)s”.")
        raise wrong("speculate", "choice", text % {"value": value})
    try:
        return f"{DRAFT}{find_model(location)}"
    except InvalidInput as error:
        text = _("The draft model “%(value)s”: %(reason)s")
        reason = error.errors[0].detail if error.errors else error.detail
        raise wrong("speculate", "draft_model", text % {"value": location, "reason": reason}) from error


def _check_together(checked: Mapping[str, Any]) -> None:
    """Settings that cannot stand beside each other, or would do nothing."""
    for name in OF_SPECULATION:
        if name in checked and "speculate" not in checked:
            text = _("%(name)s (%(value)s) does nothing without speculate: choose ngram or a draft model.")
            raise wrong(name, "no_effect", text % {"name": name, "value": checked[name]})
    if checked.get("dtype") in QUANTISED and str(checked.get("device", "")).startswith("cuda"):
        text = _("dtype %(value)s is computed on the CPU only; device is %(device)s.")
        raise wrong("dtype", "device", text % {"value": checked["dtype"], "device": checked["device"]})
