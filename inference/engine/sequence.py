"""One request inside the engine: its tokens, how far they are computed, and the blocks that hold them."""

from array import array
from collections.abc import Iterable
from dataclasses import dataclass, field

import torch

from inference.engine.detokenise import Detokeniser
from inference.requests import GenerationRequest


def block_table(blocks: Iterable[int] = ()) -> "array[int]":
    return array("i", blocks)


@dataclass(eq=False, kw_only=True, slots=True)
class Sequence:
    """A prompt that grows by its output; `num_computed` catches up with `num_tokens`.

    tokens:      p0 p1 p2 … pn | o0 o1 o2
                 └─ computed: their keys and values are in `blocks` ─┘ └ the step computes the rest
    """

    handle: int
    request: GenerationRequest
    tokens: list[int]
    prompt_length: int
    detokeniser: Detokeniser
    generator: torch.Generator | None  # None: greedy
    queued_ns: int
    blocks: "array[int]" = field(default_factory=block_table)  # 32 bit, so that native code reads it in place
    block_hashes: list[bytes] = field(default_factory=list)  # one for each full block, as far as known
    num_computed: int = 0
    num_registered: int = 0  # blocks of this stay that are offered to the prefix cache
    catch_up: int = 0  # tokens to compute as prefill in this stay in the batch
    high_water: int = 0  # the most tokens ever computed: below it, work is done again
    was_admitted: bool = False
    over: bool = False

    @property
    def num_tokens(self) -> int:
        return len(self.tokens)

    @property
    def num_output(self) -> int:
        return len(self.tokens) - self.prompt_length

    @property
    def output(self) -> list[int]:
        return self.tokens[self.prompt_length :]

    @property
    def in_prefill(self) -> bool:
        return self.num_computed < self.catch_up
