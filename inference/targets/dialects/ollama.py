"""Ollama: it has no `/metrics`; durations in ns come with its native answer (`/api/chat`)."""

from collections.abc import Mapping
from typing import Any

from inference.targets.dialects.base import Dialect, Evidence, Phases, Signs, number

_NS_PER_MS = 1_000_000


def _signs(evidence: Evidence) -> Signs:
    facts = []
    version = evidence.json("/api/version").get("version")
    if isinstance(version, str):
        facts.append(f"/api/version says {version}")
    if "library" in evidence.owners and facts:
        facts.append("the model list says owned_by library")
    return Signs(tuple(facts), version if isinstance(version, str) else "", sure=bool(facts))


def _phases(server: Mapping[str, Any]) -> Phases | None:
    """Of the last object of a native answer: loading the model and evaluating the prompt."""
    told = server.get("ollama")
    if not isinstance(told, dict):
        return None
    prefill_ns, load_ns = number(told.get("prompt_eval_duration")), number(told.get("load_duration"))
    return Phases(
        prefill_ms=None if prefill_ns is None else prefill_ns / _NS_PER_MS,
        load_ms=None if load_ns is None else load_ns / _NS_PER_MS,
    )


OLLAMA = Dialect(
    name="ollama",
    title="Ollama",
    probes=("/api/version",),
    signs=_signs,
    phases=_phases,
    per_request=("load_duration, prompt_eval_duration, eval_duration (native endpoint)",),
)
