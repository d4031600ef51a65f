"""The text format of `/metrics`: families, their samples and their growth over a window.

The TYPE line decides what a family is, not its name (`iteration_tokens_total` is a histogram).
What the families of each server mean is told by `inference.targets.dialects`.
"""

import math
import re
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import TypeAlias

_SAMPLE = re.compile(r"^([a-zA-Z_:][a-zA-Z0-9_:]*)(\{.*\})?\s+(\S+)")
_LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\]|\\.)*)"')
_ESCAPES = {"\\n": "\n", '\\"': '"', "\\\\": "\\"}
_SUFFIXES = ("_bucket", "_sum", "_count", "_total", "_created")
Labels = tuple[tuple[str, str], ...]


@dataclass
class Family:
    """One metric family: `samples` are (name with suffix, labels, value) in the order told."""

    name: str
    type: str = "untyped"
    samples: list[tuple[str, Labels, float]] = field(default_factory=list)

    def values(self, suffix: str = "", **labels: str) -> list[float]:
        """The values of the samples `name + suffix` whose labels match."""
        wanted = set(labels.items())
        return [
            value for name, has, value in self.samples if name == self.name + suffix and wanted <= set(has)
        ]

    def total(self, suffix: str = "", **labels: str) -> float | None:
        """Their sum over all label sets; None where there is no such sample."""
        values = self.values(suffix, **labels)
        return sum(values) if values else None

    def by_label(self, label: str, suffix: str = "") -> dict[str, float]:
        """The samples `name + suffix` added up by the value of one label; those without it are left out."""
        found: dict[str, float] = {}
        for name, has, value in self.samples:
            key = dict(has).get(label) if name == self.name + suffix else None
            if key is not None:
                found[key] = found.get(key, 0.0) + value
        return found

    def buckets(self, **labels: str) -> dict[float, float]:
        """Upper bound → cumulative count, over all matching label sets; infinity included."""
        wanted, found = set(labels.items()), dict[float, float]()
        for name, has, value in self.samples:
            if name != self.name + "_bucket" or not wanted <= set(has):
                continue
            bound = _number(dict(has).get("le", ""))
            if bound is not None:
                found[bound] = found.get(bound, 0.0) + value
        return found

    @property
    def counts_up(self) -> str:
        """The suffix of its growing value: of a counter as told, of a histogram or summary its count."""
        if self.type in ("histogram", "summary"):
            return "_count"
        return "" if self.values() else "_total"


Families: TypeAlias = dict[str, Family]


def parse(text: str, only: Collection[str] | None = None) -> Families:
    """Families by name; lines that are no samples and values that are not finite are passed over.

    With `only`, families of other names, and buckets of all, are left out: a page of a megabyte is then
    read in a few milliseconds.
    """
    families: Families = {}
    for line in text.splitlines() if only is None else _lines_of(text, only):
        if line.startswith("# TYPE "):
            parts = line.split()
            if len(parts) >= 4:
                families.setdefault(parts[2], Family(parts[2])).type = parts[3]
            continue
        match = _SAMPLE.match(line)
        if line.startswith("#") or match is None:
            continue
        name, labels, raw = match.groups()
        value = _number(raw)
        if value is None or not math.isfinite(value):
            continue
        family = families.get(name) or families.get(_family_name(name, families)) or Family(name)
        families.setdefault(family.name, family).samples.append((name, _labels(labels), value))
    return {name: family for name, family in families.items() if family.samples}


def family_names(text: str) -> frozenset[str]:
    """The names of the families that have samples."""
    return frozenset(parse(text))


def _lines_of(text: str, only: Collection[str]) -> list[str]:
    """The TYPE and sample lines of some families, without buckets, found by one pass over the text."""
    names = "|".join(re.escape(name) for name in sorted(only, key=len, reverse=True))
    pattern = rf"^(?:# TYPE )?(?:{names})(?:_total|_sum|_count)?(?:\{{| ).*$"
    return [match.group() for match in re.finditer(pattern, text, re.MULTILINE)]


def _family_name(name: str, families: Families) -> str:
    """The declared family that a sample with a suffix belongs to."""
    for suffix in _SUFFIXES:
        if name.endswith(suffix) and name.removesuffix(suffix) in families:
            return name.removesuffix(suffix)
    return name


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _labels(text: str | None) -> Labels:
    found = _LABEL.findall(text or "")
    return tuple((key, re.sub(r'\\[n"\\]', lambda m: _ESCAPES[m.group()], value)) for key, value in found)
