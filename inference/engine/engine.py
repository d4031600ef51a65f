"""The engine: requests in, events out, and between them steps of schedule → run → postprocess."""

import os
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import torch

from inference.engine import events, sampler
from inference.engine.admission import Admission, encode
from inference.engine.cpu import CpuAttention
from inference.engine.detokenise import Detokeniser
from inference.engine.events import Event
from inference.engine.kv import BlockManager, KVPool, bytes_per_token
from inference.engine.loading import LoadedModel, use_paged_attention
from inference.engine.memory import available_bytes, pool_bytes
from inference.engine.options import EngineOptions
from inference.engine.probe import probe
from inference.engine.runner import ModelRunner
from inference.engine.scheduler import Listeners, Scheduler, Step
from inference.engine.sequence import Sequence
from inference.engine.stages import timed
from inference.errors import RequestRejected, TargetUnavailable
from inference.requests import GenerationRequest

Emit = Callable[[list[Event]], None]


class Engine:
    """Continuous batching over one model.

    `submit` and `abort` may be called from any thread at any time; `step` from one thread only. Events of
    all requests go to `emit`, in order, from whichever thread they happen in.
    """

    def __init__(self, loaded: LoadedModel, options: EngineOptions, emit: Emit) -> None:
        self.loaded = loaded
        self.options = options
        self.statistics = Statistics()
        self._emit = emit
        self._pending: list[Event] = []  # events of the running step
        self._inbox: deque[tuple[str, Any]] = deque()
        self._changed = threading.Condition()  # guards the inbox
        self._sequences: dict[int, Sequence] = {}  # what the step thread knows, by handle
        self.pool = KVPool(options.block_tokens)
        self.runner = ModelRunner(loaded.model, self.pool, CpuAttention())
        self.load_ms: dict[str, float] = {}
        with timed(self.load_ms, "allocate"):
            self._allocate()
            use_paged_attention(loaded.model, options.model_path)
        with timed(self.load_ms, "probe"):
            probe(loaded, self.runner, options.model_path)
        self.blocks = BlockManager(self.pool.blocks, options.block_tokens, prefix_cache=options.prefix_cache)
        self.scheduler = Scheduler(
            self.blocks,
            Listeners(admitted=self._admitted, preempted=self._preempted, copy_block=self.pool.copy_block),
            max_batch=options.max_batch,
            prefill_chunk_tokens=options.prefill_chunk_tokens,
        )
        self.admission = Admission(
            vocabulary=loaded.vocabulary,
            max_model_tokens=loaded.max_model_tokens,
            pool_tokens=self.pool.blocks * options.block_tokens,
            max_open=options.max_batch + options.max_waiting,
        )

    def _allocate(self) -> None:
        options = self.options
        try:
            shapes = self.runner.shapes()
        except Exception as error:
            raise TargetUnavailable(
                f"{self.loaded.architecture} in {options.path} cannot run on the paged cache: {error}."
            ) from error
        block_bytes = bytes_per_token(shapes, self.loaded.dtype) * options.block_tokens
        if block_bytes == 0:
            raise TargetUnavailable(
                f"{self.loaded.architecture} in {options.path} has no attention to cache."
            )
        blocks = options.kv_blocks
        if blocks is None:
            affordable = pool_bytes() // block_bytes
            useful = options.max_batch * -(-self.loaded.max_model_tokens // options.block_tokens)
            blocks = max(1, min(affordable, useful))
        elif blocks * block_bytes > available_bytes():
            raise TargetUnavailable(
                f"{blocks} KV blocks need {blocks * block_bytes / 2**20:.0f} MiB, "
                f"but only {available_bytes() / 2**20:.0f} MiB of memory are free."
            )
        self.pool.allocate(blocks, shapes, self.loaded.dtype)

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
        sequence = Sequence(
            handle=handle,
            request=request,
            tokens=tokens,
            prompt_length=len(tokens),
            detokeniser=Detokeniser(self.loaded.decode, request.stop, self.loaded.byte_ids),
            generator=_generator(request),
            queued_ns=time.monotonic_ns(),
        )
        self._emit([events.queued(handle, sequence.queued_ns, len(tokens))])
        self._put("submit", sequence)

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
        try:
            logits = self.runner.run(step)
            chosen = self._sample(step, logits)
        except Exception as error:  # a step that breaks ends its requests, not the engine
            self._fail(step, f"The step failed: {type(error).__name__}: {error}.")
        else:
            self._postprocess(step, chosen, start_ns)
        self.statistics.ended(step, time.monotonic_ns() - start_ns)
        self._flush()
        return True

    def _sample(self, step: Step, logits: torch.Tensor) -> dict[Sequence, int | None]:
        sequences = [work.sequence for work in step.work if work.completes]
        with torch.inference_mode():
            ids = sampler.sample(logits, sequences, self.loaded.end_ids)
        return dict(zip(sequences, ids, strict=True))

    def _postprocess(self, step: Step, chosen: dict[Sequence, int | None], start_ns: int) -> None:
        end_ns = time.monotonic_ns()
        self._take_inbox()  # whoever left during the step gets nothing more
        for work in step.work:
            sequence = work.sequence
            if sequence.over:
                continue
            before = sequence.num_computed
            sequence.num_computed += work.tokens
            self.blocks.register(sequence)
            if step.kind == "prefill":
                again = max(0, min(sequence.high_water, sequence.num_computed) - before)
                self._chunks(sequence, start_ns, end_ns, work.tokens - again, again)
            sequence.high_water = max(sequence.high_water, sequence.num_computed)
            if sequence not in chosen:
                continue
            token_id = chosen[sequence]
            if token_id is None:
                self._end(sequence, events.failed, "The model computed logits that are not numbers.")
            else:
                self._append(sequence, token_id, start_ns, end_ns)

    def _chunks(self, sequence: Sequence, start_ns: int, end_ns: int, new: int, again: int) -> None:
        for tokens, repeated in ((again, True), (new, False)):
            if tokens:
                self._pending.append(events.chunk(sequence.handle, start_ns, end_ns, tokens, again=repeated))

    def _append(self, sequence: Sequence, token_id: int, start_ns: int, end_ns: int) -> None:
        """Take one sampled token in; ends the sequence where its request says so."""
        request = sequence.request
        sequence.tokens.append(token_id)
        is_end = token_id in self.loaded.end_ids and not request.ignore_eos
        may_stop = sequence.num_output >= request.min_tokens
        text = "" if is_end else sequence.detokeniser.add(token_id, may_stop=may_stop)
        self._pending.append(events.token(sequence.handle, start_ns, end_ns, token_id, text))
        if is_end or sequence.detokeniser.stopped:
            self._end(sequence, events.finished, "stop", sequence.detokeniser.flush())
        elif sequence.num_output >= request.max_tokens:
            self._end(sequence, events.finished, "length", sequence.detokeniser.flush())

    # -- ends -----------------------------------------------------------------------------------------

    def _end(self, sequence: Sequence, event: Callable[..., Event], *rest: Any) -> None:
        """The one way out: a terminal event, the blocks back, and the stamp of that."""
        sequence.over = True
        self._pending.append(event(sequence.handle, time.monotonic_ns(), *rest))
        self.scheduler.remove(sequence)
        del self._sequences[sequence.handle]
        self.admission.leave(sequence.request)
        self._pending.append(events.freed(sequence.handle, time.monotonic_ns()))

    def _fail(self, step: Step, reason: str) -> None:
        for work in step.work:
            self._end(work.sequence, events.failed, reason)

    def _take_inbox(self) -> None:
        while True:
            with self._changed:
                if not self._inbox:
                    return
                kind, value = self._inbox.popleft()
            if kind == "submit":
                self._sequences[value.handle] = value
                self.scheduler.add(value)
            elif kind == "abort":
                if (sequence := self._sequences.get(value)) is not None:
                    self.statistics.aborted += 1
                    self._end(sequence, events.aborted)
            else:
                self.blocks.reset_cache()
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


class Statistics:
    """Counters of the steps; read by telemetry from another thread, each value by itself."""

    def __init__(self) -> None:
        self.aborted = 0
        self.steps = {"prefill": 0, "decode": 0}
        self.tokens = {"prefill": 0, "decode": 0}
        self.busy_ns = {"prefill": 0, "decode": 0}
        self.current: Step | None = None
        self.running_since_ns: int | None = None

    def started(self, step: Step, start_ns: int) -> None:
        self.current, self.running_since_ns = step, start_ns

    def ended(self, step: Step, took_ns: int) -> None:
        self.current = self.running_since_ns = None
        self.steps[step.kind] += 1
        self.tokens[step.kind] += step.tokens
        self.busy_ns[step.kind] += took_ns


def _generator(request: GenerationRequest) -> torch.Generator | None:
    """Each request draws from its own generator, so that no neighbour shifts its numbers."""
    if sampler.is_greedy(request.temperature):
        return None
    seed = request.seed if request.seed is not None else int.from_bytes(os.urandom(8), "little")
    return torch.Generator().manual_seed(seed % 2**63)
