"""Who computes how much in the next step, by one rule: computed tokens catch up with known tokens.

There is no prefill or decode phase inside: chunked prefill, prefix hits, preemption and recomputation all
are sequences whose `num_computed` is behind `num_tokens`. On CPU a step is phase-pure all the same (chunks
of prompts, or one token of each running sequence), so that its time belongs to one phase; where both have
work, they take turns, so that neither a long prompt nor a full batch holds up the other for long. On a GPU,
where single tokens leave most of it idle, a step is both.

Whoever has the higher priority goes first everywhere: out of the waiting list, into a step, and to the
last free block. Inside one priority the order is that of arrival.
"""

from bisect import insort
from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal, Protocol, get_args

from inference.engine.kv import BlockManager
from inference.engine.sequence import Sequence
from inference.requests import PRIORITIES

Kind = Literal["prefill", "decode", "mixed"]
KINDS: tuple[Kind, ...] = get_args(Kind)


@dataclass(slots=True)
class Work:
    """One sequence's part of a step: compute `tokens` more of its tokens, and the drafts behind them.

    known tokens:   c0 c1 … c(n-1) | t0 … t(tokens-1) | d0 d1 …      c: computed before, d: `drafts`
                                     └───── computed in this step, `count` in all ──────┘
                                               keep ──└───────────── logits wanted ─────┘

    Drafts are guesses: only a decode step has any, and only where the known tokens are complete. Their
    slots are in `sequence.blocks` like all others; what is refused is overwritten by a later step.
    """

    sequence: Sequence
    tokens: int
    drafts: tuple[int, ...] = ()

    @property
    def count(self) -> int:
        """Tokens computed in this step."""
        return self.tokens + len(self.drafts)

    @property
    def completes(self) -> bool:
        """Whether all known tokens are computed after it, so that a new one can be sampled."""
        return self.sequence.num_computed + self.tokens == len(self.sequence.tokens)

    @property
    def keep(self) -> int:
        """How many of the last positions have their logits wanted: 0, or one for each next token."""
        return 1 + len(self.drafts) if self.completes else 0


@dataclass(slots=True)
class Step:
    kind: Kind
    work: list[Work]

    @property
    def tokens(self) -> int:
        return sum(work.count for work in self.work)

    @property
    def composition(self) -> tuple[tuple[int, int], tuple[int, int]]:
        """(sequences, tokens) that it prefills and that it decodes, until the sequences have moved on."""
        prefill = [work.count for work in self.work if work.sequence.in_prefill]
        return (len(prefill), sum(prefill)), (len(self.work) - len(prefill), self.tokens - sum(prefill))


@dataclass(kw_only=True)
class Listeners:
    """What the engine wants to know while the schedule is made."""

    admitted: Callable[[Sequence, int], None]  # with the tokens found in the cache
    preempted: Callable[[Sequence, int], None]  # with the tokens that must be computed again
    copy_block: Callable[[int, int], None]


class Drafter(Protocol):
    """Guesses how sequences go on (see `inference.engine.speculation`)."""

    max_batch: int  # sequences in a decode step above which guessing costs more than it gains

    def wanted(self, sequence: Sequence) -> int:
        """Most tokens worth guessing for it now; 0: none."""

    def propose(self, sequences: list[Sequence], limits: list[int]) -> list[tuple[int, ...]]:
        """For each at most its limit of tokens; their slots are in its blocks already."""

    def learn(self, sequence: Sequence, proposed: int, right: int) -> None:
        """What became of a proposal; called before its tokens are added to the sequence."""

    def reset(self) -> None:
        """Forget what was kept of earlier requests."""


class WaitingList:
    """Who is not in the batch, by priority, then by arrival; no operation takes longer for a longer list."""

    def __init__(self) -> None:
        self._ranks: tuple[OrderedDict[Sequence, None], ...] = tuple(OrderedDict() for _ in PRIORITIES)

    def __len__(self) -> int:
        return sum(map(len, self._ranks))

    def __iter__(self) -> Iterator[Sequence]:
        for rank in self._ranks:
            yield from rank

    def first(self) -> Sequence | None:
        return next((next(iter(rank)) for rank in self._ranks if rank), None)

    def add(self, sequence: Sequence) -> None:
        self._ranks[sequence.rank][sequence] = None

    def add_first(self, sequence: Sequence) -> None:
        """Before all others of its priority."""
        self.add(sequence)
        self._ranks[sequence.rank].move_to_end(sequence, last=False)

    def remove(self, sequence: Sequence) -> None:
        del self._ranks[sequence.rank][sequence]


class Scheduler:
    """Keeps the waiting list and the batch; admits in order, preempts the youngest of the lowest priority."""

    def __init__(
        self,
        blocks: BlockManager,
        listeners: Listeners,
        *,
        max_batch: int,
        prefill_chunk_tokens: int,
        phase_pure: bool = True,
        drafter: Drafter | None = None,
    ) -> None:
        self.blocks = blocks
        self.drafter = drafter
        self.waiting = WaitingList()
        self.running: list[Sequence] = []  # by priority, then in the order of admission: the last goes first
        self.preemptions = 0
        self._listeners = listeners
        self._max_batch = max_batch
        self._chunk_tokens = prefill_chunk_tokens
        self._phase_pure = phase_pure
        self._last: Kind = "decode"

    def add(self, sequence: Sequence) -> None:
        self.waiting.add(sequence)

    def remove(self, sequence: Sequence) -> None:
        """Take a sequence out, wherever it is, and its blocks back."""
        if sequence.in_batch:
            self._leave(sequence)
        else:
            self.waiting.remove(sequence)

    def schedule(self) -> Step | None:
        """The next step, or None when there is nothing to do."""
        self._admit()
        if not self._phase_pure:
            return self._mixed()
        prefill_first = self._last == "decode"
        for kind in ("prefill", "decode") if prefill_first else ("decode", "prefill"):
            work = self._prefill() if kind == "prefill" else self._decode()
            if work:
                self._last = kind
                return Step(kind, work)
        return None

    def _mixed(self) -> Step | None:
        """One token of each running sequence and chunks of prompts behind them."""
        decode = self._decode()
        prefill = self._prefill()
        if decode and prefill:
            return Step("mixed", decode + prefill)
        if decode or prefill:
            return Step("decode" if decode else "prefill", decode or prefill)
        return None

    def _admit(self) -> None:
        """Take sequences in while the next prefill step has room for them.

        Whoever would only wait inside the batch waits in the queue instead: there it can still find the
        prefix that somebody before it is about to compute. Who stands first in line is never overtaken.
        """
        while (sequence := self.waiting.first()) is not None and self._prefill_left(sequence.rank) > 0:
            admission = None
            if len(self.running) < self._max_batch:
                admission = self.blocks.admit(sequence, reserve=len(self.running))
            if admission is not None:
                self._enter(sequence, *admission)
            elif self.running and self.running[-1].rank > sequence.rank:
                self._preempt(self.running[-1])  # what it takes may still come from somebody less urgent
            else:
                return

    def _prefill_left(self, rank: int) -> int:
        """Tokens of the next prefill step that nobody of this priority or a higher one in the batch needs."""
        needed = sum(
            one.catch_up - one.num_computed for one in self.running if one.rank <= rank and one.in_prefill
        )
        return self._chunk_tokens - needed

    def _enter(self, sequence: Sequence, cached_tokens: int, copy: tuple[int, int] | None) -> None:
        self.waiting.remove(sequence)
        if copy is not None:
            self._listeners.copy_block(*copy)
        sequence.num_computed = cached_tokens
        sequence.catch_up = sequence.num_tokens
        if not sequence.stays:
            self.blocks.query_tokens += sequence.num_tokens
            self.blocks.hit_tokens += cached_tokens
        sequence.stays += 1
        sequence.in_batch = True
        insort(self.running, sequence, key=lambda one: one.rank)
        self._listeners.admitted(sequence, cached_tokens)

    def _leave(self, sequence: Sequence) -> None:
        sequence.in_batch = False
        self.running.remove(sequence)
        self.blocks.release(sequence)

    def _prefill(self) -> list[Work]:
        work, budget = [], self._chunk_tokens
        for sequence in self.running:
            if budget and sequence.in_prefill:
                tokens = min(budget, sequence.num_tokens - sequence.num_computed)
                work.append(Work(sequence, tokens))
                budget -= tokens
        return work

    def _decode(self) -> list[Work]:
        chosen: list[Sequence] = []
        for sequence in [sequence for sequence in self.running if not sequence.in_prefill]:
            if sequence.in_batch and self._make_room(sequence):
                chosen.append(sequence)
        if self.drafter is None or len(chosen) > self.drafter.max_batch:
            return [Work(sequence, 1) for sequence in chosen]
        limits = [self._room_for_drafts(sequence, self.drafter) for sequence in chosen]
        if not any(limits):
            return [Work(sequence, 1) for sequence in chosen]
        drafts = self.drafter.propose(chosen, limits)
        return [Work(sequence, 1, guess) for sequence, guess in zip(chosen, drafts, strict=True)]

    def _make_room(self, sequence: Sequence) -> bool:
        """A slot for the next token, if need be from the last; False when that is the sequence itself."""
        while not self.blocks.grow(sequence):
            last = self.running[-1]
            self._preempt(last)
            if last is sequence:
                return False
        return True

    def _room_for_drafts(self, sequence: Sequence, drafter: Drafter) -> int:
        """How many tokens may be guessed: never past max_tokens, and never with a block that others need."""
        left = sequence.request.max_tokens - sequence.num_output - 1  # the step gives one token more
        wanted = min(left, drafter.wanted(sequence)) if left > 0 else 0
        return self.blocks.grow_ahead(sequence, wanted, reserve=len(self.running)) if wanted > 0 else 0

    def _preempt(self, sequence: Sequence) -> None:
        self._leave(sequence)
        self.preemptions += 1
        dropped, sequence.num_computed = sequence.num_computed, 0
        self.waiting.add_first(sequence)  # with the output it has
        self._listeners.preempted(sequence, dropped)
