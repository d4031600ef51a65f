"""Template filters of the site: figures that keep their unit, absent values, states as badges.

Absent (None) is shown as a dash that says "not observed", never as 0.
"""

import json
import re
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any

from django import template
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext, pgettext

register = template.Library()

GOOD, WARN, BAD, ACTIVE, CALM = "good", "warn", "bad", "active", "calm"

#: the colour of each state of every choice set; what is not listed is calm
STATE_TONES: dict[str, str] = {
    **dict.fromkeys(
        [
            "complete", "valid", "approved", "reviewed", "frozen", "accepted", "granted", "confirmed",
            "success", "done", "met", "ready", "handed_over", "evidence_complete", "decided", "switched",
            "pass", "better",
        ],
        GOOD,
    ),
    **dict.fromkeys(
        [
            "approved_with_conditions", "accepted_with_conditions", "extended_pilot", "returned", "stale",
            "incomplete", "rate_limited", "timeout", "interrupted", "overdue", "waived", "missing", "kept",
            "rolled_back", "inconclusive",
        ],
        WARN,
    ),
    **dict.fromkeys(["failed", "invalid", "rejected", "revoked", "refused", "lost", "fail", "worse"], BAD),
    **dict.fromkeys(
        [
            "preparing", "warming", "measuring", "finalising", "running", "in_review", "follow_through",
            "observing", "submitted", "active", "proposed", "requested",
        ],
        ACTIVE,
    ),
}  # fmt: skip


def absent() -> SafeString:
    """The mark of a value that was not observed."""
    return format_html('<span class="absent" title="{}">—</span>', gettext("not observed"))


def figure(value: Any, unit: str, decimals: int) -> SafeString:
    """A number with thin separators and its unit, or the mark of absence."""
    number = as_number(value)
    if number is None:
        return absent()
    return format_html(
        '<span class="figure">{}<span class="unit"> {}</span></span>', f"{number:,.{decimals}f}", unit
    )


def as_number(value: Any) -> float | None:
    """The value as a float; None for None, text and booleans."""
    if value is None or isinstance(value, bool):
        return None
    try:
        return float(value)
    except (TypeError, ValueError):
        return None


def ms_decimals(value: float) -> int:
    """Decimals of a time in milliseconds: three significant digits, at most two decimals."""
    size = abs(value)
    return 2 if size < 10 else 1 if size < 100 else 0


@register.filter
def ms(value: Any) -> SafeString:
    """Milliseconds: `12.3 ms`, `1,234 ms`."""
    number = as_number(value)
    return absent() if number is None else figure(number, "ms", ms_decimals(number))


@register.filter
def ms_number(value: Any) -> str:
    """Milliseconds without the unit, for tables whose head names it; a dash when absent."""
    number = as_number(value)
    return absent() if number is None else f"{number:,.{ms_decimals(number)}f}"


@register.filter
def seconds(value: Any) -> SafeString:
    """Seconds with one decimal."""
    return figure(value, "s", 1)


@register.filter
def tokens_per_s(value: Any) -> SafeString:
    """Tokens per second with one decimal."""
    return figure(value, gettext("tokens/s"), 1)


@register.filter
def requests_per_s(value: Any) -> SafeString:
    """Requests per second with two decimals."""
    return figure(value, gettext("requests/s"), 2)


@register.filter
def tokens(value: Any) -> SafeString:
    """A number of tokens."""
    return figure(value, gettext("tokens"), 0)


@register.filter
def mib(value: Any) -> SafeString:
    """Bytes as MiB."""
    number = as_number(value)
    return absent() if number is None else figure(number / 2**20, "MiB", 0 if number >= 2**27 else 1)


@register.filter
def percent(value: Any) -> SafeString:
    """A share between 0 and 1 as per cent with one decimal."""
    number = as_number(value)
    return absent() if number is None else figure(number * 100, "%", 1)


@register.filter
def number(value: Any, decimals: int = 0) -> SafeString | str:
    """A plain number with separators, or the mark of absence."""
    plain = as_number(value)
    return absent() if plain is None else f"{plain:,.{int(decimals)}f}"


@register.filter
def or_absent(value: Any) -> Any:
    """The value itself; the mark of absence for None and empty text."""
    return absent() if value is None or value == "" else value


@register.filter
def short_digest(value: str | None) -> SafeString:
    """The first twelve digits of a digest, the whole of it as its title."""
    if not value:
        return absent()
    return format_html('<code class="digest" title="{}">{}</code>', value, value[:12])


@register.filter
def duration(value: Any) -> SafeString | str:
    """A timedelta or a number of seconds as `1 h 02 min`, `3 min 20 s` or `12 s`."""
    total = value.total_seconds() if isinstance(value, timedelta) else as_number(value)
    if total is None:
        return absent()
    whole = round(total)
    if whole >= 3600:
        return pgettext("duration", "%(h)d h %(m)02d min") % {"h": whole // 3600, "m": whole % 3600 // 60}
    if whole >= 60:
        return pgettext("duration", "%(m)d min %(s)02d s") % {"m": whole // 60, "s": whole % 60}
    return pgettext("duration", "%(s)d s") % {"s": whole}


@register.filter
def at(value: datetime | None) -> SafeString:
    """A moment in the current time zone, to the minute, with the exact time as its title."""
    if value is None:
        return absent()
    from_zone = timezone.localtime(value)
    return format_html(
        '<time datetime="{}" title="{}">{}</time>',
        from_zone.isoformat(),
        from_zone.strftime("%Y-%m-%d %H:%M:%S %Z"),
        from_zone.strftime("%Y-%m-%d %H:%M"),
    )


@register.filter
def state_badge(value: Any, argument: str = "state") -> SafeString:
    """A state as a coloured word.

    `{{ run|state_badge }}` takes `run.state` and its label, `{{ run|state_badge:"validity" }}`
    another field of choices; `{{ "valid"|state_badge:label }}` takes the value and its text.
    """
    if hasattr(value, f"get_{argument}_display"):
        state = str(getattr(value, argument))
        label = getattr(value, f"get_{argument}_display")()
    else:
        state, label = str(value), argument
    return _badge(state, str(label))


@lru_cache(maxsize=1024, typed=True)  # a safe text is another key than the same text unsafe
def _badge(state: str, label: str) -> SafeString:
    """Drawn once: a page shows the same few states dozens of times."""
    tone = STATE_TONES.get(state, CALM)
    return format_html('<span class="badge {}" data-state="{}">{}</span>', tone, state, label)


@register.filter
def tone(state: Any) -> str:
    """The colour class of a state: good, warn, bad, active or calm."""
    return STATE_TONES.get(str(state), CALM)


@register.filter
def lookup(mapping: Any, key: Any) -> Any:
    """`mapping[key]`, or None where there is no such key."""
    try:
        return mapping[key]
    except (KeyError, IndexError, TypeError):
        return None


_WORD_BREAK = re.compile(r"([/_@.-])")


@register.filter
def breakable(value: Any) -> SafeString:
    """A long name that may break after `/`, `_`, `@`, `.` and `-`."""
    parts = _WORD_BREAK.split(str(value))
    html = SafeString("")
    for part in parts:
        html += format_html("{}<wbr>", part) if _WORD_BREAK.fullmatch(part) else format_html("{}", part)
    return html


_KINDS: dict[str, tuple[float, int | None]] = {
    "ms": (1.0, None),
    "rate": (1.0, 1),
    "percent": (100.0, 1),
    "mib": (1 / 2**20, 0),
    "count": (1.0, 0),
}


@register.filter
def figure_as(value: Any, kind: str) -> SafeString | str:
    """A number without its unit, as figures.js writes the same kind: ms, rate, percent, mib, count."""
    plain = as_number(value)
    if plain is None:
        return absent()
    factor, decimals = _KINDS[kind]
    return f"{plain * factor:,.{ms_decimals(plain) if decimals is None else decimals}f}"


@register.filter
def ms_exact(value: Any) -> SafeString | str:
    """Milliseconds with three decimals, where figures are to be added up by the reader."""
    return number(value, 3)


@register.filter
def pretty_json(value: Any) -> str:
    """A stored document as indented JSON."""
    return json.dumps(value, indent=2, ensure_ascii=False, sort_keys=True)
