"""How a step's sequences are laid out for attention on a GPU: what is gathered, and what shares a call."""

from dataclasses import dataclass, field

import torch

from inference.engine.attention import Span
from inference.engine.device import Device

PADDING_ALLOWED = 1.25  # a group may gather this much more than it needs before it is split by length
GROUP_COST_TOKENS = 4096  # what the launches of one more group cost, in gathered tokens


@dataclass(kw_only=True)
class Group:
    """Sequences of similar length with one new token each: `count` rows over `width` gathered tokens.

    `shortest` and `longest` are contexts known on the host: whether a mask is needed shows there.
    """

    rows: torch.Tensor | None  # their packed tokens; None: all, in order
    blocks: torch.Tensor  # [count · blocks of width]
    lengths: torch.Tensor  # [count], on the device
    count: int
    width: int
    shortest: int
    longest: int
    masks: dict[tuple[int | None, torch.dtype], torch.Tensor | None] = field(default_factory=dict)


@dataclass(kw_only=True)
class Packed:
    """What one call of the variable-length kernel takes beside queries and pool (all int32)."""

    rows: torch.Tensor | None  # the packed tokens of its sequences; None: all, in order
    blocks: torch.Tensor  # of all its sequences, one after another
    query_starts: torch.Tensor  # [n + 1]
    key_starts: torch.Tensor  # [n + 1], at the edges of blocks
    used: torch.Tensor  # [n]: the context of each, which ends before its last block does
    longest_query: int
    longest_key: int


@dataclass
class Plan:
    """What all layers of a step share; each part is made when a layer first needs it."""

    groups: list[Group] | None = None
    packed: list[Packed] | None = None
    tables: dict[int, torch.Tensor] = field(default_factory=dict)  # blocks of longer runs, by span
    masks: dict[tuple[int, int | None, torch.dtype], torch.Tensor | None] = field(default_factory=dict)


def fixed_plan(
    lengths: torch.Tensor, table: torch.Tensor, block_tokens: int, *, rows: int, blocks_per_row: int
) -> Plan:
    """The plan of a decode step of fixed shape, made of device tensors alone (for a recorded graph).

    `lengths` `[rows]` and `table` `[rows · blocks_per_row]` are int64 and change from replay to replay, so
    every row counts as anything between one token and the full width.
    """
    width = blocks_per_row * block_tokens
    edges = torch.arange(rows + 1, device=lengths.device, dtype=torch.int32)
    group = Group(
        rows=None, blocks=table, lengths=lengths, count=rows, width=width, shortest=1, longest=width
    )
    packed = Packed(
        rows=None,
        blocks=table,
        query_starts=edges,
        key_starts=edges * width,
        used=lengths.to(torch.int32),
        longest_query=1,
        longest_key=width,
    )
    return Plan(groups=[group], packed=[packed])


def singles_and_runs(spans: list[Span]) -> tuple[list[int], list[int]]:
    singles = [number for number, span in enumerate(spans) if span.stop - span.start == 1]
    return singles, [number for number, span in enumerate(spans) if span.stop - span.start > 1]


def pack(device: Device, spans: list[Span], numbers: list[int], block_tokens: int) -> Packed:
    rows: list[int] = []
    blocks: list[int] = []
    used: list[int] = []
    query_starts, key_starts = [0], [0]
    for number in numbers:
        span = spans[number]
        rows += range(span.start, span.stop)
        blocks += span.blocks.tolist()
        used.append(span.context)
        query_starts.append(len(rows))
        key_starts.append(len(blocks) * block_tokens)
    alone = len(numbers) == len(spans)
    where, table, *short = device.tensors([] if alone else rows, blocks, query_starts, key_starts, used)
    starts, edges, contexts = (one.to(torch.int32) for one in short)
    return Packed(
        rows=None if alone else where,
        blocks=table,
        query_starts=starts,
        key_starts=edges,
        used=contexts,
        longest_query=max(spans[number].stop - spans[number].start for number in numbers),
        longest_key=max(used),
    )


def group_by_length(device: Device, spans: list[Span], singles: list[int], block_tokens: int) -> list[Group]:
    """Single tokens by length, split where padding to the longest would cost more than another group."""
    order = sorted(singles, key=lambda number: -len(spans[number].blocks))
    groups: list[list[int]] = []
    needed = 0
    for number in order:
        need = len(spans[number].blocks) * block_tokens
        if groups:
            gathered = len(spans[groups[-1][0]].blocks) * block_tokens * (len(groups[-1]) + 1)
            wanted = needed + need
            if gathered <= wanted * PADDING_ALLOWED or gathered - wanted <= GROUP_COST_TOKENS:
                groups[-1].append(number)
                needed = wanted
                continue
        groups.append([number])
        needed = need
    alone = len(groups) == 1 and len(singles) == len(spans)
    return [_group(device, spans, sorted(group), block_tokens, alone=alone) for group in groups]


def _group(device: Device, spans: list[Span], numbers: list[int], block_tokens: int, *, alone: bool) -> Group:
    per_row = max(len(spans[number].blocks) for number in numbers)
    table: list[int] = []
    for number in numbers:
        own = spans[number].blocks.tolist()
        table += own + [0] * (per_row - len(own))
    contexts = [spans[number].context for number in numbers]
    rows = [] if alone else [spans[number].start for number in numbers]
    where, blocks, lengths = device.tensors(rows, table, contexts)
    return Group(
        rows=None if alone else where,
        blocks=blocks,
        lengths=lengths,
        count=len(numbers),
        width=per_row * block_tokens,
        shortest=min(contexts),
        longest=max(contexts),
    )
