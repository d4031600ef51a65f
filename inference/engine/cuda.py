"""Attention over the paged cache on a GPU.

Two ways, chosen for each layer by what its rule asks for:

- **variable length**: the blocks of all sequences are gathered one after another, without padding to the
  longest, and one kernel attends to them (`torch.nn.attention.varlen`, FlashAttention: bfloat16 and
  float16, head dimensions up to 256, from compute capability 8.0 on). It is used once it has given what the
  other way gives on a small example; what a build of PyTorch lacks is found there, not in a user's answer.
- **products**: sequences with one new token are gathered in groups of similar length, chunks of prompts one
  by one; torch's own attention where the rule is a plain softmax, else (softcap, sinks) the arithmetic of the
  models. It runs on every device, which is how it is tested without a GPU.

Nothing here waits for the device: what decides is known on the host.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch.nn.attention.varlen import varlen_attn
from torch.nn.functional import scaled_dot_product_attention

from inference.engine.attention import Batch, Rule, Span
from inference.engine.cuda_plan import Group, Packed, Plan, group_by_length, pack, singles_and_runs
from inference.engine.device import Device
from inference.engine.kv import KVPool

MAX_HEAD_DIM = 256  # of the variable-length kernel; a multiple of 8
VARLEN_DTYPES = frozenset({torch.bfloat16, torch.float16})
VARLEN_CAPABILITY = (8, 0)
TRIAL_TOLERANCE = 0.1  # of values up to 4, each rounded to bfloat16; a wrong mask differs by far more

Varlen = Callable[..., Any]  # `varlen_attn`, which without `return_aux` returns one tensor


class CudaAttention:
    """The attention backend of a GPU (see `inference.engine.attention.AttentionBackend`)."""

    def __init__(self, device: Device, varlen: Varlen | None = None) -> None:
        self._device = device
        self._varlen = varlen
        self._trusted: dict[tuple[torch.dtype, int], str | None] = {}  # the reason where it is not

    @property
    def buffers_bytes(self) -> int:
        return 0  # intermediate results are the allocator's: the device's memory shows them

    @property
    def kernels(self) -> dict[str, str]:
        """What was decided so far, by type and head dimension: `used`, or the reason why not."""
        return {
            f"{str(dtype).removeprefix('torch.')}, {dim}": reason or "used"
            for (dtype, dim), reason in self._trusted.items()
        }

    def prepare(self, batch: Batch) -> Plan:
        return Plan()

    def attend(
        self, batch: Batch, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, rule: Rule
    ) -> torch.Tensor:
        keys, values = batch.pool.layers[batch.layer]
        plain = not rule.softcap and rule.sinks is None and keys.shape[2] == values.shape[2]
        if plain and self._varlen is not None and self._trusts(query.dtype, query.shape[2]):
            return self.by_kernel(batch, query, rule)
        return self.by_products(batch, query, rule)

    # -- variable length ------------------------------------------------------------------------------

    def by_kernel(self, batch: Batch, query: torch.Tensor, rule: Rule) -> torch.Tensor:
        """`[Hq, T, D]` → `[T, Hq, D]`: single tokens in one call, longer runs in another."""
        plan: Plan = batch.plan
        if plan.packed is None:
            plan.packed = [
                pack(self._device, batch.spans, numbers, batch.pool.block_tokens)
                for numbers in singles_and_runs(batch.spans)
                if numbers
            ]
        tokens = query.transpose(0, 1)
        if len(plan.packed) == 1:
            return self._call(batch, plan.packed[0], tokens, rule)
        out = torch.empty_like(tokens, memory_format=torch.contiguous_format)
        for part in plan.packed:
            assert part.rows is not None
            out.index_copy_(0, part.rows, self._call(batch, part, tokens.index_select(0, part.rows), rule))
        return out

    def _call(self, batch: Batch, part: Packed, query: torch.Tensor, rule: Rule) -> torch.Tensor:
        assert self._varlen is not None
        keys, values = batch.pool.layers[batch.layer]
        size = batch.pool.block_tokens
        if rule.window is not None:
            window = (rule.window - 1, 0)  # the kernel counts the keys before the query's own
        else:  # a single query sees all that is there; said so, its heads of one group are computed together
            window = (-1, -1) if part.longest_query == 1 else (-1, 0)
        return self._varlen(
            query,
            _gather(keys, part.blocks, size).transpose(0, 1),
            _gather(values, part.blocks, size).transpose(0, 1),
            part.query_starts,
            part.key_starts,
            part.longest_query,
            part.longest_key,
            scale=rule.scaling,
            window_size=window,
            enable_gqa=query.shape[1] != keys.shape[0],
            seqused_k=part.used,
        )

    def _trusts(self, dtype: torch.dtype, dim: int) -> bool:
        if (dtype, dim) not in self._trusted:
            self._trusted[dtype, dim] = self._trial(dtype, dim)
        return self._trusted[dtype, dim] is None

    def _trial(self, dtype: torch.dtype, dim: int) -> str | None:
        """Both ways on a small example; the reason where the kernel cannot be used, else None."""
        if self._device.torch_device.type == "cuda" and dtype not in VARLEN_DTYPES:
            return "not for this type"
        if dim % 8 or dim > MAX_HEAD_DIM:
            return "not for this head dimension"
        heads, kv_heads, size = 6, 2, 16
        seeded = torch.Generator().manual_seed(0)
        place = self._device.torch_device

        def random(*shape: int) -> torch.Tensor:
            return torch.randn(*shape, generator=seeded).to(place, dtype)

        pool = KVPool(size)
        pool.layers = {0: (random(kv_heads, 12 * size, dim), random(kv_heads, 12 * size, dim))}
        blocks = [[7, 3], [1], [9, 0, 4], [5, 2]]
        spans, stop = [], 0
        for count, context, table in zip((1, 1, 11, 20), (29, 5, 40, 20), blocks, strict=True):
            stop += count
            spans.append(Span(start=stop - count, stop=stop, context=context, blocks=torch.tensor(table)))
        query = random(heads, stop, dim)
        try:
            for some, window in ((spans, None), (spans, 7), (spans[:2], None), (spans[:2], 7)):
                batch = Batch(pool=pool, backend=self, slots=query, spans=some, decode=False, plan=Plan())
                asked = query[:, : some[-1].stop]
                rule = Rule(scaling=dim**-0.5, window=window, softcap=None, sinks=None)
                ours = self.by_products(batch, asked, rule).float()
                theirs = self.by_kernel(batch, asked, rule).float()
                difference = float((ours - theirs).abs().max())
                if not difference <= TRIAL_TOLERANCE:
                    return f"results differ by {difference:.2g}"
        except (RuntimeError, ValueError, TypeError, NotImplementedError) as error:
            return str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        return None

    # -- products -------------------------------------------------------------------------------------

    def by_products(self, batch: Batch, query: torch.Tensor, rule: Rule) -> torch.Tensor:
        """`[Hq, T, D]` → `[T, Hq, Dv]`: groups of single tokens, and longer runs one by one."""
        plan: Plan = batch.plan
        singles, runs = singles_and_runs(batch.spans)
        if plan.groups is None:
            plan.groups = group_by_length(self._device, batch.spans, singles, batch.pool.block_tokens)
        if len(plan.groups) == 1 and not runs:
            return self._single(batch, plan.groups[0], query, rule)
        values = batch.pool.layers[batch.layer][1]
        out = query.new_empty(query.shape[1], query.shape[0], values.shape[2])
        for group in plan.groups:
            assert group.rows is not None
            part = self._single(batch, group, query.index_select(1, group.rows), rule)
            out.index_copy_(0, group.rows, part)
        for number in runs:
            span = batch.spans[number]
            out[span.start : span.stop] = self._run(batch, number, query[:, span.start : span.stop], rule)
        return out

    def _single(self, batch: Batch, group: Group, query: torch.Tensor, rule: Rule) -> torch.Tensor:
        """`[Hq, B, D]` → `[B, Hq, Dv]`; the heads of a group are the rows of its query, so no key repeats."""
        keys, values = batch.pool.layers[batch.layer]
        size, kv_heads = batch.pool.block_tokens, keys.shape[0]
        heads, count, dim = query.shape
        per_group, sinks = heads // kv_heads, rule.sinks
        key = _gather(keys, group.blocks, size).view(kv_heads, count, group.width, dim)
        value = _gather(values, group.blocks, size).view(kv_heads, count, group.width, values.shape[2])
        mask = _group_mask(group, rule.window, query.dtype)
        mixed = _mixed(
            query.reshape(kv_heads, per_group, count, dim).transpose(1, 2),
            key,
            value,
            rule,
            mask=None if mask is None else mask[None, :, None, :],
            causal=False,
            sinks=None if sinks is None else sinks.view(kv_heads, 1, per_group, 1),
        )
        return mixed.transpose(0, 1).reshape(count, heads, values.shape[2])

    def _run(self, batch: Batch, number: int, query: torch.Tensor, rule: Rule) -> torch.Tensor:
        """One sequence's `[Hq, t, D]` over its whole context → `[t, Hq, Dv]`."""
        span, masks = batch.spans[number], batch.plan.masks
        keys, values = batch.pool.layers[batch.layer]
        kv_heads, (heads, tokens, dim) = keys.shape[0], query.shape
        per_group, size = heads // kv_heads, batch.pool.block_tokens
        blocks = self._blocks(batch, number)
        key = _gather(keys, blocks, size)[:, : span.context]
        value = _gather(values, blocks, size)[:, : span.context]
        window = rule.window if rule.window is not None and rule.window < span.context else None
        if (number, window, query.dtype) not in masks:
            masks[number, window, query.dtype] = _run_mask(span, window, query)
        mask = masks[number, window, query.dtype]
        mixed = _mixed(
            query.reshape(kv_heads, per_group, tokens, dim),
            key.unsqueeze(1),
            value.unsqueeze(1),
            rule,
            mask=mask,
            causal=mask is None,
            sinks=None if rule.sinks is None else rule.sinks.view(kv_heads, per_group, 1, 1),
        )
        return mixed.reshape(heads, tokens, values.shape[2]).transpose(0, 1)

    def _blocks(self, batch: Batch, number: int) -> torch.Tensor:
        tables = batch.plan.tables
        if number not in tables:
            tables[number] = self._device.tensors(batch.spans[number].blocks.tolist())[0]
        return tables[number]


def find_varlen(torch_device: torch.device) -> Varlen | None:
    """torch's variable-length attention where it may work; None on other devices and older GPUs."""
    if torch_device.type != "cuda" or torch.cuda.get_device_capability(torch_device) < VARLEN_CAPABILITY:
        return None
    return varlen_attn


def _gather(pool: torch.Tensor, blocks: torch.Tensor, block_tokens: int) -> torch.Tensor:
    """The blocks of a pool tensor `[Hkv, slots, D]` one after another: `[Hkv, n · block, D]`."""
    heads, slots, dim = pool.shape
    by_block = pool.view(heads, slots // block_tokens, block_tokens * dim)
    return by_block.index_select(1, blocks).view(heads, len(blocks) * block_tokens, dim)


def _group_mask(group: Group, window: int | None, dtype: torch.dtype) -> torch.Tensor | None:
    """`[B, W]`, added to the scores: −inf on padding and on what has left the window; None: all is seen."""
    if window is not None and window >= group.longest:
        window = None
    if (window, dtype) not in group.masks:
        mask = None
        if window is not None or group.shortest < group.width:
            positions = torch.arange(group.width, device=group.lengths.device)
            lengths = group.lengths[:, None]
            hidden = positions >= lengths
            if window is not None:
                hidden = hidden | (positions < lengths - window)
            mask = _additive(hidden, dtype)
        group.masks[window, dtype] = mask
    return group.masks[window, dtype]


def _run_mask(span: Span, window: int | None, like: torch.Tensor) -> torch.Tensor | None:
    """`[t, C]`, added to the scores; None where plain causal attention over these very tokens is meant."""
    if not span.before and window is None:
        return None
    queries = torch.arange(span.before, span.context, device=like.device)[:, None]
    keys = torch.arange(span.context, device=like.device)[None, :]
    hidden = keys > queries
    if window is not None:
        hidden = hidden | (keys <= queries - window)
    return _additive(hidden, like.dtype)


def _additive(hidden: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    return torch.zeros(hidden.shape, dtype=dtype, device=hidden.device).masked_fill_(hidden, float("-inf"))


def _mixed(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    rule: Rule,
    *,
    mask: torch.Tensor | None,
    causal: bool,
    sinks: torch.Tensor | None,
) -> torch.Tensor:
    """`[b, h, q, D]` over `[b, h or 1, k, D]` → `[b, h, q, Dv]`; `sinks` is broadcast over the scores."""
    if not rule.softcap and sinks is None:
        heads = query.shape[1]
        return scaled_dot_product_attention(
            query,
            key.expand(-1, heads, -1, -1),
            value.expand(-1, heads, -1, -1),
            attn_mask=mask,
            is_causal=causal,
            scale=rule.scaling,
        )
    scores = _product(query * rule.scaling, key.transpose(2, 3))
    if rule.softcap:
        scores = torch.tanh(scores / rule.softcap) * rule.softcap
    if causal:
        hidden = torch.ones(scores.shape[2:], dtype=torch.bool, device=scores.device).triu_(1)
        scores = scores.masked_fill(hidden, float("-inf"))
    elif mask is not None:
        scores = scores + mask
    return _product(_weights(scores, sinks), value)


def _product(left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
    """`[b, h, q, x] @ [b, h or 1, x, y]`, without repeating what all of h share."""
    if right.shape[1] == left.shape[1]:
        return torch.matmul(left, right)
    groups, heads, rows, _ = left.shape
    return torch.bmm(left.flatten(1, 2), right.squeeze(1)).view(groups, heads, rows, right.shape[3])


def _weights(scores: torch.Tensor, sinks: torch.Tensor | None) -> torch.Tensor:
    """Softmax in fp32; a sink takes part in it and is then dropped."""
    if sinks is None:
        return torch.softmax(scores, dim=-1, dtype=torch.float32).to(scores.dtype)
    column = sinks.to(scores.dtype).expand(*scores.shape[:-1], 1)
    joined = torch.softmax(torch.cat([scores, column], dim=-1), dim=-1, dtype=torch.float32)
    return joined[..., :-1].to(scores.dtype)
