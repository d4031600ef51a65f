"""Speculative decoding: guess how sequences go on, and let the model check many tokens in one step.

A guess costs a few more positions in a step that is limited by reading the weights; each one that is right
saves a whole step. The check is exact (see `inference.engine.sampler`), so guesses change how fast an
answer comes and never what it is. Two ways to guess:

- **prompt lookup** continues as the text did where it had the same last tokens before. It costs nothing and
  helps where answers repeat their prompt: summaries, code, extraction, rewriting.
- **a draft model**, small and with the same tokenizer, helps with any text, and costs its own passes.

Both propose less after wrong guesses and more after right ones, and pause where nothing is right.
"""

from array import array
from dataclasses import dataclass, replace

from inference.engine import sampler
from inference.engine.device import Device
from inference.engine.loading import LoadedModel
from inference.engine.runner import Runner
from inference.engine.scheduler import Kind, Step, Work
from inference.engine.sequence import Sequence, new_sequence
from inference.errors import TargetUnavailable

LONGEST_MATCH, SHORTEST_MATCH = 4, 2  # tokens that must have occurred before
LONGEST_PAUSE_TOKENS = 32
TOKEN_BYTES = array("i").itemsize


class Adaptive:
    """How many tokens to propose: one more than were right, twice as many after a wholly right guess."""

    def __init__(self, max_tokens: int, max_batch: int) -> None:
        self.max_batch = max_batch
        self._max_tokens = max_tokens

    def wanted(self, sequence: Sequence) -> int:
        """Most tokens worth guessing for it now; 0: none."""
        state = sequence.drafting
        if len(sequence.tokens) < state.resume_at:
            return 0
        return state.size or self._max_tokens

    def learn(self, sequence: Sequence, proposed: int, right: int) -> None:
        """What became of a proposal; called before its tokens are added to the sequence."""
        state = sequence.drafting
        size = state.size or self._max_tokens
        grown = max(size, 2 * proposed) if right == proposed else right + 1
        state.size = min(self._max_tokens, grown)
        state.misses = 0 if right else state.misses + 1
        if state.misses > 1:
            pause = min(LONGEST_PAUSE_TOKENS, 2 ** (state.misses - 1))
            state.resume_at = len(sequence.tokens) + pause

    def reset(self) -> None:
        """Forget what was kept of earlier requests."""


class PromptLookup(Adaptive):
    """Continues a sequence as it went on after the latest earlier occurrence of its last tokens."""

    def propose(self, sequences: list[Sequence], limits: list[int]) -> list[tuple[int, ...]]:
        return [
            self._continue(sequence, limit) if limit else ()
            for sequence, limit in zip(sequences, limits, strict=True)
        ]

    @staticmethod
    def _continue(sequence: Sequence, limit: int) -> tuple[int, ...]:
        state, tokens = sequence.drafting, sequence.tokens
        if state.memory is None:
            state.memory = bytearray()
        text: bytearray = state.memory  # the tokens as native numbers, to be searched at memory speed
        text += array("i", tokens[len(text) // TOKEN_BYTES :]).tobytes()
        for length in range(min(LONGEST_MATCH, len(tokens) - 1), SHORTEST_MATCH - 1, -1):
            start = _last_before_end(text, length)
            if start >= 0:
                found = tokens[start + length : start + length + limit]
                while len(found) < limit:  # it reaches into its own guess: a text that repeats itself
                    found += found[: limit - len(found)]
                return tuple(found)
        return ()


def _last_before_end(text: bytearray, length: int) -> int:
    """Where the last `length` tokens occurred before, counted in tokens; -1: nowhere."""
    pattern = bytes(text[-length * TOKEN_BYTES :])
    end = len(text) - 1
    while (at := text.rfind(pattern, 0, end)) >= 0:
        if at % TOKEN_BYTES == 0:
            return at // TOKEN_BYTES
        end = at + len(pattern) - 1
    return -1


@dataclass(eq=False)
class _Shadow:
    """A sequence as the draft model has it: the same tokens and blocks, its own computed ones."""

    sequence: Sequence
    stay: int = 0  # the sequence's stay in the batch that its blocks belong to
    known: int = 0  # tokens of the target that it has; behind them are its own guesses
    marked: int = 0  # blocks of this stay that are noted as filled
    usable: bool = True


class DraftModel(Adaptive):
    """A small model that runs ahead.

    Its cache has the same blocks as the target's: block n of a sequence holds its keys and values there
    too. So there is nothing to hand out or to lose, and what a prefix shares, it shares. A block that holds
    something else than believed can only make guesses worse; the target checks every token.
    """

    def __init__(
        self,
        loaded: LoadedModel,
        runner: Runner,
        device: Device,
        *,
        block_tokens: int,
        vocabulary: int,
        chunk_tokens: int,
        max_tokens: int,
        max_batch: int,
    ) -> None:
        super().__init__(max_tokens, max_batch)
        self.loaded = loaded
        self._runner, self._device = runner, device
        self._block_tokens = block_tokens
        self._target_vocabulary = vocabulary
        self._chunk_tokens = chunk_tokens
        self.failure: str | None = None  # why it guesses no more
        self._filled: dict[int, bytes] = {}  # block → hash of the content that it holds here

    def reset(self) -> None:
        self._filled.clear()

    def propose(self, sequences: list[Sequence], limits: list[int]) -> list[tuple[int, ...]]:
        try:
            return self._propose(sequences, limits)
        except Exception as error:  # what only guesses must not end anybody's answer
            self.failure = f"{type(error).__name__}: {error}"
            self.max_batch = 0
            return [() for _ in sequences]

    def _propose(self, sequences: list[Sequence], limits: list[int]) -> list[tuple[int, ...]]:
        guesses: list[list[int]] = [[] for _ in sequences]
        ahead: list[tuple[_Shadow, int, list[int]]] = []
        budget = self._chunk_tokens  # a long prompt is caught up with over several steps
        work: list[Work] = []
        for sequence, limit, guess in zip(sequences, limits, guesses, strict=True):
            shadow = self._follow(sequence)
            room = self.loaded.max_model_tokens - len(sequence.tokens)
            behind = len(sequence.tokens) - shadow.sequence.num_computed
            tokens = min(budget, behind)
            if not shadow.usable or min(limit, room) <= 0 or tokens <= 0:
                continue
            budget -= tokens
            work.append(Work(shadow.sequence, tokens))
            if tokens == behind:
                ahead.append((shadow, min(limit, room), guess))
        while work:
            chosen = self._run(work)
            work = []
            still: list[tuple[_Shadow, int, list[int]]] = []
            for shadow, limit, guess in ahead:
                token_id = chosen[shadow.sequence]
                if token_id is None or token_id >= self._target_vocabulary:
                    continue
                guess.append(token_id)
                shadow.sequence.tokens.append(token_id)
                if len(guess) < limit:
                    still.append((shadow, limit, guess))
                    work.append(Work(shadow.sequence, 1))
            ahead = still
        return [tuple(guess) for guess in guesses]

    def _follow(self, sequence: Sequence) -> _Shadow:
        """The shadow with the target's tokens in place of the guesses that were wrong."""
        shadow: _Shadow | None = sequence.drafting.memory
        if shadow is None:
            shadow = sequence.drafting.memory = self._new_shadow(sequence)
        own = shadow.sequence
        new = sequence.tokens[shadow.known :]
        guessed = own.tokens[shadow.known :]
        right = next((n for n, (a, b) in enumerate(zip(new, guessed, strict=False)) if a != b), None)
        right = min(len(new), len(guessed)) if right is None else right
        own.num_computed = min(own.num_computed, shadow.known + right)
        own.tokens[shadow.known :] = new
        if new and max(new) >= self.loaded.vocabulary:
            shadow.usable = False
        shadow.known = len(own.tokens)
        if shadow.stay != sequence.stays:  # it has other blocks now
            shadow.stay, shadow.marked = sequence.stays, 0
            own.num_computed = self._found(sequence)
        own.blocks = sequence.blocks
        full = min(own.num_computed // self._block_tokens, len(sequence.block_hashes))
        for index in range(shadow.marked, full):
            self._filled[sequence.blocks[index]] = sequence.block_hashes[index]
        shadow.marked = max(shadow.marked, full)
        return shadow

    def _new_shadow(self, sequence: Sequence) -> _Shadow:
        """Penalties are left to the target: they cost here as much as there and change few guesses."""
        request = replace(
            sequence.request,
            logprobs=None,
            repetition_penalty=1.0,
            presence_penalty=0.0,
            frequency_penalty=0.0,
        )
        own = new_sequence(
            sequence.handle,
            request,
            [],
            sequence.detokeniser,
            end_ids=sequence.suppressed_ids,
            seed=sequence.seed,  # the same numbers decide here and there, so likely tokens meet
            queued_ns=sequence.queued_ns,
        )
        own.prompt_length = sequence.prompt_length
        return _Shadow(own)

    def _found(self, sequence: Sequence) -> int:
        """Tokens whose blocks this model has computed already, for this sequence or another."""
        found = 0
        for block, digest in zip(sequence.blocks, sequence.block_hashes, strict=False):
            if self._filled.get(block) != digest:
                break
            found += self._block_tokens
        return min(found, len(sequence.tokens) - 1)

    def _run(self, work: list[Work]) -> dict[Sequence, int | None]:
        for part in work:
            own, size = part.sequence, self._block_tokens
            for index in range(own.num_computed // size, -(-(own.num_computed + part.tokens) // size)):
                self._filled.pop(own.blocks[index], None)
        kind: Kind = "decode" if all(part.tokens == 1 for part in work) else "prefill"
        logits = self._runner.run(Step(kind, work))
        choices = sampler.choose(logits, work, self._device)
        chosen: dict[Sequence, int | None] = {}
        for part, choice in zip(work, choices, strict=True):
            part.sequence.num_computed += part.tokens
            chosen[part.sequence] = choice.tokens[0] if choice is not None and choice.tokens else None
        return chosen


def check_draft(target: LoadedModel, draft: LoadedModel) -> None:
    """Raise TargetUnavailable unless both models mean the same tokens by the same ids."""
    own, other = target.tokenizer.get_vocab(), draft.tokenizer.get_vocab()
    if own != other:
        different = sum(own.get(token) != token_id for token, token_id in other.items())
        different += sum(token not in other for token in own)
        raise TargetUnavailable(
            f"{draft.name} cannot draft for {target.name}: their tokenizers differ in {different} tokens."
        )
    if target.end_ids != draft.end_ids and not target.end_ids & draft.end_ids:
        raise TargetUnavailable(
            f"{draft.name} cannot draft for {target.name}: their answers end with different tokens."
        )
