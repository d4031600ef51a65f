"""Reading one JSON object field by field, collecting everything that is wrong with it, in words."""

import math
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from django.utils.translation import gettext as _

from pocs.common.errors import FieldError

_REQUIRED: Any = object()
T = TypeVar("T")


class Reader:
    """Typed access to the keys of `data`; wrong ones end up in `errors` with a JSON pointer."""

    def __init__(self, data: Any, pointer: str, errors: list[FieldError] | None = None) -> None:
        self.errors = [] if errors is None else errors
        self.pointer = pointer
        self._taken: set[str] = set()
        self.data: dict[str, Any] = data if isinstance(data, dict) else {}
        if not isinstance(data, dict):
            self.wrong("", "type", _("This must be an object with named fields."))

    def wrong(self, name: str, code: str, text: str) -> None:
        """Add an error at the field `name`, or at the object itself."""
        self.errors.append(FieldError(f"{self.pointer}/{name}" if name else self.pointer, code, text))

    def taken(self, name: str, default: Any = _REQUIRED) -> Any:
        """The raw value; a missing one without default is an error."""
        self._taken.add(name)
        if name in self.data:
            return self.data[name]
        return None if default is _REQUIRED else default

    def _value(self, name: str, default: Any) -> tuple[Any, bool]:
        """The raw value and whether it is there to be checked."""
        value = self.taken(name, default)
        if name not in self.data:
            if default is _REQUIRED:
                self.wrong(name, "required", _("This is required."))
            return value, False
        if value is None and default is None:
            return None, False
        return value, True

    def integer(self, name: str, low: int, high: int, default: Any = _REQUIRED) -> Any:
        """A whole number from `low` to `high`, both included."""
        value, given = self._value(name, default)
        if given and (not isinstance(value, int) or isinstance(value, bool)):
            self.wrong(name, "type", _("This must be a whole number."))
        elif given and not low <= value <= high:
            text = _("This must lie between %(low)s and %(high)s; it is %(value)s.")
            self.wrong(name, "range", text % {"low": low, "high": high, "value": value})
        return value

    def number(
        self, name: str, low: float, high: float, default: Any = _REQUIRED, *, above: bool = False
    ) -> Any:
        """A finite number from `low` (`above`: excluded) to `high`."""
        value, given = self._value(name, default)
        if not given:
            return value
        if not isinstance(value, int | float) or isinstance(value, bool) or not math.isfinite(value):
            self.wrong(name, "type", _("This must be a number."))
            return None
        if value > high or value < low or (above and value == low):
            text = (
                _("This must be above %(low)s and at most %(high)s; it is %(value)s.")
                if above
                else _("This must lie between %(low)s and %(high)s; it is %(value)s.")
            )
            self.wrong(name, "range", text % {"low": low, "high": high, "value": value})
        return float(value)

    def choice(self, name: str, known: Sequence[str], default: Any = _REQUIRED) -> Any:
        """One of the known words."""
        value, given = self._value(name, default)
        if given and value not in known:
            text = _("“%(value)s” is not known here; choose one of %(known)s.")
            self.wrong(name, "unknown", text % {"value": str(value)[:80], "known": ", ".join(known)})
        return value

    def texts(self, name: str, *, longest: int, most: int) -> tuple[str, ...]:
        """A list of at most `most` non-empty texts of at most `longest` characters."""
        value = self.taken(name, ())
        if not isinstance(value, list | tuple):
            self.wrong(name, "type", _("This must be a list of texts."))
            return ()
        if len(value) > most:
            text = _("At most %(most)s entries; there are %(count)s.") % {"most": most, "count": len(value)}
            self.wrong(name, "too_many", text)
        for index, entry in enumerate(value):
            if not isinstance(entry, str) or not entry.strip() or len(entry) > longest:
                text = _("Each entry is a text of 1 to %(longest)s characters.") % {"longest": longest}
                self.wrong(f"{name}/{index}", "invalid", text)
        return tuple(value)

    def objects(self, name: str, read: Callable[["Reader"], T]) -> list[T]:
        """A list of objects, each read by `read`; nothing is returned for the wrong ones."""
        value = self.taken(name, ())
        if not isinstance(value, list | tuple):
            value = [value]
        found = []
        for index, entry in enumerate(value):
            before = len(self.errors)
            reader = Reader(entry, f"{self.pointer}/{name}/{index}", self.errors)
            if not isinstance(entry, dict):
                if name == "limits":
                    self.errors.pop()
                    reader.limit_in_words(entry)
                continue
            item = read(reader)
            reader.refuse_unknown()
            if len(self.errors) == before:
                found.append(item)
        return found

    def mapping(self, name: str) -> dict[str, Any]:
        """An object whose names and values somebody else judges."""
        value = self.taken(name, {})
        if not isinstance(value, dict):
            self.wrong(name, "type", _("This must be an object with named fields."))
            return {}
        return dict(value)

    def at_most(self, name: str, most: int) -> None:
        """The list `name` has at most so many entries."""
        value = self.data.get(name)
        if isinstance(value, list | tuple) and len(value) > most:
            text = _("At most %(most)s entries; there are %(count)s.") % {"most": most, "count": len(value)}
            self.wrong(name, "too_many", text)

    def refuse_unknown(self) -> None:
        """Every key that nobody asked for is an error."""
        for name in self.data:
            if name not in self._taken:
                self.wrong(str(name)[:80], "unknown", _("There is no such field in a scenario."))

    def limit_in_words(self, entry: Any) -> None:
        """“latency < 100 ms” is a wish: it names neither phase nor percentile."""
        text = _("“%(entry)s” is no limit: it names no percentile, phase, length and load.")
        self.wrong("", "limit_incomplete", text % {"entry": str(entry)[:80]})

    def limit_without_phase(self, metric: Any, known: Sequence[str]) -> None:
        text = _("A limit names the phase it holds for, not just “%(metric)s”: one of %(known)s.")
        self.wrong(
            "metric", "phase_required", text % {"metric": str(metric or "")[:80], "known": ", ".join(known)}
        )

    def limit_without_percentile(self, percentile: Any, known: Sequence[str]) -> None:
        if percentile in ("mean", "average", "avg"):
            text = _("A mean hides the tail and is not accepted as a limit (M32); choose one of %(known)s.")
        else:
            text = _("A limit needs a percentile: one of %(known)s.")
        self.wrong("percentile", "percentile_required", text % {"known": ", ".join(known)})

    def concurrency_never_reached(self, requests: int, concurrency: int) -> None:
        text = _("%(requests)s requests never reach a concurrency of %(concurrency)s.")
        self.wrong("requests", "never_reached", text % {"requests": requests, "concurrency": concurrency})

    def prefix_longer_than_input(self, input_tokens: int) -> None:
        text = _("The shared prefix is longer than the input of %(tokens)s tokens.")
        self.wrong("shared_prefix_tokens", "range", text % {"tokens": input_tokens})

    def total_time_alone(self) -> None:
        text = _(
            "A limit on the total time alone guides no phase (M32); add one on first token or generation."
        )
        self.wrong("limits", "total_alone", text)

    def summary(self) -> str:
        """One sentence over all errors."""
        return _("Some of the scenario's input is wrong.")
