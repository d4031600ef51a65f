"""The attention of a GPU on CPU tensors: both of its ways against the CPU's own, whatever the batch."""

import random
from typing import Any

import pytest
import torch

from inference.engine.attention import Batch, Rule, Span
from inference.engine.cpu import CpuAttention
from inference.engine.cuda import CudaAttention
from inference.engine.cuda_plan import fixed_plan
from inference.engine.kv import KVPool
from tests.inference.engine.fake_cuda import fake_device, plain_varlen

HEADS, KV_HEADS, DIM, VALUE_DIM, SIZE, BLOCKS = 6, 2, 8, 8, 4, 64

RULES = {
    "plain": Rule(scaling=0.3, window=None, softcap=None, sinks=None),
    "window": Rule(scaling=0.3, window=5, softcap=None, sinks=None),
    "softcap": Rule(scaling=0.3, window=None, softcap=4.0, sinks=None),
    "sinks": Rule(scaling=0.3, window=7, softcap=None, sinks=torch.linspace(-1, 2, HEADS)),
}
#: (new tokens, context) of each sequence
BATCHES = {
    "one": [(1, 1)],
    "decode": [(1, 9), (1, 4), (1, 30), (1, 5)],
    "a block as long as the group of heads": [(1, 3)],
    "fresh prompts": [(5, 5), (12, 12)],
    "later chunks": [(5, 11), (4, 20)],
    "mixed": [(1, 9), (6, 6), (1, 25), (3, 17), (1, 2)],
    "drafts": [(3, 12), (1, 8), (4, 21)],
    "far apart": [(1, 1), (1, 2), (1, 120), (1, 118)],
}


def make(counts: list[tuple[int, int]], value_dim: int = VALUE_DIM) -> tuple[KVPool, list[Span], Any]:
    """A pool full of numbers, spans over scattered blocks, and the queries of all of them."""
    torch.manual_seed(0)
    pool = KVPool(SIZE)
    pool.allocate(BLOCKS, {0: (KV_HEADS, DIM, value_dim)}, torch.float32)
    for tensor in pool.layers[0]:
        tensor.normal_()
    free = list(range(BLOCKS))
    random.Random(1).shuffle(free)
    spans, stop = [], 0
    for count, context in counts:
        blocks = [free.pop() for _ in range(-(-context // SIZE))]
        stop += count
        spans.append(Span(start=stop - count, stop=stop, context=context, blocks=torch.tensor(blocks)))
    return pool, spans, torch.randn(HEADS, stop, DIM)


def own_tokens(pool: KVPool, spans: list[Span]) -> list[torch.Tensor]:
    """Keys and values of the step's own tokens, as the pool holds them."""
    slots = [
        int(span.blocks[at // SIZE]) * SIZE + at % SIZE
        for span in spans
        for at in range(span.before, span.context)
    ]
    return [tensor[:, slots] for tensor in pool.layers[0]]


def batch_of(pool: KVPool, spans: list[Span], backend: Any) -> Batch:
    decode = all(span.stop - span.start == 1 for span in spans)
    batch = Batch(pool=pool, backend=backend, slots=torch.empty(0), spans=spans, decode=decode)
    batch.plan = backend.prepare(batch)
    return batch


@pytest.mark.parametrize("batch", BATCHES)
@pytest.mark.parametrize("rule", RULES)
def test_products_are_those_of_the_cpu(rule: str, batch: str) -> None:
    pool, spans, query = make(BATCHES[batch])
    own = own_tokens(pool, spans)
    cpu, ours = CpuAttention(), CudaAttention(fake_device())
    expected = cpu.attend(batch_of(pool, spans, cpu), query, *own, RULES[rule])
    found = ours.attend(batch_of(pool, spans, ours), query, *own, RULES[rule])
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("batch", BATCHES)
@pytest.mark.parametrize("rule", ["plain", "window"])
def test_the_kernel_gets_what_gives_the_same(rule: str, batch: str) -> None:
    pool, spans, query = make(BATCHES[batch])
    ours = CudaAttention(fake_device(), plain_varlen)
    expected = ours.by_products(batch_of(pool, spans, ours), query, RULES[rule])
    found = ours.by_kernel(batch_of(pool, spans, ours), query, RULES[rule])
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)


def test_values_may_be_wider_than_keys() -> None:
    pool, spans, query = make(BATCHES["mixed"], value_dim=12)
    own = own_tokens(pool, spans)
    cpu, ours = CpuAttention(), CudaAttention(fake_device(), plain_varlen)
    expected = cpu.attend(batch_of(pool, spans, cpu), query, *own, RULES["plain"])
    found = ours.attend(batch_of(pool, spans, ours), query, *own, RULES["plain"])
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)


def test_all_layers_of_a_step_share_its_plan() -> None:
    pool, spans, query = make(BATCHES["mixed"])
    ours = CudaAttention(fake_device())
    batch = batch_of(pool, spans, ours)
    ours.by_products(batch, query, RULES["plain"])
    groups, masks = batch.plan.groups, dict(batch.plan.masks)
    ours.by_products(batch, query, RULES["plain"])
    assert batch.plan.groups is groups
    assert batch.plan.masks == masks


@pytest.mark.parametrize("window", [None, 5])
def test_a_plan_of_fixed_shape_gives_what_a_step_of_any_shape_does(window: int | None) -> None:
    pool, spans, query = make(BATCHES["decode"])
    rule = Rule(scaling=0.3, window=window, softcap=None, sinks=None)
    ours = CudaAttention(fake_device(), plain_varlen)
    expected = ours.by_products(batch_of(pool, spans, ours), query, rule)
    width = 10
    table = torch.zeros(len(spans), width, dtype=torch.long)
    for row, span in enumerate(spans):
        table[row, : len(span.blocks)] = span.blocks
    lengths = torch.tensor([span.context for span in spans])
    batch = batch_of(pool, [], ours)
    for way in (ours.by_products, ours.by_kernel):
        batch.plan = fixed_plan(lengths, table.view(-1), SIZE, rows=len(spans), blocks_per_row=width)
        torch.testing.assert_close(way(batch, query, rule), expected, rtol=1e-5, atol=1e-5)


def test_short_sequences_are_not_padded_to_a_long_one() -> None:
    pool, spans, query = make([(1, 4)] * 3 + [(1, 200)])
    many = [Span(start=n, stop=n + 1, context=1, blocks=torch.tensor([0] * 40)) for n in range(120)]
    ours = CudaAttention(fake_device())
    batch = batch_of(pool, spans, ours)
    ours.by_products(batch, query, RULES["plain"])
    assert len(batch.plan.groups) == 1  # a few hundred tokens are cheaper than another launch
    long = Span(start=120, stop=121, context=1, blocks=torch.tensor([0] * 4000))
    batch = batch_of(pool, [*many, long], ours)
    ours.by_products(batch, torch.randn(HEADS, 121, DIM), RULES["plain"])
    assert sorted(group.width // SIZE for group in batch.plan.groups) == [40, 4000]


# -- which way is taken -------------------------------------------------------------------------------


def test_a_kernel_is_used_once_it_has_given_the_right_result() -> None:
    calls: list[int] = []

    def counting(*arguments: Any, **rest: Any) -> torch.Tensor:
        calls.append(1)
        return plain_varlen(*arguments, **rest)

    pool, spans, query = make(BATCHES["mixed"])
    own = own_tokens(pool, spans)
    ours = CudaAttention(fake_device(), counting)
    ours.attend(batch_of(pool, spans, ours), query, *own, RULES["plain"])
    tried = len(calls)
    assert tried > 2
    assert ours.kernels == {"float32, 8": "used"}
    ours.attend(batch_of(pool, spans, ours), query, *own, RULES["plain"])
    assert len(calls) == tried + 2  # one call for single tokens, one for longer runs


def test_softcap_and_sinks_are_never_given_to_the_kernel() -> None:
    pool, spans, query = make(BATCHES["mixed"])
    own = own_tokens(pool, spans)
    ours = CudaAttention(fake_device(), plain_varlen)
    for name in ("softcap", "sinks"):
        ours.attend(batch_of(pool, spans, ours), query, *own, RULES[name])
    assert ours.kernels == {}


def wrong(query: torch.Tensor, *_: Any, **__: Any) -> torch.Tensor:
    return torch.zeros_like(query)


def missing(*_: Any, **__: Any) -> torch.Tensor:
    raise RuntimeError("seqused_k is not supported by this build\nwith a long trace")


@pytest.mark.parametrize(
    ("kernel", "reason"),
    [(wrong, "results differ by"), (missing, "seqused_k is not supported by this build")],
)
def test_a_kernel_that_fails_its_trial_is_left_alone(kernel: Any, reason: str) -> None:
    pool, spans, query = make(BATCHES["mixed"])
    own = own_tokens(pool, spans)
    cpu, ours = CpuAttention(), CudaAttention(fake_device(), kernel)
    expected = cpu.attend(batch_of(pool, spans, cpu), query, *own, RULES["plain"])
    found = ours.attend(batch_of(pool, spans, ours), query, *own, RULES["plain"])
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)
    assert ours.kernels["float32, 8"].startswith(reason)


def test_head_dimensions_beyond_the_kernel_are_not_tried() -> None:
    ours = CudaAttention(fake_device(), missing)
    assert not ours._trusts(torch.float32, 12)
    assert not ours._trusts(torch.float32, 264)
    assert set(ours.kernels.values()) == {"not for this head dimension"}
