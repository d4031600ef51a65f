"""Decode steps recorded once and replayed: a GPU then waits for no Python between its kernels.

A recorded step has a fixed shape, so there is one graph for each number of rows (1, 2, 4, 8, 16, 24, …) and
each width of the block table (powers of two). A step takes the smallest that holds it:

    rows      r0 r1 r2 │ pad pad …      what is padded reads and writes the pool's spare block
    table     b0 b1 │ s s               s: the spare block, behind a row's own blocks

All inputs of a replay lie in one buffer, which one copy from pinned memory fills. Steps with longer runs of
tokens (chunks of prompts, drafts) are not recorded; they run as they are.
"""

import contextlib
import gc
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy
import torch
from transformers import PreTrainedModel

from inference.engine import attention
from inference.engine.attention import AttentionBackend, Batch, PagedCache, Rule
from inference.engine.cuda_plan import Plan, fixed_plan
from inference.engine.device import Device
from inference.engine.kv import KVPool
from inference.engine.loading import logits_differ
from inference.engine.scheduler import Work

WARM_UPS = 2  # so that libraries have chosen their kernels and taken their workspaces before the recording
SMALLEST_WIDTH_TOKENS = 512
FINE_ROWS, COARSE_ROWS = 8, 32  # steps between numbers of rows, up to 64 and beyond
TOLERANCE = {torch.float32: 1e-3, torch.bfloat16: 3e-2, torch.float16: 3e-2}

Replay = Callable[[], None]


class Recorder(Protocol):
    """Makes a replayable recording of device work."""

    def record(self, compute: Callable[[], None]) -> Replay:
        """What `compute` does on fixed tensors, to be done again with what they hold then."""


class CudaRecorder:
    """torch's CUDA graphs, all in one memory pool: they are replayed one after another, never at once."""

    def __init__(self) -> None:
        self._memory: Any = None

    def record(self, compute: Callable[[], None]) -> Replay:
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(WARM_UPS):
                compute()
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        if self._memory is None:
            self._memory = torch.cuda.graph_pool_handle()
        before = torch.cuda.current_stream()
        try:
            # the other threads of the process may ask for memory figures meanwhile: only this one is watched
            with (
                _without_collection(),
                torch.cuda.graph(graph, pool=self._memory, capture_error_mode="thread_local"),
            ):
                compute()
        finally:
            torch.cuda.set_stream(before)  # a recording that fails leaves its own stream in place
        return graph.replay


@contextlib.contextmanager
def _without_collection() -> Iterator[None]:
    """No garbage collection inside: a tensor freed by it would spoil the recording."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


@dataclass(frozen=True)
class Shape:
    rows: int
    blocks: int  # of each row's table

    @property
    def numbers(self) -> int:
        return self.rows * (4 + self.blocks)


class Inputs:
    """The inputs of one shape inside the shared buffer: ids, positions, slots, lengths, then the table."""

    def __init__(self, buffer: Any, shape: Shape) -> None:
        rows = shape.rows
        self.ids, self.positions, self.slots, self.lengths = (
            buffer[number * rows : (number + 1) * rows] for number in range(4)
        )
        self.table = buffer[4 * rows : shape.numbers]


class _FixedDecode:
    """The attention backend inside a recording: the plan comes from the fixed inputs."""

    def __init__(self, backend: AttentionBackend, plan: Plan) -> None:
        self._backend, self._plan = backend, plan

    @property
    def buffers_bytes(self) -> int:
        return self._backend.buffers_bytes

    def prepare(self, batch: Batch) -> Plan:
        return self._plan

    def attend(
        self, batch: Batch, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, rule: Rule
    ) -> torch.Tensor:
        return self._backend.attend(batch, query, key, value, rule)


class DecodeGraphs:
    """The recorded decode steps of one model; `run` returns None for a step that none of them holds.

    A recording that fails, or computes something else than the step it was made from, ends recording: the
    engine goes on without, and `reason` says why.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        pool: KVPool,
        backend: AttentionBackend,
        device: Device,
        *,
        max_batch: int,
        max_tokens: int,
        recorder: Recorder | None = None,
    ) -> None:
        self.reason: str | None = None
        self.recorded_ms = 0.0
        self.replays = 0
        self._model, self._pool, self._backend, self._device = model, pool, backend, device
        self._recorder = recorder or CudaRecorder()
        self._rows = row_counts(max_batch)
        self._widths = table_widths(max_tokens, pool.block_tokens)
        numbers = Shape(self._rows[-1], self._widths[-1]).numbers
        pinned = device.torch_device.type == "cuda"
        self._staging = torch.zeros(numbers, dtype=torch.long, pin_memory=pinned)
        self._staged: Any = self._staging.numpy()
        self._buffer = torch.zeros(numbers, dtype=torch.long, device=device.torch_device)
        self._replays: dict[Shape, Replay] = {}
        self._logits: torch.Tensor | None = None  # [most rows, vocabulary], the output of all
        self._cache = PagedCache()

    @property
    def shapes(self) -> list[Shape]:
        return [Shape(rows, blocks) for blocks in self._widths for rows in reversed(self._rows)]

    @property
    def count(self) -> int:
        return len(self._replays)

    def facts(self) -> dict[str, Any]:
        """What belongs into the evidence."""
        return {"graphs": self.count, "graphs_off": self.reason}

    @torch.inference_mode()
    def record_all(self) -> None:
        """Record every shape now, the largest first, so that no step pays for it."""
        for shape in self.shapes:
            if self.reason is None:
                self._record(shape)

    @torch.inference_mode()
    def run(self, work: list[Work]) -> torch.Tensor | None:
        """Logits `[n, vocabulary]` of n sequences with one token each; valid until the next run."""
        shape = self._shape_for(work) if self.reason is None else None
        if shape is None:
            return None
        if shape not in self._replays:
            self._record(shape)
            if self.reason is not None:
                return None
        self._stage(work, shape)
        self._copy(shape)
        self._replays[shape]()
        self.replays += 1
        assert self._logits is not None
        return self._logits[: len(work)]

    # -- inputs ---------------------------------------------------------------------------------------

    def _shape_for(self, work: list[Work]) -> Shape | None:
        """The smallest shape that holds the step; None where one has more than one token, or none does."""
        blocks = 0
        for one in work:
            if one.count != 1 or one.keep != 1:
                return None
            blocks = max(blocks, self._blocks_of(one))
        rows = next((rows for rows in self._rows if rows >= len(work)), None)
        width = next((width for width in self._widths if width >= blocks), None)
        return None if rows is None or width is None else Shape(rows, width)

    def _blocks_of(self, work: Work) -> int:
        return -(-(work.sequence.num_computed + 1) // self._pool.block_tokens)

    def _stage(self, work: list[Work], shape: Shape) -> None:
        """Fill the pinned buffer; what is padded is one token in the spare block."""
        size, spare = self._pool.block_tokens, self._pool.blocks
        inputs = Inputs(self._staged, shape)
        count = len(work)
        table = inputs.table.reshape(shape.rows, shape.blocks)
        table.fill(spare)
        positions = [one.sequence.num_computed for one in work]
        slots = []
        for row, (one, at) in enumerate(zip(work, positions, strict=True)):
            blocks = one.sequence.blocks
            slots.append(blocks[at // size] * size + at % size)
            own = self._blocks_of(one)
            table[row, :own] = numpy.frombuffer(blocks, dtype=blocks.typecode, count=own)
        inputs.ids[:count] = [one.sequence.tokens[at] for one, at in zip(work, positions, strict=True)]
        inputs.positions[:count], inputs.slots[:count] = positions, slots
        inputs.lengths[:count] = inputs.positions[:count] + 1
        self._pad(inputs, count)

    def _pad(self, inputs: Inputs, count: int) -> None:
        size, spare = self._pool.block_tokens, self._pool.blocks
        rows = len(inputs.ids)
        inputs.ids[count:] = inputs.positions[count:] = 0
        inputs.lengths[count:] = 1
        inputs.slots[count:] = spare * size + numpy.arange(count, rows) % size

    def _copy(self, shape: Shape) -> None:
        """One copy of all inputs. The next step stages only after this one's ids are on the host."""
        numbers = shape.numbers
        self._buffer[:numbers].copy_(self._staging[:numbers], non_blocking=True)

    # -- recording ------------------------------------------------------------------------------------

    def _record(self, shape: Shape) -> None:
        begun_ns = time.monotonic_ns()
        inputs = Inputs(self._staged, shape)
        inputs.table.fill(self._pool.blocks)
        self._pad(inputs, 0)
        embedding: Any = self._model.get_input_embeddings()
        inputs.ids[:] = numpy.arange(shape.rows) % embedding.weight.shape[0]
        self._copy(shape)
        try:
            plain = self._forward(shape).clone()
            if self._logits is None:
                self._logits = plain.new_empty(self._rows[-1], plain.shape[1])
            replay = self._recorder.record(lambda: self._store(shape))
            self._logits.zero_()
            replay()
            difference = logits_differ(plain, self._logits[: shape.rows])
            if difference > TOLERANCE.get(plain.dtype, 1e-3):
                self.stop(f"a recorded step of {shape.rows} rows differs by {difference:.1%}")
            else:
                self._replays[shape] = replay
        except Exception as error:
            text = str(error).strip() or type(error).__name__
            self.stop(self._device.shortage(error) or text.splitlines()[0])
        self.recorded_ms += (time.monotonic_ns() - begun_ns) / 1e6

    def stop(self, reason: str) -> None:
        """No recorded steps from here on."""
        self.reason = reason
        self._replays.clear()
        self._device.release()

    def _store(self, shape: Shape) -> None:
        assert self._logits is not None
        self._logits[: shape.rows].copy_(self._forward(shape))

    def _forward(self, shape: Shape) -> torch.Tensor:
        inputs = Inputs(self._buffer, shape)
        plan = fixed_plan(
            inputs.lengths,
            inputs.table,
            self._pool.block_tokens,
            rows=shape.rows,
            blocks_per_row=shape.blocks,
        )
        batch = Batch(
            pool=self._pool,
            backend=_FixedDecode(self._backend, plan),
            slots=inputs.slots,
            spans=[],
            decode=True,
        )
        with attention.running(batch):
            return self._model(
                input_ids=inputs.ids.unsqueeze(0),
                position_ids=inputs.positions.unsqueeze(0),
                cache=self._cache,
                use_cache=False,
            ).logits[0]


def row_counts(max_batch: int) -> list[int]:
    """1, 2, 4, 8, 16, 24 … 64, 96 … and the largest batch itself."""
    counts = [1, 2, 4, *range(8, 65, FINE_ROWS), *range(64 + COARSE_ROWS, max_batch + 1, COARSE_ROWS)]
    return [count for count in counts if count < max_batch] + [max_batch]


def table_widths(max_tokens: int, block_tokens: int) -> list[int]:
    """Blocks of a row's table: powers of two from 512 tokens on, and the longest sequence itself."""
    most = -(-max_tokens // block_tokens)
    widths = []
    width = max(1, SMALLEST_WIDTH_TOKENS // block_tokens)
    while width < most:
        widths.append(width)
        width *= 2
    return [*widths, most]
