"""Runs a step in C: packs what it is about into arrays and hands over pointers."""

from array import array
from ctypes import byref
from typing import Any

import torch

from inference.engine.kv import KVPool
from inference.engine.native import library
from inference.engine.native.recipe import describe, point_at_tables
from inference.engine.scheduler import Step


class NativeRunner:
    """A described model on the paged cache; one step at a time, from one thread.

    The logits of a step lie in memory that the next step uses again.
    """

    def __init__(self, model: Any, pool: KVPool, *, weights: str, threads: int) -> None:
        """Raises `NotDescribed` or `NoLibrary`, with the reason, where the C step cannot be used."""
        self._library = library.open_library()
        self._library.pg_threads(threads)
        self.pool = pool
        self._model = model
        self._described = describe(model, pool, weights)
        self._logits = torch.empty(0, self._described.model.vocabulary)

    @property
    def buffers_bytes(self) -> int:
        return int(self._library.pg_buffer_bytes()) + self._logits.nbytes

    @property
    def weights_bytes(self) -> int:
        return self._described.size_bytes

    def release_plain_weights(self) -> None:
        """Give up the weights as transformers keeps them: from now on only the packed ones are used."""
        for parameter in self._model.parameters():
            parameter.data = torch.empty(0, dtype=parameter.dtype)

    def run(self, step: Step) -> torch.Tensor:
        """Compute a step; logits `[Σ keep, vocabulary]` of the wanted positions, in the order of the work."""
        size = self.pool.block_tokens
        ids, positions, slots = array("i"), array("i"), array("q")
        start, stop, context, first_block = array("i"), array("i"), array("i"), array("i")
        blocks, rows = array("i"), array("i")
        for work in step.work:
            sequence = work.sequence
            first = sequence.num_computed
            last = first + work.count
            held = sequence.blocks
            start.append(len(ids))
            if work.count == 1:
                ids.append(sequence.tokens[first])
                positions.append(first)
                slots.append(held[first // size] * size + first % size)
            else:
                ids.extend(sequence.tokens[first : first + work.tokens])
                ids.extend(work.drafts)
                positions.extend(range(first, last))
                slots.extend([held[at // size] * size + at % size for at in range(first, last)])
            stop.append(len(ids))
            context.append(last)
            first_block.append(len(blocks))
            blocks.extend(held)
            rows.extend(range(len(ids) - work.keep, len(ids)))
        if max(context) > self._described.tables.positions:
            self._described.tables.grow(max(context))
            point_at_tables(self._described, self._model)
        if len(rows) > len(self._logits):
            self._logits = torch.empty(len(rows), self._described.model.vocabulary)
        described = library.Step(
            len(ids),
            len(start),
            len(rows),
            0,
            *[
                one.buffer_info()[0]
                for one in (ids, positions, slots, start, stop, context, first_block, blocks, rows)
            ],
            self._logits.data_ptr(),
        )
        self._library.pg_step(byref(self._described.model), byref(described))
        return self._logits[: len(rows)]
