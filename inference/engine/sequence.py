"""One request inside the engine: its tokens, how far they are computed, and the blocks that hold them."""

from array import array
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from inference.engine.detokenise import Detokeniser
from inference.engine.penalties import History
from inference.requests import PRIORITIES, GenerationRequest


def block_table(blocks: Iterable[int] = ()) -> "array[int]":
    return array("i", blocks)


@dataclass(slots=True)
class Drafting:
    """How a sequence's drafts fare, and what its drafter keeps of it (see `inference.engine.speculation`)."""

    size: int = 0  # tokens to propose next; 0: nothing was proposed yet
    misses: int = 0  # proposals in a row of which nothing was right
    resume_at: int = 0  # no proposal before the sequence has so many tokens
    memory: Any = None


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
    queued_ns: int
    seed: int | None = None  # None: greedy
    end_ids: frozenset[int] = frozenset()  # the tokens that end this answer
    suppressed_ids: frozenset[int] = frozenset()  # these cannot be sampled before min_tokens
    history: History | None = None  # where a penalty needs it
    plain: bool = False  # after min_tokens the most probable token is all it asks for
    rank: int = 0  # place of its priority: 0 goes first
    blocks: "array[int]" = field(default_factory=block_table)  # 32 bit, so that native code reads it in place
    block_hashes: list[bytes] = field(default_factory=list)  # one for each full block, as far as known
    num_computed: int = 0
    num_registered: int = 0  # blocks of this stay that are offered to the prefix cache
    catch_up: int = 0  # tokens to compute as prefill in this stay in the batch
    high_water: int = 0  # the most tokens ever computed: below it, work is done again
    stays: int = 0  # how often it entered the batch
    in_batch: bool = False
    over: bool = False
    drafting: Drafting = field(default_factory=Drafting)

    @property
    def num_tokens(self) -> int:
        return len(self.tokens)

    @property
    def num_output(self) -> int:
        return len(self.tokens) - self.prompt_length

    @property
    def in_prefill(self) -> bool:
        return self.num_computed < self.catch_up


def new_sequence(
    handle: int,
    request: GenerationRequest,
    tokens: list[int],
    detokeniser: Detokeniser,
    *,
    end_ids: frozenset[int],
    seed: int | None,
    queued_ns: int,
) -> Sequence:
    """A request that was admitted, with what its sampling needs at every token worked out once.

    `end_ids` are the model's end tokens, `seed` is None for greedy answers.
    """
    own_ends = frozenset(request.stop_token_ids)
    history = History.of(request, tokens)
    return Sequence(
        handle=handle,
        request=request,
        tokens=tokens,
        prompt_length=len(tokens),
        detokeniser=detokeniser,
        queued_ns=queued_ns,
        seed=seed,
        end_ids=own_ends if request.ignore_eos else own_ends | end_ids,
        suppressed_ids=own_ends | end_ids,
        history=history,
        plain=seed is None and history is None and request.logprobs is None,
        rank=PRIORITIES.index(request.priority),
    )
