"""Recorded decode steps without a GPU: what is staged, padded and replayed, against steps as they are."""

import random
from array import array
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from inference.engine.cuda import CudaAttention
from inference.engine.cuda_graphs import DecodeGraphs, Shape, row_counts, table_widths
from inference.engine.kv import KVPool
from inference.engine.loading import LoadedModel, use_paged_attention
from inference.engine.runner import ModelRunner
from inference.engine.scheduler import Step, Work
from tests.inference.engine.conftest import PLAIN
from tests.inference.engine.fake_cuda import FakeCuda, FakeRecorder, fake_device, plain_varlen

SIZE, BLOCKS, MAX_TOKENS = 4, 300, 600


@pytest.mark.parametrize(
    ("max_batch", "counts"),
    [
        (1, [1]),
        (3, [1, 2, 3]),
        (8, [1, 2, 4, 8]),
        (20, [1, 2, 4, 8, 16, 20]),
        (32, [1, 2, 4, 8, 16, 24, 32]),
        (130, [1, 2, 4, 8, 16, 24, 32, 40, 48, 56, 64, 96, 128, 130]),
    ],
)
def test_rows_are_recorded_in_steps_up_to_the_largest_batch(max_batch: int, counts: list[int]) -> None:
    assert row_counts(max_batch) == counts


@pytest.mark.parametrize(
    ("max_tokens", "block_tokens", "widths"),
    [
        (100, 32, [4]),
        (512, 32, [16]),
        (8192, 32, [16, 32, 64, 128, 256]),
        (5000, 32, [16, 32, 64, 128, 157]),
        (3000, 1024, [1, 2, 3]),
    ],
)
def test_tables_are_powers_of_two_up_to_the_longest(
    max_tokens: int, block_tokens: int, widths: list[int]
) -> None:
    assert table_widths(max_tokens, block_tokens) == widths


class Rig:
    """A tiny model on a pool with sequences in it, stepped with and without recordings."""

    def __init__(self, loaded: LoadedModel, recorder: Any = None, **kernel: Any) -> None:
        self.device = fake_device()
        self.pool = KVPool(SIZE)
        self.runner = ModelRunner(loaded.model, self.pool, CudaAttention(self.device, **kernel), self.device)
        self.pool.allocate(BLOCKS, self.runner.shapes(), torch.float32, spare=True)
        use_paged_attention(loaded.model, None)
        self.recorder = recorder or FakeRecorder()
        self.graphs = DecodeGraphs(
            loaded.model,
            self.pool,
            self.runner.backend,
            self.device,
            max_batch=8,
            max_tokens=MAX_TOKENS,
            recorder=self.recorder,
        )
        self._free = list(range(BLOCKS))
        random.Random(2).shuffle(self._free)

    def sequence(self, length: int, seed: int) -> Any:
        """A sequence whose first tokens are computed and whose last one is not."""
        rng = random.Random(seed)
        blocks = array("i", [self._free.pop() for _ in range(-(-(length + 8) // SIZE))])
        tokens = [rng.choice(PLAIN) for _ in range(length)]
        one = SimpleNamespace(tokens=tokens, blocks=blocks, num_computed=0, num_tokens=length)
        if length > 1:
            self.runner.run(Step("prefill", [Work(one, length - 1)]))
            one.num_computed = length - 1
        return one

    def plain(self, work: list[Work]) -> torch.Tensor:
        return self.runner.run(Step("decode", work))


@pytest.fixture
def rig(llama: LoadedModel) -> Callable[..., Rig]:
    return lambda *arguments, **rest: Rig(llama, *arguments, **rest)


@pytest.mark.parametrize("kernel", [{}, {"varlen": plain_varlen}])
def test_a_replayed_step_gives_what_the_step_gives(rig: Callable[..., Rig], kernel: dict[str, Any]) -> None:
    one = rig(**kernel)
    lengths = [1, 2, 17, 40, 5]
    sequences = [one.sequence(length, seed) for seed, length in enumerate(lengths)]
    for count in (5, 1, 3, 2):
        work = [Work(sequence, 1) for sequence in sequences[:count]]
        expected = one.plain(work)
        found = one.graphs.run(work)
        assert found is not None
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)
    assert one.graphs.reason is None


def test_each_shape_is_recorded_once_and_the_smallest_is_taken(rig: Callable[..., Rig]) -> None:
    one = rig()
    short = [Work(one.sequence(4, seed), 1) for seed in range(5)]
    long = Work(one.sequence(530, 9), 1)
    for work in (short[:1], short[:3], short[:4], short[:5], [long], short[:1]):
        assert one.graphs.run(work) is not None
    wide, narrow = one.graphs._widths[-1], one.graphs._widths[0]
    expected = {Shape(1, narrow), Shape(4, narrow), Shape(8, narrow), Shape(1, wide)}
    assert set(one.graphs._replays) == expected
    assert one.recorder.recorded == len(expected)
    assert one.graphs.replays == 6


def test_all_shapes_can_be_recorded_at_load(rig: Callable[..., Rig]) -> None:
    one = rig()
    one.graphs.record_all()
    assert (
        one.graphs.count == len(one.graphs.shapes) == len(row_counts(8)) * len(table_widths(MAX_TOKENS, SIZE))
    )
    assert one.graphs.shapes[0].rows == 8  # the largest first, so that the others find its memory
    work = [Work(one.sequence(9, 1), 1)]
    one.graphs.run(work)
    assert one.graphs.count == len(one.graphs.shapes)
    assert one.graphs.facts() == {"graphs": one.graphs.count, "graphs_off": None}
    assert one.graphs.recorded_ms > 0


def test_what_is_padded_touches_only_the_spare_block(rig: Callable[..., Rig]) -> None:
    one = rig()
    work = [Work(one.sequence(6, seed), 1) for seed in range(5)]
    before = [tensor.clone() for tensors in one.pool.layers.values() for tensor in tensors]
    one.graphs.run(work)
    written = {work.sequence.blocks[5 // SIZE] * SIZE + 5 % SIZE for work in work}
    after = [tensor for tensors in one.pool.layers.values() for tensor in tensors]
    for old, new in zip(before, after, strict=True):
        changed = set((old != new).any(dim=2).any(dim=0).nonzero().flatten().tolist())
        assert written <= changed
        assert all(slot >= BLOCKS * SIZE for slot in changed - written)


def test_what_a_former_step_staged_does_not_stay(rig: Callable[..., Rig]) -> None:
    one = rig()
    long = [Work(one.sequence(530, seed), 1) for seed in range(2)]
    short = [Work(one.sequence(3, seed), 1) for seed in range(3)]
    one.graphs.run(long)
    found = one.graphs.run(short)
    assert found is not None
    torch.testing.assert_close(found, one.plain(short), rtol=1e-4, atol=1e-4)
    table = one.graphs._staged[16 : Shape(4, one.graphs._widths[0]).numbers]
    own = {block for work in short for block in work.sequence.blocks}
    assert set(table.tolist()) <= own | {BLOCKS}


def test_steps_that_no_recording_holds_are_left_to_others(rig: Callable[..., Rig]) -> None:
    one = rig()
    sequences = [one.sequence(4, seed) for seed in range(9)]
    assert one.graphs.run([Work(sequence, 1) for sequence in sequences]) is None  # more than max_batch
    assert one.graphs.run([Work(sequences[0], 1, (5, 6))]) is None  # drafts
    far = SimpleNamespace(tokens=[5] * 700, blocks=array("i", range(175)), num_computed=699, num_tokens=700)
    assert one.graphs.run([Work(far, 1)]) is None  # longer than any table
    assert one.graphs.count == 0


class Failing(FakeRecorder):
    def __init__(self, error: Exception) -> None:
        super().__init__()
        self.error = error

    def record(self, compute: Callable[[], None]) -> Callable[[], None]:
        super().record(compute)
        raise self.error


class Forgetful(FakeRecorder):
    """Recordings that do nothing when they are replayed."""

    def record(self, compute: Callable[[], None]) -> Callable[[], None]:
        super().record(compute)
        return lambda: None


@pytest.mark.parametrize(
    ("recorder", "reason"),
    [
        (
            Failing(RuntimeError("operation not permitted when stream is capturing\nand more")),
            "operation not",
        ),
        (Failing(torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 1.00 GiB.")), "1.00 GiB more"),
        (Forgetful(), "a recorded step of 1 rows differs by"),
    ],
)
def test_a_recording_that_fails_ends_recording_and_nothing_else(
    rig: Callable[..., Rig], recorder: FakeRecorder, reason: str
) -> None:
    one = rig(recorder)
    work = [Work(one.sequence(4, 1), 1)]
    assert one.graphs.run(work) is None
    assert one.graphs.reason is not None
    assert reason in one.graphs.reason
    cuda: FakeCuda = one.device.api
    assert cuda.emptied == 1
    assert one.graphs.run(work) is None
    one.graphs.record_all()
    assert one.recorder.recorded == 1
    assert one.plain(work).isfinite().all()
