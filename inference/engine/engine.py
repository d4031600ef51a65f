"""The engine: requests in, events out, and between them steps of schedule → run → postprocess."""

import os
import threading
import time
import traceback
from collections import deque
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from inference.engine import events, sampler
from inference.engine.admission import Admission, encode
from inference.engine.assembly import assemble
from inference.engine.detokenise import ByteJoiner, Detokeniser, WindowJoiner
from inference.engine.device import Device, DeviceLost, Stamps, choose
from inference.engine.events import Event
from inference.engine.kv import BlockManager
from inference.engine.loading import LoadedModel
from inference.engine.options import EngineOptions
from inference.engine.sampler import Choice
from inference.engine.scheduler import Drafter, Listeners, Scheduler, Step, Work
from inference.engine.sequence import Sequence, new_sequence
from inference.engine.speculation import DraftModel, PromptLookup, check_draft
from inference.engine.statistics import Statistics
from inference.engine.token_bytes import TokenBytes
from inference.errors import RequestRejected
from inference.requests import GenerationRequest, Phase

Emit = Callable[[list[Event]], None]


class Engine:
    """Continuous batching over one model, with a draft model beside it where the options name one.

    `submit` and `abort` may be called from any thread at any time; `step` from one thread only. Events of
    all requests go to `emit`, in order, from whichever thread they happen in.
    """

    def __init__(
        self,
        loaded: LoadedModel,
        options: EngineOptions,
        emit: Emit,
        *,
        draft: LoadedModel | None = None,
        device: Device | None = None,
    ) -> None:
        self.loaded = loaded
        self.options = options
        self.statistics = Statistics()
        self.load_ms: dict[str, float] = {}
        self.device = device or choose(options.device)
        self._emit = emit
        self._pending: list[Event] = []  # events of the running step
        self._inbox: deque[tuple[str, Any]] = deque()
        self._changed = threading.Condition()  # guards the inbox
        self._sequences: dict[int, Sequence] = {}  # what the step thread knows, by handle
        self._token_bytes = TokenBytes(loaded.tokenizer)
        models = [(loaded, options.model_path)]
        if draft is not None:
            check_draft(loaded, draft)
            models.append((draft, Path(options.draft_path or draft.name)))
        target, *drafts = assemble(models, options, self.load_ms, self.device)
        self.pool, self.runner, self.kernels = target.pool, target.runner, target.kernels
        self.draft = drafts[0] if drafts else None
        self.blocks = BlockManager(self.pool.blocks, options.block_tokens, prefix_cache=options.prefix_cache)
        self.drafter = self._drafter()
        self.scheduler = Scheduler(
            self.blocks,
            Listeners(admitted=self._admitted, preempted=self._preempted, copy_block=self.pool.copy_block),
            max_batch=options.max_batch,
            prefill_chunk_tokens=options.prefill_chunk_tokens,
            phase_pure=self.device.phase_pure,
            drafter=self.drafter,
        )
        self.admission = Admission(
            vocabulary=loaded.vocabulary,
            max_model_tokens=loaded.max_model_tokens,
            pool_tokens=self.pool.blocks * options.block_tokens,
            max_open=options.max_batch + options.max_waiting,
        )

    def _drafter(self) -> Drafter | None:
        options = self.options
        if self.draft is not None:
            return DraftModel(
                self.draft.loaded,
                self.draft.runner,
                self.device,
                block_tokens=options.block_tokens,
                vocabulary=self.loaded.vocabulary,
                chunk_tokens=options.prefill_chunk_tokens,
                max_tokens=options.speculate_tokens,
                max_batch=options.speculate_max_batch,
            )
        if options.speculate is not None:
            return PromptLookup(options.speculate_tokens, options.speculate_max_batch)
        return None

    def release_plain_weights(self) -> None:
        """Keep only the weights that steps are computed with, where the model is needed for nothing else."""
        self.runner.release_plain_weights()
        if self.draft is not None:
            self.draft.runner.release_plain_weights()

    # -- from any thread ------------------------------------------------------------------------------

    def submit(self, handle: int, request: GenerationRequest) -> None:
        """Accept or reject a request at once, while a step may be running."""
        try:
            tokens = encode(self.loaded, request)
            self.admission.enter(request, len(tokens), tokens)
        except RequestRejected as error:
            busy = self.admission.is_busy(error)
            self._emit([events.rejected(handle, time.monotonic_ns(), str(error), busy=busy)])
            return
        sequence = new_sequence(
            handle,
            request,
            tokens,
            self._detokeniser(request),
            end_ids=self.loaded.end_ids,
            seed=_seed(request),
            queued_ns=time.monotonic_ns(),
        )
        self._emit([events.queued(handle, sequence.queued_ns, len(tokens))])
        self._put("submit", sequence)

    def _detokeniser(self, request: GenerationRequest) -> Detokeniser:
        if self._token_bytes.joined:
            return Detokeniser(ByteJoiner(self._token_bytes), request.stop)
        return Detokeniser(WindowJoiner(self.loaded.decode, self.loaded.byte_ids), request.stop)

    def abort(self, handle: int) -> None:
        """The client has left: blocks are free within one step; unknown handles are over already."""
        self._put("abort", handle)

    def together(self) -> AbstractContextManager[object]:
        """Inside it, what is submitted and aborted reaches the step as one piece."""
        return self._changed

    def reset_prefix_cache(self) -> None:
        done = threading.Event()
        self._put("reset", done)
        done.wait(self.options.step_limit_s)

    def wait_for_work(self, timeout_s: float | None = None) -> None:
        with self._changed:
            self._changed.wait_for(lambda: bool(self._inbox), timeout_s)

    def _put(self, kind: str, value: Any) -> None:
        with self._changed:
            self._inbox.append((kind, value))
            self._changed.notify()

    # -- the step -------------------------------------------------------------------------------------

    def step(self) -> bool:
        """One step of the batch; False when there was nothing to do."""
        self._take_inbox()
        start_ns = time.monotonic_ns()
        step = self.scheduler.schedule()
        self._flush()  # the client learns of its admission now, not when the step is over
        if step is None:
            return False
        self.statistics.started(step, start_ns)
        self.device.begin(start_ns)
        try:
            choices = sampler.choose(self.runner.run(step), step.work, self.device)
            stamps = self.device.finish()
        except Exception as error:  # a step that breaks ends its requests, not the engine
            self._break(step, error)
        else:
            self._postprocess(step, choices, stamps)
        self.statistics.ended(step, time.monotonic_ns() - start_ns)
        self._flush()
        return True

    def _postprocess(self, step: Step, choices: list[Choice | None], stamps: Stamps) -> None:
        self.statistics.computed(step, stamps.device_ns)
        self._take_inbox()  # whoever left during the step gets nothing more
        parts = step.composition if step.kind == "mixed" else None
        for work, choice in zip(step.work, choices, strict=True):
            sequence = work.sequence
            if sequence.over:
                continue
            if parts is not None:
                self._pending.append(events.step(sequence.handle, stamps.start_ns, stamps.end_ns, *parts))
            if sequence.in_prefill:
                self._chunks(work, stamps)
                if _leaves_in(sequence, "prefill"):
                    self._abort(sequence)
                    continue
            if choice is None:  # nothing of it is offered to others: its cache may be no numbers either
                self._end(sequence, events.failed, "The model computed logits that are not numbers.")
                continue
            if work.drafts:
                self._learn(work, choice)
            try:
                self._advance(work, choice, stamps)
            except Exception as error:  # a tokenizer may fail on what a model says: that ends one answer
                reason = f"The answer could not be decoded: {type(error).__name__}: {error}."
                self._end(sequence, events.failed, reason)

    def _chunks(self, work: Work, stamps: Stamps) -> None:
        """Tell of prefilled tokens, those that had been computed before a preemption apart."""
        sequence = work.sequence
        again = min(work.tokens, max(0, sequence.high_water - sequence.num_computed))
        for tokens, repeated in ((again, True), (work.tokens - again, False)):
            if tokens:
                event = events.chunk(sequence.handle, stamps.start_ns, stamps.end_ns, tokens, again=repeated)
                self._pending.append(event)

    def _learn(self, work: Work, choice: Choice) -> None:
        proposed, right = len(work.drafts), len(choice.tokens) - 1
        self.statistics.drafted += proposed
        self.statistics.accepted += right
        if self.drafter is not None:
            self.drafter.learn(work.sequence, proposed, right)

    def _advance(self, work: Work, choice: Choice, stamps: Stamps) -> None:
        """What was computed is computed, and the chosen tokens follow, up to the end of the answer."""
        sequence = work.sequence
        sequence.num_computed += work.tokens
        self.blocks.register(sequence)
        for place, token_id in enumerate(choice.tokens):
            if place:  # the token before was a right draft: it is computed too
                sequence.num_computed += 1
                self.blocks.register(sequence)
            told = None if choice.logprobs is None else choice.logprobs[place]
            self._append(sequence, token_id, told, stamps)
            if sequence.over:
                return
        sequence.high_water = max(sequence.high_water, sequence.num_computed)

    def _append(
        self, sequence: Sequence, token_id: int, told: list[tuple[int, float]] | None, stamps: Stamps
    ) -> None:
        """Take one chosen token in; ends the sequence where its request says so."""
        request, detokeniser = sequence.request, sequence.detokeniser
        sequence.tokens.append(token_id)
        output = len(sequence.tokens) - sequence.prompt_length
        is_end = token_id in sequence.end_ids
        text = "" if is_end else detokeniser.add(token_id, output >= request.min_tokens)
        event = events.token(sequence.handle, stamps.start_ns, stamps.end_ns, token_id, text)
        if told is not None:
            event.append([[one, logprob, self._token_bytes.of(one)] for one, logprob in told])
        self._pending.append(event)
        if is_end or detokeniser.stopped or output >= request.max_tokens:
            rest = detokeniser.flush()
            reason = "stop" if is_end or detokeniser.stopped else "length"
            self._end(sequence, events.finished, reason, rest)
        elif _leaves_in(sequence, "decode", output):
            self._abort(sequence)

    # -- ends -----------------------------------------------------------------------------------------

    def _end(self, sequence: Sequence, event: Callable[..., Event], *rest: Any) -> None:
        """The one way out: a terminal event, the blocks back, and the stamp of that."""
        sequence.over = True
        self._pending.append(event(sequence.handle, time.monotonic_ns(), *rest))
        self.scheduler.remove(sequence)
        del self._sequences[sequence.handle]
        self.admission.leave(sequence.request)
        self._pending.append(events.freed(sequence.handle, time.monotonic_ns()))

    def _abort(self, sequence: Sequence) -> None:
        self.statistics.aborted += 1
        self._end(sequence, events.aborted)

    def _break(self, step: Step, error: Exception) -> None:
        """End the requests of a step that raised; raises DeviceLost where no other step can be computed."""
        reason = self.device.shortage(error) or f"The step failed: {type(error).__name__}: {error}."
        for work in step.work:
            self._end(work.sequence, events.failed, reason)
        if self.device.broken(error):
            self._flush()
            raise DeviceLost(reason) from error
        traceback.clear_frames(error.__traceback__)  # they hold what the step had computed
        self.device.release()

    def _take_inbox(self) -> None:
        while self._inbox:
            with self._changed:
                kind, value = self._inbox.popleft()
            if kind == "submit":
                self._sequences[value.handle] = value
                self.scheduler.add(value)
            elif kind == "abort":
                if (sequence := self._sequences.get(value)) is not None:
                    self._abort(sequence)
            else:
                self.blocks.reset_cache()
                if self.drafter is not None:
                    self.drafter.reset()
                value.set()

    def _admitted(self, sequence: Sequence, cached_tokens: int) -> None:
        self._pending.append(events.admitted(sequence.handle, time.monotonic_ns(), cached_tokens))

    def _preempted(self, sequence: Sequence, tokens: int) -> None:
        self._pending.append(events.preempted(sequence.handle, time.monotonic_ns(), tokens))

    def _flush(self) -> None:
        if self._pending:
            pending, self._pending = self._pending, []
            self._emit(pending)

    # -- state ----------------------------------------------------------------------------------------

    def check_idle(self) -> None:
        """Raise AssertionError when an idle engine still holds anything."""
        left = [*self._sequences.values(), *self.scheduler.running, *self.scheduler.waiting]
        assert not left, f"{len(left)} sequences are still there"
        assert self.blocks.held == 0, f"{self.blocks.held} blocks are lost"
        self.blocks.check()


def _leaves_in(sequence: Sequence, phase: Phase, output_tokens: int = 0) -> bool:
    """Whether its client is to leave here: told beforehand, so that a fast model cannot be ahead of it."""
    rule = sequence.request.cancel
    return rule is not None and rule.phase == phase and output_tokens >= rule.after_tokens


def _seed(request: GenerationRequest) -> int | None:
    """What decides the request's draws and nobody else's; None where nothing is drawn."""
    if sampler.is_greedy(request.temperature):
        return None
    return request.seed if request.seed is not None else int.from_bytes(os.urandom(8), "little")
