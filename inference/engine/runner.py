"""Runs the model on one step: packs the tokens, tells attention where they live, returns logits."""

import inspect
from typing import Protocol

import torch
from transformers import PreTrainedModel

from inference.engine import attention
from inference.engine.attention import AttentionBackend, Batch, PagedCache, ShapeRecorder, Span
from inference.engine.device import CpuDevice, Device
from inference.engine.kv import KVPool
from inference.engine.scheduler import Step


class Runner(Protocol):
    """Computes steps of one model on its pool; one at a time, from one thread."""

    pool: KVPool

    @property
    def buffers_bytes(self) -> int:
        """Memory kept for intermediate results."""

    def release_plain_weights(self) -> None:
        """Give up what was only kept to be compared with, once nothing else will be."""

    def run(self, step: Step) -> torch.Tensor:
        """Logits `[Σ keep, vocabulary]` of the wanted positions, in the order of the work.

        They may lie in memory that the next step uses again.
        """


class ModelRunner:
    """A transformers model on the paged cache; one step at a time, from one thread."""

    def __init__(
        self,
        model: PreTrainedModel,
        pool: KVPool,
        backend: AttentionBackend,
        device: Device | None = None,
    ) -> None:
        self.model = model
        self.pool = pool
        self.backend = backend
        self.device = device or CpuDevice()
        self._cache = PagedCache()
        self._keeps_logits = "logits_to_keep" in inspect.signature(model.forward).parameters

    @property
    def buffers_bytes(self) -> int:
        return self.backend.buffers_bytes

    def release_plain_weights(self) -> None:
        """Nothing: this runner computes with them."""

    @torch.inference_mode()
    def shapes(self) -> dict[int, tuple[int, int, int]]:
        """Key and value shapes by layer, as one token's forward pass shows them."""
        recorder = ShapeRecorder()
        ids = torch.zeros(1, 1, dtype=torch.long, device=self.device.torch_device)
        self.model.set_attn_implementation("eager")
        self.model(input_ids=ids, position_ids=ids, cache=recorder, use_cache=False)
        return recorder.shapes

    @torch.inference_mode()
    def run(self, step: Step) -> torch.Tensor:
        """Compute a step; logits `[Σ keep, vocabulary]` of the wanted positions, in the order of the work."""
        size = self.pool.block_tokens
        ids: list[int] = []
        positions: list[int] = []
        slots: list[int] = []
        spans: list[Span] = []
        keep: list[int] = []
        for work in step.work:
            sequence, start = work.sequence, len(ids)
            first, last = sequence.num_computed, sequence.num_computed + work.count
            ids += sequence.tokens[first : first + work.tokens]
            ids += work.drafts
            positions += range(first, last)
            slots += [sequence.blocks[at // size] * size + at % size for at in range(first, last)]
            blocks = torch.tensor(sequence.blocks[: -(-last // size)].tolist())
            spans.append(Span(start=start, stop=len(ids), context=last, blocks=blocks))
            keep += range(len(ids) - work.keep, len(ids))
        wanted = keep or [len(ids) - 1]
        ids_at, positions_at, slots_at, wanted_at = self.device.tensors(ids, positions, slots, wanted)
        batch = Batch(
            pool=self.pool,
            backend=self.backend,
            slots=slots_at,
            spans=spans,
            decode=step.kind == "decode" and len(ids) == len(spans),
        )
        logits = self._forward(batch, ids_at, positions_at, wanted_at)
        return logits if keep else logits[:0]

    def _forward(
        self, batch: Batch, ids: torch.Tensor, positions: torch.Tensor, wanted: torch.Tensor
    ) -> torch.Tensor:
        arguments = {"logits_to_keep": wanted} if self._keeps_logits else {}
        with attention.running(batch):
            logits = self.model(
                input_ids=ids.unsqueeze(0),
                position_ids=positions.unsqueeze(0),
                cache=self._cache,
                use_cache=False,
                **arguments,
            ).logits[0]
        return logits if self._keeps_logits else logits[wanted]
