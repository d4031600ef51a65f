"""Attention over the paged cache on CPU: gather into a kept workspace, then batched matrix products.

Decode: the keys of many sequences are gathered block by block into `[Hkv, B, L, D]` and multiplied with
the grouped queries `[Hkv, B, G, D]`, so that no key is repeated for the query heads of its group.
Prefill: one sequence at a time, causal, with torch's own kernel where the rule is a plain softmax.
"""

from dataclasses import dataclass, field

import torch
from torch.nn.functional import scaled_dot_product_attention

from inference.engine.attention import Batch, Rule, Span

#: a group of sequences may gather this much more than it needs before it is split by length
PADDING_ALLOWED = 1.25
GROUP_COST_TOKENS = 512  # what one more group costs in overhead, in gathered tokens

Pair = tuple[torch.Tensor, torch.Tensor]  # keys and values


@dataclass
class DecodeGroup:
    """Sequences of similar length, attended to in one product."""

    rows: torch.Tensor | None  # their places in the step; None: all, in order
    count: int
    width: int  # tokens gathered for each
    blocks: torch.Tensor  # [count · blocks per sequence]
    lengths: torch.Tensor  # [count]
    masks: dict[int | None, torch.Tensor | None] = field(default_factory=dict)  # by window


@dataclass
class Plan:
    groups: list[DecodeGroup]
    masks: dict[tuple[int, int | None], torch.Tensor | None] = field(default_factory=dict)


class CpuAttention:
    """The attention backend of the CPU (see `inference.engine.attention.AttentionBackend`)."""

    def __init__(self) -> None:
        self._spaces: dict[str, torch.Tensor] = {}

    @property
    def buffers_bytes(self) -> int:
        return sum(space.nbytes for space in list(self._spaces.values()))

    def prepare(self, batch: Batch) -> Plan:
        return Plan(_groups(batch.spans, batch.pool.block_tokens) if batch.decode else [])

    def attend(
        self, batch: Batch, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, rule: Rule
    ) -> torch.Tensor:
        if batch.decode:
            return self._decode(batch, query, rule)
        own = (key, value)
        parts = [self._prefill(batch, number, query, own, rule) for number in range(len(batch.spans))]
        return parts[0] if len(parts) == 1 else torch.cat(parts)

    # -- decode ---------------------------------------------------------------------------------------

    def _decode(self, batch: Batch, query: torch.Tensor, rule: Rule) -> torch.Tensor:
        plan: Plan = batch.plan
        keys, values = batch.pool.layers[batch.layer]
        kv_heads, value_dim = keys.shape[0], values.shape[2]
        heads, tokens, dim = query.shape
        grouped = query.reshape(kv_heads, heads // kv_heads, tokens, dim).transpose(1, 2)
        if len(plan.groups) == 1:
            mixed = self._decode_group(batch, plan.groups[0], grouped, rule)
            return mixed.transpose(0, 1).reshape(tokens, heads, value_dim)
        out = query.new_empty(tokens, kv_heads, heads // kv_heads, value_dim)
        for group in plan.groups:
            mixed = self._decode_group(batch, group, grouped[:, group.rows], rule)
            out[group.rows] = mixed.transpose(0, 1)
        return out.view(tokens, heads, value_dim)

    def _decode_group(
        self, batch: Batch, group: DecodeGroup, query: torch.Tensor, rule: Rule
    ) -> torch.Tensor:
        """`[Hkv, B, G, D]` → `[Hkv, B, G, Dv]`."""
        keys, values = batch.pool.layers[batch.layer]
        kv_heads, count, per_group, dim = query.shape
        block_tokens = batch.pool.block_tokens
        key = self._gather("key", keys, group.blocks, block_tokens).view(kv_heads * count, group.width, dim)
        value = self._gather("value", values, group.blocks, block_tokens)
        value = value.view(kv_heads * count, group.width, values.shape[2])
        query = (query * rule.scaling).reshape(kv_heads * count, per_group, dim)
        scores = torch.bmm(query, key.transpose(1, 2)).view(kv_heads, count, per_group, group.width)
        if rule.softcap:
            scores = torch.tanh(scores / rule.softcap) * rule.softcap
        mask = _decode_mask(group, rule.window, scores.dtype)
        if mask is not None:
            scores = scores.add_(mask)
        sinks = None if rule.sinks is None else rule.sinks.view(kv_heads, 1, per_group, 1)
        weights = _weights(scores, sinks).view(kv_heads * count, per_group, group.width)
        return torch.bmm(weights, value).view(kv_heads, count, per_group, values.shape[2])

    # -- prefill --------------------------------------------------------------------------------------

    def _prefill(self, batch: Batch, number: int, query: torch.Tensor, own: Pair, rule: Rule) -> torch.Tensor:
        """One sequence's chunk over its whole context → `[t, Hq, Dv]`."""
        span = batch.spans[number]
        keys, values = batch.pool.layers[batch.layer]
        query = query[:, span.start : span.stop]
        if span.before:
            block_tokens = batch.pool.block_tokens
            key = self._gather("key", keys, span.blocks, block_tokens)[:, : span.context]
            value = self._gather("value", values, span.blocks, block_tokens)[:, : span.context]
        else:
            key, value = (tensor[:, span.start : span.stop] for tensor in own)
        kv_heads, (heads, tokens, dim) = keys.shape[0], query.shape
        per_group = heads // kv_heads
        grouped = query.reshape(kv_heads, per_group, tokens, dim)
        window = rule.window if rule.window is not None and rule.window < span.context else None
        masks = batch.plan.masks
        if (number, window) not in masks:
            masks[number, window] = _prefill_mask(span, window, query.dtype)
        mask = masks[number, window]
        if rule.softcap or rule.sinks is not None:
            mixed = _eager(grouped, key, value, mask, rule)
        else:
            mixed = scaled_dot_product_attention(
                grouped,
                key.unsqueeze(1).expand(-1, per_group, -1, -1),
                value.unsqueeze(1).expand(-1, per_group, -1, -1),
                attn_mask=mask,
                is_causal=mask is None and tokens > 1,
                scale=rule.scaling,
            )
        return mixed.reshape(heads, tokens, value.shape[-1]).transpose(0, 1)

    def _gather(self, name: str, pool: torch.Tensor, blocks: torch.Tensor, block_tokens: int) -> torch.Tensor:
        """The blocks of a pool tensor one after another, `[Hkv, n · block, D]`, in a workspace that is kept.

        A fresh temporary of this size would cost tens of milliseconds of page faults in every layer.
        """
        heads, slots, dim = pool.shape
        size = heads * len(blocks) * block_tokens * dim
        space = self._spaces.get(name)
        if space is None or space.numel() < size or space.dtype != pool.dtype:
            space = self._spaces[name] = pool.new_empty(max(size + size // 4, 1))
        out = space[:size].view(heads, len(blocks), block_tokens * dim)
        torch.index_select(pool.view(heads, slots // block_tokens, block_tokens * dim), 1, blocks, out=out)
        return out.view(heads, len(blocks) * block_tokens, dim)


def _groups(spans: list[Span], block_tokens: int) -> list[DecodeGroup]:
    """Split a decode batch by length where padding to the longest would cost more than another group."""
    order = sorted(range(len(spans)), key=lambda row: -len(spans[row].blocks))
    groups: list[list[int]] = []
    used = 0
    for row in order:
        need = len(spans[row].blocks) * block_tokens
        if groups:
            width = len(spans[groups[-1][0]].blocks) * block_tokens
            gathered, wanted = width * (len(groups[-1]) + 1), used + need
            if gathered <= wanted * PADDING_ALLOWED or gathered - wanted <= GROUP_COST_TOKENS:
                groups[-1].append(row)
                used = wanted
                continue
        groups.append([row])
        used = need
    return [_group(spans, rows, block_tokens, alone=len(groups) == 1) for rows in groups]


def _group(spans: list[Span], rows: list[int], block_tokens: int, *, alone: bool) -> DecodeGroup:
    if alone:
        rows = list(range(len(spans)))
    per_sequence = max(len(spans[row].blocks) for row in rows)
    blocks = torch.zeros(len(rows), per_sequence, dtype=torch.long)
    for place, row in enumerate(rows):
        blocks[place, : len(spans[row].blocks)] = spans[row].blocks
    return DecodeGroup(
        rows=None if alone else torch.tensor(rows),
        count=len(rows),
        width=per_sequence * block_tokens,
        blocks=blocks.view(-1),
        lengths=torch.tensor([spans[row].context for row in rows]),
    )


def _decode_mask(group: DecodeGroup, window: int | None, dtype: torch.dtype) -> torch.Tensor | None:
    """`[B, 1, L]`, added to the scores: −inf on padding and on what has left the window."""
    if window not in group.masks:
        positions = torch.arange(group.width)
        lengths = group.lengths[:, None]
        hidden = positions >= lengths
        if window is not None:
            hidden |= positions < lengths - window
        mask = torch.zeros(hidden.shape, dtype=dtype).masked_fill_(hidden, float("-inf"))
        group.masks[window] = mask[:, None, :] if bool(hidden.any()) else None
    return group.masks[window]


def _prefill_mask(span: Span, window: int | None, dtype: torch.dtype) -> torch.Tensor | None:
    """`[t, C]`, added to the scores; None where plain causal attention over these very tokens is meant."""
    if not span.before and window is None:
        return None
    queries = torch.arange(span.before, span.context)[:, None]
    keys = torch.arange(span.context)[None, :]
    hidden = keys > queries
    if window is not None:
        hidden |= keys <= queries - window
    return torch.zeros(hidden.shape, dtype=dtype).masked_fill_(hidden, float("-inf"))


def _eager(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, mask: torch.Tensor | None, rule: Rule
) -> torch.Tensor:
    """`[Hkv, G, t, D]` over `[Hkv, C, D]` with softcap and sinks, in the order of the models."""
    kv_heads, per_group, tokens, dim = query.shape
    flat = (query * rule.scaling).reshape(kv_heads, per_group * tokens, dim)
    scores = torch.bmm(flat, key.transpose(1, 2)).view(kv_heads, per_group, tokens, key.shape[1])
    if rule.softcap:
        scores = torch.tanh(scores / rule.softcap) * rule.softcap
    if mask is None:
        hidden = torch.ones(tokens, key.shape[1], dtype=torch.bool).triu_(1)
        scores = scores.masked_fill_(hidden, float("-inf"))
    else:
        scores = scores.add_(mask)
    sinks = None if rule.sinks is None else rule.sinks.view(kv_heads, per_group, 1, 1)
    weights = _weights(scores, sinks)
    mixed = torch.bmm(weights.view(kv_heads, per_group * tokens, key.shape[1]), value)
    return mixed.view(kv_heads, per_group, tokens, value.shape[2])


def _weights(scores: torch.Tensor, sinks: torch.Tensor | None) -> torch.Tensor:
    """Softmax in fp32; a sink takes part in it and is then dropped."""
    if sinks is None:
        return torch.softmax(scores, dim=-1, dtype=torch.float32).to(scores.dtype)
    column = sinks.to(scores.dtype).expand(*scores.shape[:-1], 1)
    joined = torch.softmax(torch.cat([scores, column], dim=-1), dim=-1, dtype=torch.float32)
    return joined[..., :-1].to(scores.dtype)
