"""What a dialect is: how a server is recognised, which families mean what, and what it cannot tell.

A dialect is data. Our keys are those of `inference.telemetry.keys` for gauges and counters, and
`<phase>_ms` for durations; of several names the current one stands first, and the old ones are accepted.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from inference.telemetry.prometheus import Families

#: how label sets of one figure become one number: shares of several engines are never added
Combine = Literal["sum", "max"]
MS = 1000.0  # servers count in seconds


@dataclass(frozen=True)
class Metric:
    """The names a figure is told under, current one first, and how samples become one value."""

    names: tuple[str, ...]
    scale: float = 1.0
    combine: Combine = "sum"
    labels: tuple[tuple[str, str], ...] = ()


def gauge(*names: str, combine: Combine = "sum", scale: float = 1.0) -> Metric:
    return Metric(names, scale, combine)


def counter(*names: str) -> Metric:
    """A counter by its family's name; servers declare it with or without `_total`."""
    return Metric(names)


def seconds(*names: str, **labels: str) -> Metric:
    """A duration told in seconds, kept in ms; a histogram, a summary, or a counter of seconds alone."""
    return Metric(names, MS, labels=tuple(labels.items()))


@dataclass(frozen=True)
class Answer:
    """What one probe of the server gave; status 0 where there was no answer."""

    status: int
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True)
class Evidence:
    """Everything detection looks at: the model list, the probes by path, and the names of metric families."""

    models: Answer
    probes: Mapping[str, Answer]
    families: frozenset[str] = frozenset()

    def json(self, path: str) -> Mapping[str, Any]:
        """The JSON object at a path that was asked; empty where there is none."""
        from_path = self.probes.get(path)
        return {} if from_path is None or from_path.status != 200 else _object(from_path.body)

    @property
    def owners(self) -> set[str]:
        """`owned_by` of the listed models."""
        rows = _object(self.models.body).get("data")
        found = (
            [row.get("owned_by") for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []
        )
        return {owner for owner in found if isinstance(owner, str)}

    @property
    def server_header(self) -> str:
        return self.models.headers.get("server", "")

    def with_prefix(self, *prefixes: str) -> str:
        """One family whose name starts so; empty where there is none."""
        return next((name for name in sorted(self.families) if name.startswith(prefixes)), "")


@dataclass(frozen=True)
class Signs:
    """What speaks for a dialect, as facts a reader can check, and the version the server named."""

    facts: tuple[str, ...] = ()
    version: str = ""
    sure: bool = False  # only this server does so; otherwise the more facts win


@dataclass(frozen=True)
class Phases:
    """What a server tells of one request, in ms; None where it does not."""

    queue_ms: float | None = None
    prefill_ms: float | None = None
    load_ms: float | None = None


def _no_constants(families: Families) -> dict[str, Any]:
    return {}


def _no_phases(server: Mapping[str, Any]) -> Phases | None:
    return None


@dataclass(frozen=True, kw_only=True)
class Dialect:
    """One kind of server."""

    name: str
    title: str
    #: asked at the server's root, without authentication trouble being held against it
    probes: tuple[str, ...] = ()
    prefixes: tuple[str, ...] = ()  # of its metric families
    signs: Callable[[Evidence], Signs]
    gauges: Mapping[str, Metric] = field(default_factory=dict)
    counters: Mapping[str, Metric] = field(default_factory=dict)
    durations: Mapping[str, Metric] = field(default_factory=dict)
    #: labels of a counter that say how requests ended
    outcome_label: str = ""
    #: keys that move with every step of the engine: while they stand still, gauges prove nothing
    progress: tuple[str, ...] = ()
    #: keys whose counts are requests, and would be equal if all requests were treated alike
    populations: tuple[str, ...] = ()
    #: the prompt counter leaves cached tokens out, so that prompts asked = computed + cached
    queries_exclude_hits: bool = False
    #: figures that stand still, read from labels: bytes of the KV pool, tokens in a block
    constants: Callable[[Families], dict[str, Any]] = _no_constants
    #: queue and prefill of one request from what came with its answer; None where nothing did
    phases: Callable[[Mapping[str, Any]], Phases | None] = _no_phases
    per_request: tuple[str, ...] = ()  # what comes with an answer, for documents and the check
    #: the server can be asked for a running count of tokens on every chunk
    running_usage: bool = False


def number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def label_number(text: str | None) -> float | None:
    """A number told as a label's text; None for `None`, empty and the like."""
    try:
        return float(text) if text else None
    except ValueError:
        return None


def _object(body: bytes) -> Mapping[str, Any]:
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
