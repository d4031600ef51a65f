"""Who computes how much in the next step, by one rule: computed tokens catch up with known tokens.

There is no prefill or decode phase inside: chunked prefill, prefix hits, preemption and recomputation all
are sequences whose `num_computed` is behind `num_tokens`. On CPU a step is phase-pure all the same (chunks
of prompts, or one token of each running sequence), so that its time belongs to one phase; where both have
work, they take turns, so that neither a long prompt nor a full batch holds up the other for long.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from inference.engine.kv import BlockManager
from inference.engine.sequence import Sequence

Kind = Literal["prefill", "decode"]


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
        return self.sequence.num_computed + self.tokens == self.sequence.num_tokens

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


@dataclass(kw_only=True)
class Listeners:
    """What the engine wants to know while the schedule is made."""

    admitted: Callable[[Sequence, int], None]  # with the tokens found in the cache
    preempted: Callable[[Sequence, int], None]  # with the tokens that must be computed again
    copy_block: Callable[[int, int], None]


class Scheduler:
    """Keeps the waiting list and the batch; admits in order, preempts the youngest."""

    def __init__(
        self, blocks: BlockManager, listeners: Listeners, *, max_batch: int, prefill_chunk_tokens: int
    ) -> None:
        self.blocks = blocks
        self.waiting: deque[Sequence] = deque()
        self.running: list[Sequence] = []  # in the order of admission: the last is the youngest
        self.preemptions = 0
        self._listeners = listeners
        self._max_batch = max_batch
        self._chunk_tokens = prefill_chunk_tokens
        self._last: Kind = "decode"

    def add(self, sequence: Sequence) -> None:
        self.waiting.append(sequence)

    def remove(self, sequence: Sequence) -> None:
        """Take a sequence out, wherever it is, and its blocks back."""
        if sequence in self.running:
            self.running.remove(sequence)
        else:
            self.waiting.remove(sequence)
        self.blocks.release(sequence)

    def schedule(self) -> Step | None:
        """The next step, or None when there is nothing to do."""
        self._admit()
        prefill_first = self._last == "decode"
        for kind in ("prefill", "decode") if prefill_first else ("decode", "prefill"):
            work = self._prefill() if kind == "prefill" else self._decode()
            if work:
                self._last = kind
                return Step(kind, work)
        return None

    def _admit(self) -> None:
        """Take sequences in while the next prefill step has room for them.

        Whoever would only wait inside the batch waits in the queue instead: there it can still find the
        prefix that somebody before it is about to compute.
        """
        while self.waiting and len(self.running) < self._max_batch and self._prefill_left() > 0:
            sequence = self.waiting[0]
            admission = self.blocks.admit(sequence, reserve=len(self.running))
            if admission is None:
                return  # in order: nobody overtakes the first in line
            self.waiting.popleft()
            cached_tokens, copy = admission
            if copy is not None:
                self._listeners.copy_block(*copy)
            sequence.num_computed = cached_tokens
            sequence.catch_up = sequence.num_tokens
            if not sequence.was_admitted:
                self.blocks.query_tokens += sequence.num_tokens
                self.blocks.hit_tokens += cached_tokens
                sequence.was_admitted = True
            self.running.append(sequence)
            self._listeners.admitted(sequence, cached_tokens)

    def _prefill_left(self) -> int:
        """Tokens of the next prefill step that nobody in the batch needs."""
        needed = sum(one.catch_up - one.num_computed for one in self.running if one.in_prefill)
        return self._chunk_tokens - needed

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
            if sequence in self.running and self._make_room(sequence):
                chosen.append(sequence)
        return [Work(sequence, 1) for sequence in chosen]

    def _make_room(self, sequence: Sequence) -> bool:
        """A slot for the next token, if need be from the youngest; False when that is the sequence itself."""
        while not self.blocks.grow(sequence):
            youngest = self.running[-1]
            self._preempt(youngest)
            if youngest is sequence:
                return False
        return True

    def _preempt(self, sequence: Sequence) -> None:
        self.running.remove(sequence)
        self.blocks.release(sequence)
        self.preemptions += 1
        dropped, sequence.num_computed = sequence.num_computed, 0
        self.waiting.appendleft(sequence)  # before all others, with the output it has
        self._listeners.preempted(sequence, dropped)
