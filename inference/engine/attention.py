"""The seam to transformers: an attention function over the paged cache, and the batch it works on.

transformers' models call `phasegate_paged` in place of their own attention, once per layer, with the
packed tokens of a whole step. Which tokens belong to which sequence stands in the current `Batch`, not in
keyword arguments, since some models drop those. Nothing else of a model is touched.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from transformers import AttentionInterface
from transformers.cache_utils import Cache

from inference.engine.kv import KVPool

NAME = "phasegate_paged"


@dataclass(frozen=True, kw_only=True)
class Span:
    """A run of one sequence's tokens in a packed step.

    packed tokens:  … [start ─────── stop) …      their keys and values are stored in this step
    context:        0 ── before ── | ─ these ─ |  = `context` tokens, in the blocks `blocks`
    """

    start: int
    stop: int
    context: int
    blocks: torch.Tensor

    @property
    def before(self) -> int:
        return self.context - (self.stop - self.start)


@dataclass(kw_only=True)
class Batch:
    """One step: packed tokens `[T]`, their cache slots `[T]`, and the spans of its sequences."""

    pool: KVPool
    backend: "AttentionBackend"
    slots: torch.Tensor
    spans: list[Span]
    decode: bool  # every span is one token
    plan: Any = None  # what the backend prepared for all layers of this step
    layer: int = 0  # the layer whose keys and values were stored last


@dataclass(frozen=True, kw_only=True)
class Rule:
    """How scores become weights in one layer."""

    scaling: float
    window: int | None  # a key is seen by the `window` positions from its own on
    softcap: float | None
    sinks: torch.Tensor | None  # one extra score per head that takes weight and gives nothing


class AttentionBackend(Protocol):
    """Attention over the paged cache on one kind of device."""

    @property
    def buffers_bytes(self) -> int:
        """Memory kept for intermediate results."""

    def prepare(self, batch: Batch) -> Any:
        """What all layers of the step share; stored in `batch.plan`."""

    def attend(
        self, batch: Batch, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, rule: Rule
    ) -> torch.Tensor:
        """`[Hq, T, D]` queries over the cache → `[T, Hq, Dv]`; key and value are this step's own."""


_current: Batch | None = None


@contextmanager
def running(batch: Batch) -> Iterator[None]:
    """Make a batch the current one; a second one inside it is an error, never a silent overwrite."""
    global _current  # noqa: PLW0603  models call the attention function without any way to pass this
    if _current is not None:
        raise RuntimeError("a batch is already running; steps do not nest")
    batch.plan = batch.backend.prepare(batch)
    _current = batch
    try:
        yield
    finally:
        _current = None


def _batch() -> Batch:
    if _current is None:
        raise RuntimeError("paged attention was called outside a step")
    return _current


class PagedCache(Cache):
    """What the model takes for its cache: it stores into the pool and gives back the step's own tokens."""

    is_compileable = False

    def __init__(self) -> None:
        super().__init__(layers=[])

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, layer_idx: int, *_: Any, **__: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        batch = _batch()
        batch.layer = layer_idx
        batch.pool.store(layer_idx, batch.slots, key_states[0], value_states[0])
        return key_states, value_states

    def get_seq_length(self, layer_idx: int = 0) -> int:
        return 0  # positions are always given; nothing may be derived from the cache


class ShapeRecorder(Cache):
    """Notes the key and value shapes of each layer in a first forward pass: (heads, key dim, value dim)."""

    is_compileable = False

    def __init__(self) -> None:
        super().__init__(layers=[])
        self.shapes: dict[int, tuple[int, int, int]] = {}

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, layer_idx: int, *_: Any, **__: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        self.shapes[layer_idx] = (key_states.shape[1], key_states.shape[3], value_states.shape[3])
        return key_states, value_states

    def get_seq_length(self, layer_idx: int = 0) -> int:
        return 0

    def get_mask_sizes(self, query_length: int, layer_idx: int) -> tuple[int, int]:
        return query_length, 0


def paged_attention(  # noqa: PLR0917  the order is transformers'
    module: torch.nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    scaling: float | None = None,
    sliding_window: int | None = None,
    softcap: float | None = None,
    s_aux: torch.Tensor | None = None,
    **_: Any,
) -> tuple[torch.Tensor, None]:
    """The function registered with transformers: `[1, Hq, T, D]` → `[1, T, Hq, Dv]`.

    Positions decide what is seen: the mask is always None, since no mask function is registered.
    """
    batch = _batch()
    rule = Rule(
        scaling=query.shape[-1] ** -0.5 if scaling is None else float(scaling),
        window=sliding_window,
        softcap=softcap,
        sinks=s_aux if s_aux is not None else getattr(module, "sinks", None),
    )
    return batch.backend.attend(batch, query[0], key[0], value[0], rule).unsqueeze(0), None


AttentionInterface.register(NAME, paged_attention)
