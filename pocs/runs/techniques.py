"""The techniques of an inference service (T1–T6): what each is for, what it costs, which switch it is.

What a technique gained on this engine is measured, not claimed: see `pocs.runs.effects`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext_lazy as _

#: the business's pressures (T7–T9) that techniques answer
GOALS = {
    "T7": _("cost pressure"),
    "T8": _("latency pressure"),
    "T9": _("long context"),
}


@dataclass(frozen=True)
class Change:
    """One value of one switch, as a candidate may carry it; `location` stands for another model."""

    setting: str
    value: Any

    @property
    def text(self) -> str:
        """As it is named in the candidate's name: `dtype int8`, `prefix_cache off`."""
        value = {True: "on", False: "off"}[self.value] if isinstance(self.value, bool) else self.value
        return f"{self.setting} {value}"


@dataclass(frozen=True)
class Technique:
    """`settings`: the engine's switches that belong to it; `changes`: those a candidate is offered with."""

    code: str
    name: Any
    good_for: Any
    goals: Mapping[str, Any]  # T7–T9 -> how it serves that goal
    risk: Any
    watch: tuple[tuple[str, Any], ...]  # what shows the harm: code of the metric and how it shows
    settings: tuple[str, ...]
    changes: tuple[Change, ...]


TECHNIQUES = (
    Technique(
        code="T1",
        name=_("Quantisation"),
        good_for=_(
            "Keeps the weights in 8 or 4 bits: they take less memory, and answers to few requests at "
            "once come faster, since a decode step mostly reads weights."
        ),
        goals={
            "T7": _("a smaller model in memory fits a smaller machine, or leaves room for more KV cache"),
            "T8": _("fewer bytes to read for each token"),
        },
        risk=_(
            "Answers change. With large batches and long prompts arithmetic decides, and the gain "
            "shrinks or turns into a loss; going back takes another load of the model."
        ),
        watch=(
            ("M20", _("answers that are no longer the same: compare them on the business's own prompts")),
            ("M17", _("memory of the weights")),
            ("M2", _("time per output token")),
        ),
        settings=("dtype",),
        changes=(Change("dtype", "int8"), Change("dtype", "int4"), Change("dtype", "float32")),
    ),
    Technique(
        code="T2",
        name=_("Speculative decoding"),
        good_for=_(
            "Guesses several tokens and checks them in one step; each right guess saves a step. ngram "
            "helps where answers quote their prompt (extraction, rewriting, code), a draft model with "
            "any text."
        ),
        goals={"T8": _("shorter answers in time for single streams and small batches")},
        risk=_(
            "Wrong guesses cost computing, which requests beside it miss; a draft model takes memory and "
            "load time. The tokens are still chosen by the large model."
        ),
        watch=(
            ("M10", _("the tail, once many requests are decoded at once")),
            ("M2", _("time per output token, with the texts of the business")),
            ("M17", _("memory of the draft model")),
        ),
        settings=("speculate", "speculate_tokens", "speculate_max_batch"),
        changes=(Change("speculate", "ngram"),),
    ),
    Technique(
        code="T3",
        name=_("Paged attention"),
        good_for=_(
            "The KV cache lies in blocks that a sequence takes as it grows, so no memory is reserved for "
            "answers that never come, and prompts that begin alike share blocks. Always on; its switches "
            "are the block's size and the number of blocks."
        ),
        goals={
            "T9": _("long contexts take what they need, and only that"),
            "T7": _("more requests in the same memory"),
        },
        risk=_(
            "Large blocks stay half empty (fragmentation), small ones cost bookkeeping and share more; a "
            "pool that is too small pushes requests out of the batch, which then compute again."
        ),
        watch=(
            ("M19", _("slots in held blocks without a computed token")),
            ("M16", _("preemptions and lack of memory")),
            ("M18", _("time until blocks are free again")),
        ),
        settings=("block_tokens", "kv_blocks"),
        changes=(Change("block_tokens", 16), Change("block_tokens", 128)),
    ),
    Technique(
        code="T4",
        name=_("Batching"),
        good_for=_(
            "Computes many requests in one step: the weights are read once for all of them, so "
            "throughput rises and requests wait less for their turn. The prefill chunk says how long one "
            "prompt may hold up the others."
        ),
        goals={
            "T7": _("more tokens from the same machine"),
            "T8": _("less queueing; smaller chunks keep running answers moving"),
        },
        risk=_(
            "Each token takes longer with more neighbours, so the tail grows (Q7); who waits for whom "
            "becomes harder to foresee; smaller chunks make long prompts slower."
        ),
        watch=(
            ("M10", _("p95 and p99 of the time per output token, not their mean")),
            ("M7", _("queue wait")),
            ("M11", _("stalls while others are prefilled")),
        ),
        settings=("max_batch", "prefill_chunk_tokens", "max_waiting"),
        changes=(
            Change("max_batch", 8),
            Change("max_batch", 16),
            Change("prefill_chunk_tokens", 64),
            Change("prefill_chunk_tokens", 1024),
        ),
    ),
    Technique(
        code="T5",
        name=_("Cache reuse"),
        good_for=_(
            "Prompts that begin alike (a system prompt, a shared document, the turns of a conversation) "
            "are not computed again. On unless it is switched off."
        ),
        goals={
            "T8": _("the first token comes sooner where prompts share their beginning"),
            "T9": _("a long shared context is computed once"),
            "T7": _("less computing for the same answers"),
        },
        risk=_(
            "Warm figures hide what a cold request takes: read the first token together with the hit "
            "rate. What is kept for reuse takes blocks until somebody else needs them."
        ),
        watch=(
            ("M8", _("hit rate: without hits there is no gain")),
            ("M1", _("time to first token of cold and warm prompts apart")),
            ("M18", _("release of the blocks")),
        ),
        settings=("prefix_cache",),
        changes=(Change("prefix_cache", False), Change("prefix_cache", True)),
    ),
    Technique(
        code="T6",
        name=_("Model routing"),
        good_for=_(
            "Sends each request to the smallest model that answers it well enough. It is no switch "
            "inside the engine: each model is a target of its own, live requests name their target, and "
            "a route is judged by runs of the same scenario against each."
        ),
        goals={
            "T7": _("simple requests on a small model"),
            "T8": _("short answers do not queue behind long ones"),
        },
        risk=_(
            "Two models share the memory, or are switched with an outage (S6); quality differs by route, "
            "and a wrong route is hard to see and to roll back."
        ),
        watch=(
            ("M20", _("answers of the smaller model on the business's own prompts")),
            ("M22", _("model load time at a switch")),
            ("M21", _("whether the switch can be rolled back")),
        ),
        settings=("location",),
        changes=(),
    ),
)
#: the benchmark's workloads by their names there (`benchmarks/workloads.py`, `benchmarks/switches.py`)
WORKS = {
    "single": _("one stream"),
    "decode": _("short prompts, many at once"),
    "prefill": _("long prompts"),
    "prefix": _("prompts with a shared beginning"),
    "mixed": _("mixed lengths, many at once"),
    "quoting": _("an answer that quotes its prompt"),
    "writing": _("an answer that is new"),
}
#: settings of the engine that say where and how it computes; none of T1–T6
COMPUTING = ("device", "kernels", "threads", "cuda_graphs", "step_limit_s")


def technique_of(setting: str) -> Technique | None:
    """The technique that a setting belongs to; None for what only says where it is computed."""
    return next((technique for technique in TECHNIQUES if setting in technique.settings), None)
