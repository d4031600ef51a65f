"""The document `poc-run/1`: checked against its schema, its units brought to the house's own.

Everything wrong is found at once and named by JSON pointer; nothing is guessed. Absent stays null.
"""

import json
import math
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

from django.utils.translation import gettext as _
from jsonschema import Draft202012Validator, FormatChecker
from jsonschema.exceptions import ValidationError

from pocs.common.canonical import digest
from pocs.common.errors import FieldError, InvalidInput

SCHEMA_PATH = Path(__file__).parent / "schemas" / "poc-run-1.json"
PERCENTILES = ("p50", "p90", "p95", "p99", "max")
MAX_ERRORS = 50

#: dimension -> unit -> factor to the unit that is stored (ms, ratio, bytes, tokens, … a second)
UNITS: dict[str, dict[str, float]] = {
    "time": {"ms": 1.0, "s": 1000.0, "us": 0.001, "µs": 0.001},
    "ratio": {"ratio": 1.0, "percent": 0.01, "%": 0.01},
    "memory": {
        "bytes": 1.0,
        "KiB": 2.0**10,
        "MiB": 2.0**20,
        "GiB": 2.0**30,
        "kB": 1e3,
        "MB": 1e6,
        "GB": 1e9,
    },
    "tokens": {"tokens": 1.0},
    "tokens_per_second": {"tokens/s": 1.0},
    "requests_per_second": {"requests/s": 1.0, "requests/min": 1.0 / 60.0},
}
DISTRIBUTIONS = ("ttft", "tpot", "itl", "e2e", "queue_wait", "prefill", "decode")
FIGURES = {
    "output_throughput": "tokens_per_second",
    "total_throughput": "tokens_per_second",
    "request_throughput": "requests_per_second",
    "error_rate": "ratio",
    "cache_hit_rate": "ratio",
    "gpu_utilisation": "ratio",
    "memory_peak": "memory",
    "input_tokens": "tokens",
    "output_tokens": "tokens",
}


@cache
def validator() -> Draft202012Validator:
    """The compiled schema of `poc-run/1`; a date-time must name its offset (RFC 3339)."""
    formats = FormatChecker(formats=())

    @formats.checks("date-time", raises=(ValueError, OverflowError))
    def is_date_time(value: object) -> bool:
        if not isinstance(value, str):
            return True
        moment = datetime.fromisoformat(value)
        return moment.tzinfo is not None and moment.astimezone(UTC).year > 1

    return Draft202012Validator(json.loads(SCHEMA_PATH.read_text()), format_checker=formats)


def check_finite(value: Any) -> None:
    """Raise InvalidInput naming every NaN or infinity inside `value`: JSON has neither."""
    found = [
        FieldError(pointer, "not_finite", _("This is not a finite number; leave out what was not observed."))
        for pointer in _not_finite(value, "")
    ]
    if found:
        raise InvalidInput(_("The body holds numbers that are not finite."), found[:MAX_ERRORS])


def poc_run_check(payload: Any) -> None:
    """Raise InvalidInput with every pointer at fault unless `payload` is a good `poc-run/1`."""
    check_finite(payload)
    found = [_translated(error) for error in validator().iter_errors(payload)]
    if not found:
        found = list(_meaning(payload))
    if found:
        raise InvalidInput(_("The result does not follow the schema poc-run/1."), found[:MAX_ERRORS])


def in_house_units(payload: dict[str, Any]) -> dict[str, Any]:
    """The metrics of a checked payload with their units converted; null where absent.

    Distributions become `{n, mean, p50, …, max}` in ms, figures a number in ratio, bytes, tokens or
    … a second.
    """
    converted: dict[str, Any] = {}
    for name in DISTRIBUTIONS:
        given = payload["metrics"].get(name)
        converted[name] = given and {"n": given["n"]} | {
            key: None if given.get(key) is None else given[key] * UNITS["time"][given["unit"]]
            for key in ("mean", *PERCENTILES)
        }
    for name, dimension in FIGURES.items():
        given = payload["metrics"].get(name)
        absent = given is None or given["value"] is None
        converted[name] = None if absent else given["value"] * UNITS[dimension][given["unit"]]
    return converted


def _not_finite(value: Any, pointer: str) -> Iterator[str]:
    if isinstance(value, float) and not math.isfinite(value):
        yield pointer
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _not_finite(item, f"{pointer}/{_escaped(key)}")
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _not_finite(item, f"{pointer}/{index}")


def _escaped(step: Any) -> str:
    return str(step).replace("~", "~0").replace("/", "~1")


def _translated(error: ValidationError) -> FieldError:
    """One violation of the schema in the reader's language, at the place it concerns."""
    pointer = "".join(f"/{_escaped(step)}" for step in error.absolute_path)
    rule, wanted = str(error.validator), error.validator_value
    if rule == "required":
        name = next(name for name in wanted if name not in error.instance)
        return FieldError(f"{pointer}/{name}", "required", _("This field is required."))
    if rule == "additionalProperties" and isinstance(error.instance, dict):
        known = error.schema.get("properties", {})
        name = next(name for name in error.instance if name not in known)
        return FieldError(f"{pointer}/{_escaped(name)}", "unknown", _("There is no such field."))
    texts = {
        "minimum": _("This is below the least value %(value)s.") % {"value": wanted},
        "exclusiveMinimum": _("This must be above %(value)s.") % {"value": wanted},
        "enum": _("This is none of the values allowed: %(value)s.") % {"value": wanted},
        "const": _("This must be “%(value)s”.") % {"value": wanted},
        "type": _("This has the wrong type; wanted: %(value)s.")
        % {"value": ", ".join(wanted) if isinstance(wanted, list) else wanted},
        "format": _("This is not written as %(value)s.") % {"value": wanted},
        "pattern": _("This is not written as the schema asks: %(value)s.") % {"value": wanted},
    }
    other = _("This breaks the rule %(rule)s of the schema (%(value)s).") % {"rule": rule, "value": wanted}
    texts["maximum"] = _("This number is too large.")
    code = {"minimum": "negative" if wanted == 0 else "minimum", "maximum": "too_large"}.get(rule, rule)
    return FieldError(pointer, code, texts.get(rule, other))


def _meaning(payload: dict[str, Any]) -> Iterator[FieldError]:
    """What the schema cannot say: units, order of percentiles, means that stand alone, digests."""
    for name, given in payload["metrics"].items():
        if given is None:
            continue
        dimension = "time" if name in DISTRIBUTIONS else FIGURES[name]
        if given["unit"] not in UNITS[dimension]:
            known = ", ".join(UNITS[dimension])
            text = _("The unit “%(unit)s” is not known here; known are: %(known)s.")
            yield FieldError(
                f"/metrics/{name}/unit", "unknown_unit", text % {"unit": given["unit"], "known": known}
            )
        elif name in DISTRIBUTIONS:
            yield from _distribution_meaning(name, given)
        elif dimension == "ratio" and (given["value"] or 0) * UNITS["ratio"][given["unit"]] > 1.0:
            yield FieldError(f"/metrics/{name}/value", "above_one", _("A share cannot be above one."))
    stated = payload.get("configuration_digest")
    if stated is not None and stated != digest(payload["configuration"]):
        text = _("This is not the SHA-256 of the configuration's canonical JSON.")
        yield FieldError("/configuration_digest", "digest_mismatch", text)
    for key, field in (("requests", "id"), ("artifacts", "name")):
        seen: set[str] = set()
        for index, item in enumerate(payload.get(key) or []):
            if item[field] in seen:
                yield FieldError(f"/{key}/{index}/{field}", "twice", _("This occurs twice."))
            seen.add(item[field])


def _distribution_meaning(name: str, given: dict[str, Any]) -> Iterator[FieldError]:
    told = [(key, given[key]) for key in PERCENTILES if given.get(key) is not None]
    if given["n"] == 0 and (told or given.get("mean") is not None):
        text = _("Nothing was observed (n = 0), so there can be no figure.")
        yield FieldError(f"/metrics/{name}/n", "n_zero", text)
    if given["n"] > 0 and not {"p50", "p95"} <= {key for key, _value in told}:
        text = _("Give at least p50 and p95: a mean is never accepted alone (M32).")
        yield FieldError(f"/metrics/{name}", "mean_alone", text)
    for (lower, low), (upper, high) in pairwise(told):
        if low > high:
            text = _("%(lower)s is above %(upper)s.") % {"lower": lower, "upper": upper}
            yield FieldError(f"/metrics/{name}/{lower}", "order", text)
