"""What a run says of the engine below its requests: load, memory, fragmentation, release, preemption.

A figure that the target did not tell is None and is shown as not observed, never as 0.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

#: the stages of a load, as `load_ms` names them
STAGES = {
    "start": gettext_lazy("start of the process"),
    "draft": gettext_lazy("draft model"),
    "digest": gettext_lazy("digest of the files"),
    "convert": gettext_lazy("conversion"),
    "read": gettext_lazy("reading the weights"),
    "allocate": gettext_lazy("allocation of the cache"),
    "probe": gettext_lazy("check against the model's own attention"),
    "graphs": gettext_lazy("recording of graphs"),
    "first_step": gettext_lazy("first step"),
}


@dataclass(frozen=True)
class Value:
    """One number; `kind` says how the filter `figure_as` writes it, `name` tells several apart."""

    name: str
    value: float | None
    kind: str
    unit: str


@dataclass(frozen=True)
class Fact:
    """One figure of the engine with its metric's code, what it rests on (`n`), and what it means."""

    code: str
    label: str
    values: tuple[Value, ...]
    note: str = ""
    n: int | None = None

    @property
    def observed(self) -> bool:
        return any(value.value is not None for value in self.values)


def engine_facts(summary: Mapping[str, Any]) -> list[Fact]:
    """The figures in the order of the checklist: M16–M19, M22, and what speculation did."""
    memory = summary.get("memory") or {}
    engine = summary.get("engine") or {}
    samples = memory.get("samples")
    return [
        *_load(summary),
        *_memory(memory, samples),
        Fact(
            "M19",
            _("Cache fragmentation"),
            (
                Value(_("mean"), engine.get("kv_fragmentation_mean"), "percent", "%"),
                Value(_("peak"), engine.get("kv_fragmentation_peak"), "percent", "%"),
            ),
            _("slots in held blocks without a computed token"),
            samples,
        ),
        _release(summary),
        Fact(
            "M16",
            _("Preemptions"),
            (Value("", engine.get("preemptions"), "count", ""),),
            _("requests put out of the batch for want of blocks"),
        ),
        Fact(
            "M16",
            _("Out of memory"),
            (Value("", engine.get("oom"), "count", ""),),
            _("steps that ended for want of memory"),
        ),
        *_speculation(engine),
    ]


def _load(summary: Mapping[str, Any]) -> list[Fact]:
    """M22: the load that the engine came from, whole and by stage."""
    load = (summary.get("target") or {}).get("load_ms") or {}
    stages = tuple(
        Value(str(label), load[name], "ms", "ms") for name, label in STAGES.items() if name in load
    )
    note = _("before the run; no part of any request's time")
    whole = Fact("M22", _("Model load"), (Value("", load.get("total"), "ms", "ms"),), note)
    return [whole, Fact("M22", _("Stages of the load"), stages)] if stages else [whole]


def _memory(memory: Mapping[str, Any], samples: int | None) -> list[Fact]:
    """M17: what the memory is made of; the draft model only where there is one."""
    parts = [
        (_("Weights"), "weights_bytes", ""),
        (_("Draft model"), "draft_bytes", _("weights and cache of the model that guesses")),
        (_("Runtime buffers"), "buffers_peak_bytes", _("peak")),
        (_("KV pool"), "kv_pool_bytes", _("reserved; pages become resident as they are used")),
    ]
    found = [
        Fact("M17", label, (Value("", memory.get(key), "mib", "MiB"),), note, samples)
        for label, key, note in parts
        if key != "draft_bytes" or memory.get(key) is not None
    ]
    in_use = (
        Value("", memory.get("kv_used_peak_bytes"), "mib", "MiB"),
        Value(_("of the pool"), memory.get("kv_usage_peak"), "percent", "%"),
    )
    return [*found, Fact("M17", _("KV in use"), in_use, _("peak, in blocks that requests hold"), samples)]


def _release(summary: Mapping[str, Any]) -> Fact:
    """M18: from the end of a request to all its blocks being free."""
    found = summary.get("release_ms") or {}
    observed = bool(found.get("n"))
    return Fact(
        "M18",
        _("Release of the cache blocks"),
        tuple(Value(p, found.get(p) if observed else None, "ms", "ms") for p in ("p50", "p95", "max")),
        _("from the end of a request to all its blocks free"),
        found.get("n") if observed else None,
    )


def _speculation(engine: Mapping[str, Any]) -> list[Fact]:
    """Guessed tokens and how many were right, where anything was guessed."""
    drafted, accepted = engine.get("drafted_tokens"), engine.get("accepted_tokens")
    if not drafted:
        return []
    share = None if accepted is None else accepted / drafted
    return [
        Fact(
            "T2",
            _("Guessed tokens that were right"),
            (Value("", share, "percent", "%"),),
            _("speculative decoding"),
            int(drafted),
        )
    ]
