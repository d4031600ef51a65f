"""The embedded engine as a target: requests go to the engine process, its events become the trace."""

import asyncio
import contextlib
import time
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from inference.engine.events import ENDS, Event
from inference.engine.host import EngineHost
from inference.engine.options import EngineOptions
from inference.errors import TargetUnavailable
from inference.records import Trace
from inference.requests import GenerationRequest
from inference.targets.base import TargetInfo

ABORT_WAIT_S = 10.0  # an abort takes at most one step; a mute engine does not hold the caller longer
BUSY_STATUS = 503

# digests of weight files already hashed by this process: path, size and time of change → digest
_digests: dict[tuple[str, int, int], str] = {}


class EngineTarget:
    """A model folder (safetensors) or `.gguf` file, served by the embedded engine in its own process.

    One target serves any number of runs, one after another or at once, from any event loop. `open` on an
    open target is free; after the engine process has died it starts a new one. Raises InputError for
    settings out of range, before anything is started.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        dtype: str = "auto",
        max_batch: int = 32,
        kv_blocks: int | None = None,
        threads: int | None = None,
        prefix_cache: bool = True,
        block_tokens: int = 32,
        prefill_chunk_tokens: int = 256,
        max_waiting: int = 4096,
        step_limit_s: float = 180.0,
    ) -> None:
        self.options = EngineOptions(
            path=str(Path(path).expanduser()),
            dtype=dtype,
            max_batch=max_batch,
            kv_blocks=kv_blocks,
            block_tokens=block_tokens,
            prefill_chunk_tokens=prefill_chunk_tokens,
            threads=threads,
            prefix_cache=prefix_cache,
            max_waiting=max_waiting,
            step_limit_s=step_limit_s,
        )
        self._host: EngineHost | None = None
        self._info: TargetInfo | None = None

    # -- life ---------------------------------------------------------------------------------------

    async def open(self) -> TargetInfo:
        """Load the model, or say at once what the loaded one is; raises TargetUnavailable."""
        if self._host is not None and self._host.alive and self._info is not None:
            return self._info
        await self.close()
        self._host, self._info = await _start(self.options)
        return self._info

    async def switch(self, path: str | Path, **settings: Any) -> TargetInfo:
        """Load another model and close the old process once its open requests have ended.

        When the new model cannot be loaded, TargetUnavailable is raised and the old one goes on answering.
        """
        options = replace(self.options, path=str(path), **settings)
        host, info = await _start(options)
        old, self._host, self._info, self.options = self._host, host, info, options
        if old is not None:
            await asyncio.to_thread(old.close_when_idle)
        return info

    async def close(self) -> None:
        host, self._host, self._info = self._host, None, None
        if host is not None:
            await asyncio.to_thread(host.close)

    @property
    def process_id(self) -> int | None:
        """The engine process, for whoever measures its memory from outside."""
        return self._host.pid if self._host is not None and self._host.alive else None

    # -- requests -----------------------------------------------------------------------------------

    async def run(
        self, request: GenerationRequest, trace: Trace, *, on_read: Callable[[], None] | None = None
    ) -> None:
        """As every target does; `on_read` is called after each read that has gone into the trace."""
        host = self._host
        trace.output_tokens_source = "engine"
        trace.sent_ns = time.monotonic_ns()
        if host is None:
            _fail(trace, "The engine is not open.")
            return
        loop = asyncio.get_running_loop()
        batches: asyncio.Queue[tuple[int, list[Event]]] = asyncio.Queue()

        def sink(read_ns: int, events: list[Event]) -> None:
            with contextlib.suppress(RuntimeError):  # the loop of a run that is over may be closed
                loop.call_soon_threadsafe(batches.put_nowait, (read_ns, events))

        handle = host.subscribe(sink)
        follower = _Follower(host, handle, request, trace, on_read)
        try:
            follower.submit()
            await follower.follow(batches)
        except asyncio.CancelledError:
            follower.abort()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(ABORT_WAIT_S):
                    await follower.follow(batches)
            trace.ended = "client"
            raise
        finally:
            host.unsubscribe(handle)

    # -- the engine itself ----------------------------------------------------------------------------

    async def telemetry(self) -> dict[str, Any]:
        return await self._call("telemetry")

    async def reset_prefix_cache(self) -> None:
        """Forget all cached prefixes, so that the next run starts cold; held blocks are untouched."""
        await self._call("reset_prefix_cache")

    def tokenize(self, text: str) -> list[int] | None:
        """Ids of plain text, without special tokens; raises TargetUnavailable when the engine is not open."""
        return self._open_host().call("tokenize", text)

    async def _call(self, name: str, *arguments: Any) -> Any:
        return await asyncio.to_thread(self._open_host().call, name, *arguments)

    def _open_host(self) -> EngineHost:
        if self._host is None:
            raise TargetUnavailable("The engine is not open.")
        return self._host


async def _start(options: EngineOptions) -> tuple[EngineHost, TargetInfo]:
    key = _weights_key(options.model_path)
    host = EngineHost(options, known_digest=_digests.get(key) if key else None)
    try:
        facts = await asyncio.to_thread(host.start)
    except BaseException:
        await asyncio.to_thread(host.close)
        raise
    if key is not None:
        _digests[key] = facts["configuration"]["model_digest"]
    info = TargetInfo(
        kind="engine",
        model=facts["model"],
        configuration=facts["configuration"],
        max_model_tokens=facts["max_model_tokens"],
    )
    return host, info


def _weights_key(path: Path) -> tuple[str, int, int] | None:
    try:
        files = sorted(path.glob("*.safetensors")) if path.is_dir() else [path]
        states = [file.stat() for file in files]
    except OSError:
        return None
    newest_ns = max((state.st_mtime_ns for state in states), default=0)
    return str(path.resolve()), sum(state.st_size for state in states), newest_ns


class _Follower:
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
        submit = ["submit", self._handle, _wire(self._request)]
        cancel = self._request.cancel
        try:
            if cancel is not None and cancel.phase == "queue":
                self._abort_sent = True  # one frame: the engine sees the departure before it can admit
                self._host.send(submit, ["abort", self._handle])
            else:
                self._host.send(submit)
        except TargetUnavailable as error:
            _fail(self._trace, str(error))
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
            self._leave_if_asked()
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
                trace.queued_ns, trace.input_tokens = ns, rest[0]
                trace.output_tokens, trace.token_ids = 0, []
            case "admitted":
                if not trace.admitted_ns:
                    trace.cached_tokens = rest[0]
                trace.admitted_ns.append(ns)
            case "chunk":
                start_ns, tokens, again = rest
                trace.chunks.append((start_ns, ns, tokens))
                trace.recomputed_tokens += tokens if again else 0
            case "token":
                self._token(read_ns, ns, *rest)
            case "preempted":
                trace.preempted_ns.append(ns)
            case "finished":
                trace.finished_ns, trace.finish_reason, trace.ended = ns, rest[0], "orderly"
                self._show(read_ns, rest[1])
            case "aborted":
                trace.aborted_ns, trace.ended = ns, "client"
            case "failed":
                if trace.finished_ns is None and trace.aborted_ns is None:
                    _fail(trace, rest[0], ns)
                self._over = True
            case "rejected":
                trace.error, trace.ended, trace.failed_ns = rest[0], "refused", ns
                trace.status = BUSY_STATUS if rest[1] else None
                self._over = True
            case "freed":
                trace.freed_ns = ns
                self._over = True

    def _token(self, read_ns: int, ns: int, start_ns: int, token_id: int, text: str) -> None:
        trace = self._trace
        assert trace.token_ids is not None
        trace.token_ns.append(ns)
        trace.token_ids.append(token_id)
        trace.output_tokens = len(trace.token_ids)
        if not trace.chunks or trace.chunks[-1][1] != ns:  # else the token came with its last prefill chunk
            trace.decode_steps.append((start_ns, ns))
        self._show(read_ns, text)

    def _show(self, read_ns: int, text: str) -> None:
        if not text:
            return
        self._text.append(text)
        if self._trace.first_visible_ns is None:
            self._trace.first_visible_ns = self._trace.first_answer_ns = read_ns

    def _leave_if_asked(self) -> None:
        rule, trace = self._request.cancel, self._trace
        if rule is None or self._over or any(getattr(trace, f"{end}_ns") for end in ENDS):
            return
        in_prefill = rule.phase == "prefill" and trace.admitted_ns
        in_decode = rule.phase == "decode" and len(trace.token_ns) >= max(1, rule.after_tokens)
        if in_prefill or in_decode:
            self.abort()


def _fail(trace: Trace, reason: str, ns: int | None = None) -> None:
    trace.error, trace.ended = reason, "cut"
    trace.failed_ns = ns if ns is not None else time.monotonic_ns()


def _wire(request: GenerationRequest) -> dict[str, Any]:
    """What the engine needs of a request, without what concerns only the client."""
    fields = asdict(request)
    for name in ("cancel", "arrival_s", "tenant", "application"):
        del fields[name]
    return fields
