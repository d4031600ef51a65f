"""Follows one request of the embedded engine: sends it, and turns the engine's events into its trace."""

import asyncio
import contextlib
import time
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from inference.engine.events import Event
from inference.engine.host import EngineHost
from inference.errors import TargetUnavailable
from inference.records import Trace
from inference.requests import GenerationRequest

BUSY_STATUS = 503


class Follower:
    """Follows one request from its submission to its end and fills its trace."""

    def __init__(
        self,
        host: EngineHost,
        handle: int,
        request: GenerationRequest,
        trace: Trace,
        on_read: Callable[[], None] | None,
    ) -> None:
        self._host, self._handle = host, handle
        self._request, self._trace, self._on_read = request, trace, on_read
        self._abort_sent = False
        self._over = False
        self._text: list[str] = []

    def submit(self) -> None:
        submit = ["submit", self._handle, wire(self._request)]
        cancel = self._request.cancel
        try:
            if cancel is not None and cancel.phase == "queue":
                self._abort_sent = True  # one frame: the engine sees the departure before it can admit
                self._host.send(submit, ["abort", self._handle])
            else:
                self._host.send(submit)
        except TargetUnavailable as error:
            fail(self._trace, str(error))
            self._over = True

    def abort(self) -> None:
        if self._abort_sent or self._over:
            return
        self._abort_sent = True
        with contextlib.suppress(TargetUnavailable):  # its death is told to the follower as an event
            self._host.send(["abort", self._handle])

    async def follow(self, batches: asyncio.Queue[tuple[int, list[Event]]]) -> None:
        while not self._over:
            read_ns, events = await batches.get()
            tokens = self._take(read_ns, events)
            if tokens:
                self._trace.reads.append((read_ns, tokens))
            self._trace.text = "".join(self._text)
            if self._on_read is not None:
                self._on_read()
        self._trace.closed_ns = time.monotonic_ns()

    def _take(self, read_ns: int, events: list[Event]) -> int:
        """Enter the events of one read into the trace; the number of tokens in it."""
        tokens = 0
        for event in events:
            tokens += event[0] == "token"
            self._enter(read_ns, event)
        return tokens

    def _enter(self, read_ns: int, event: Event) -> None:
        trace, (kind, _, ns, *rest) = self._trace, event
        match kind:
            case "queued":
                trace.queued_ns = trace.queued_ns or ns  # it may have waited for a model before
                trace.input_tokens = rest[0]
                trace.output_tokens, trace.token_ids = 0, []
            case "admitted":
                if not trace.admitted_ns:
                    trace.cached_tokens = rest[0]
                trace.admitted_ns.append(ns)
            case "chunk" | "step":
                self._work(event)
            case "token":
                self._token(read_ns, event)
            case "preempted":
                trace.preempted_ns.append(ns)
            case "finished":
                trace.finished_ns, trace.finish_reason, trace.ended = ns, rest[0], "orderly"
                self._show(read_ns, rest[1])
            case "aborted":
                trace.aborted_ns, trace.ended = ns, "client"
            case "failed":
                if trace.finished_ns is None and trace.aborted_ns is None:
                    fail(trace, rest[0], ns)
                self._over = True
            case "rejected":
                refuse(trace, rest[0], ns, busy=rest[1])
                self._over = True
            case "freed":
                trace.freed_ns = ns
                self._over = True

    def _work(self, event: Event) -> None:
        """A chunk of the prompt, or the whole of a step that computed prompts and answers at once."""
        trace, (kind, _, ns, start_ns, *rest) = self._trace, event
        if kind == "step":
            _, prefill_tokens, _, decode_tokens = rest
            trace.mixed_steps.append((start_ns, ns, prefill_tokens, decode_tokens))
            return
        tokens, again = rest
        trace.chunks.append((start_ns, ns, tokens))
        trace.recomputed_tokens += tokens if again else 0

    def _token(self, read_ns: int, event: Event) -> None:
        trace, (_, _, ns, start_ns, token_id, text, *logprobs) = self._trace, event
        assert trace.token_ids is not None
        trace.token_ns.append(ns)
        trace.token_ids.append(token_id)
        trace.output_tokens = len(trace.token_ids)
        if logprobs:
            trace.logprobs.append([(one, logprob, spelt) for one, logprob, spelt in logprobs[0]])
        in_prefill = trace.chunks and trace.chunks[-1][1] == ns  # the token came with its last prefill chunk
        if not in_prefill and (not trace.decode_steps or trace.decode_steps[-1][1] != ns):
            trace.decode_steps.append((start_ns, ns))  # a step with right drafts gives several tokens
        self._show(read_ns, text)

    def _show(self, read_ns: int, text: str) -> None:
        if not text:
            return
        self._text.append(text)
        if self._trace.first_visible_ns is None:
            self._trace.first_visible_ns = self._trace.first_answer_ns = read_ns


def fail(trace: Trace, reason: str, ns: int | None = None) -> None:
    """The request was cut off."""
    trace.error, trace.ended = reason, "cut"
    trace.failed_ns = ns if ns is not None else time.monotonic_ns()


def refuse(trace: Trace, reason: str, ns: int, *, busy: bool) -> None:
    """The request was never accepted: it can never be served, or (`busy`) not now."""
    trace.error, trace.ended, trace.failed_ns, trace.queued_ns = reason, "refused", ns, None
    trace.status = BUSY_STATUS if busy else None


def wire(request: GenerationRequest) -> dict[str, Any]:
    """What the engine needs of a request, without what concerns only the client."""
    fields = asdict(request)
    for name in ("arrival_s", "tenant", "application", "follows", "think_s"):
        del fields[name]
    return fields
