"""The fields of a scenario that say how load arrives and what it is made of, beside lengths and rates."""

from typing import Any

from django.utils.translation import gettext as _

from pocs.projects.scenario_fields import Reader
from pocs.projects.workload_port import workload_reader

TOO_LONG = ("reject", "clip")

#: name → default; a field that has its default is not stored, so that digests of earlier specs stay
LOAD_DEFAULTS: dict[str, Any] = {
    "arrival": "",  # shape of load; empty: Poisson at the rate, or a closed loop
    "input_lengths": "",  # distributions; empty: all as the plain field says
    "output_lengths": "",
    "turns": 1,
    "think_time_s": 0.0,
    "distinct_prefixes": 1,
    "prefix_share": 1.0,
    "workload": "",  # digest of a request set or trace of the project
    "too_long": "reject",
}


def read_load(read: Reader) -> dict[str, Any]:
    """The values of these fields; what is wrong goes to the reader's errors."""
    return {
        "arrival": _arrival(read),
        "input_lengths": _lengths(read, "input_lengths"),
        "output_lengths": _lengths(read, "output_lengths"),
        "turns": read.integer("turns", 1, 100, default=1),
        "think_time_s": read.number("think_time_s", 0, 3_600, default=0.0),
        "distinct_prefixes": read.integer("distinct_prefixes", 1, 10_000, default=1),
        "prefix_share": read.number("prefix_share", 0, 1, default=1.0),
        "workload": _word(read, "workload", 64),
        "too_long": read.choice("too_long", TOO_LONG, default="reject"),
    }


def check_load(read: Reader, values: dict[str, Any]) -> None:
    """What these fields contradict; only where each is right by itself."""
    needs_rate = bool(values["arrival"]) and workload_reader().shape_needs_rate(values["arrival"])
    if needs_rate and values["rate"] is None:
        read.wrong("rate", "required", _("This shape of load needs a rate."))
    if values["arrival"] and not needs_rate and values["rate"] is not None:
        read.wrong("rate", "contradicts", _("This shape of load says its own rate; leave this one empty."))
    if values["workload"] and values["prompts"]:
        text = _("Requests come from real prompts or from a file, not from both.")
        read.wrong("workload", "contradicts", text)
    if values["arrival"].startswith("trace") and not values["workload"]:
        read.wrong("arrival", "contradicts", _("A replay needs a file with times of arrival."))
    if values["turns"] > 1 and values["workload"]:
        text = _("The file says which requests follow each other; turns are for generated prompts.")
        read.wrong("turns", "contradicts", text)


def _arrival(read: Reader) -> str:
    arrival = _word(read, "arrival", 400)
    if arrival and workload_reader().shape_needs_rate(arrival) is None:
        text = _(
            "“%(value)s” is no shape of load. With a rate: constant, poisson or gamma:SHAPE; without: "
            "burst:SIZE/SECONDS, ramp:FROM-TO/SECONDS, steps:RATExSECONDS,… or trace:SPEED."
        )
        read.wrong("arrival", "invalid", text % {"value": arrival[:80]})
        return ""
    return arrival


def _lengths(read: Reader, name: str) -> str:
    lengths = _word(read, name, 200)
    if lengths and not workload_reader().are_lengths(lengths):
        text = _(
            "“%(value)s” is no distribution of lengths. Write for example uniform:min=100,max=900, "
            "normal:mean=512,sigma=128 or lognormal:p50=400,p95=1800."
        )
        read.wrong(name, "invalid", text % {"value": lengths[:80]})
        return ""
    return lengths


def _word(read: Reader, name: str, longest: int) -> str:
    value = read.taken(name, "")
    if not isinstance(value, str) or len(value) > longest:
        text = _("This must be a text of at most %(longest)s characters.")
        read.wrong(name, "type", text % {"longest": longest})
        return ""
    return value.strip()
