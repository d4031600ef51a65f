"""The engine process: `python -P -m inference.engine.child FD`, started and owned by `EngineHost`.

The main thread loads the model and steps the engine. A second one says from the first moment on that the
process lives, and ends it when a step hangs. A third one reads commands, so that a request is accepted (and
stamped) while a step runs; it ends the process at once when the host is gone.
"""

import contextlib
import ctypes
import os
import platform
import signal
import socket
import sys
import threading
import time
import traceback
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

import torch
import transformers

from inference.engine import frames, gguf, gguf_cache, telemetry
from inference.engine.admission import encode
from inference.engine.cores import default_threads
from inference.engine.cuda_runner import CudaRunner
from inference.engine.device import DeviceLost
from inference.engine.engine import Engine
from inference.engine.events import Event
from inference.engine.loading import LoadedModel, load, weights_digest
from inference.engine.options import EngineOptions
from inference.engine.precision import choose
from inference.engine.stages import timed
from inference.errors import TargetUnavailable
from inference.requests import CancelRule, GenerationRequest

PR_SET_PDEATHSIG = 1
WATCH_EVERY_S = 1.0
SEQUENCE_FIELDS = ("messages", "prompt_token_ids", "stop")  # tuples that the wire has made lists
FIRST_STEP = GenerationRequest(id="first step", prompt_token_ids=(0,), max_tokens=2, ignore_eos=True)
FIRST_HANDLE = 0  # the host's handles begin at 1
#: whom the kernel ends first when memory runs out (0–1,000): a model that is loading, then one that serves,
#: and the process that owns them last
OOM_SCORE_LOADING, OOM_SCORE_SERVING = 800, 500
STUCK_CODE, BROKEN_CODE = 70, 71


class Child:
    """The engine and its connection to the host."""

    engine: Engine | None = None  # none until the model is loaded

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._sending = threading.Lock()
        self._watch = telemetry.Watch()
        self._first_events: list[Event] | None = None  # those of the first step, which no host asked for

    # -- load ---------------------------------------------------------------------------------------

    def load(self, options: EngineOptions, known_digest: str | None, load_ms: dict[str, float]) -> Engine:
        """Load the model and let it take a first step; `load_ms` gets the time of each stage.

        Raises TargetUnavailable with the reason.
        """
        draft = None
        if options.draft_path is not None:
            path = str(Path(options.draft_path).expanduser())
            with timed(load_ms, "draft"):
                draft = _read(replace(options, path=path, speculate=None), None, {})
        engine = Engine(_read(options, known_digest, load_ms), options, self.emit, draft=draft)
        load_ms |= engine.load_ms
        engine.release_plain_weights()
        with timed(load_ms, "first_step"):
            self._take_first_step(engine)
        self._watch.restart(engine.blocks.held)
        return engine

    def _take_first_step(self, engine: Engine) -> None:
        """One short answer before anybody asks: what is built at the first use is built here."""
        self._first_events = []
        engine.submit(FIRST_HANDLE, FIRST_STEP)
        while engine.step():
            pass
        events, self._first_events = self._first_events, None
        failed = next((event[3] for event in events if event[0] == "failed"), None)
        if failed is not None:
            raise TargetUnavailable(f"{engine.loaded.name} is loaded but does not answer: {failed}")
        engine.blocks.reset_cache()

    def refuse(self, reason: str) -> NoReturn:
        """The model cannot be loaded; the process ends."""
        self.tell(["unavailable", reason])
        os._exit(0)

    # -- serve --------------------------------------------------------------------------------------

    def emit(self, batch: list[Event]) -> None:
        if self._first_events is not None:
            self._first_events += batch
            return
        with self._sending:
            if self.engine is not None:
                self._watch.observe(batch, self.engine.blocks.held)
            frames.write(self._sock, batch)

    def tell(self, *messages: list[Any]) -> None:
        """Say something that belongs to no request."""
        with self._sending:
            frames.write(self._sock, list(messages))

    def run(self, engine: Engine) -> None:
        """Step until the process ends."""
        start_thread(lambda: self._read_commands(engine))
        try:
            while True:
                if not engine.step():
                    engine.wait_for_work()
        except DeviceLost as error:
            self.tell(["stuck", f"The engine cannot go on: {error}"])
            os._exit(BROKEN_CODE)

    def _read_commands(self, engine: Engine) -> None:
        while (commands := frames.read(self._sock)) is not None:
            if len(commands) == 1:
                self._obey(engine, commands[0])
            else:
                with engine.together():
                    for command in commands:
                        self._obey(engine, command)
        os._exit(0)  # the host is gone; nobody is left to tell

    def _obey(self, engine: Engine, command: list[Any]) -> None:
        kind, *arguments = command
        if kind == "submit":
            handle, fields = arguments
            engine.submit(handle, _request(fields))
        elif kind == "abort":
            engine.abort(*arguments)
        else:
            self._answer(engine, *arguments)

    def _answer(self, engine: Engine, number: int, name: str, arguments: list[Any]) -> None:
        try:
            ok, value = True, self._call(engine, name, *arguments)
        except Exception as error:
            ok, value = False, f"The engine could not answer {name!r}: {error}."
        self.tell(["result", number, ok, value])

    def _call(self, engine: Engine, name: str, *arguments: Any) -> Any:
        if name == "telemetry":
            return telemetry.snapshot(engine, self._watch)
        if name == "reset_prefix_cache":
            engine.reset_prefix_cache()
            return self._watch.restart(engine.blocks.held)
        if name == "tokenize":
            return engine.loaded.tokenizer(arguments[0], add_special_tokens=False).input_ids
        if name == "prompt_tokens":
            return len(encode(engine.loaded, _request(arguments[0])))
        raise ValueError("unknown call")

    def watch(self, step_limit_s: float) -> None:
        """Say once a second that this process lives, and end it when a step takes longer than its limit."""
        limit_ns = int(step_limit_s * 1e9)
        while True:
            since_ns = self.engine.statistics.running_since_ns if self.engine is not None else None
            if since_ns is not None and time.monotonic_ns() - since_ns > limit_ns:
                self.tell(["stuck", f"The engine was stuck: a step took longer than {step_limit_s:g} s."])
                os._exit(STUCK_CODE)
            try:
                self.tell(["alive"])
            except OSError:
                os._exit(0)  # the host is gone, perhaps while the model was loading
            time.sleep(WATCH_EVERY_S)


def _read(options: EngineOptions, known_digest: str | None, load_ms: dict[str, float]) -> LoadedModel:
    """The model with its digest; a GGUF file is unpacked into its folder before it is read."""
    path, digest = options.model_path, known_digest
    is_gguf = path.is_file() and path.suffix.lower() == ".gguf"
    with timed(load_ms, "digest"):
        if digest is None and is_gguf:
            digest = gguf_cache.file_digest(path)
        elif digest is None and (files := sorted(path.glob("*.safetensors"))):
            digest = weights_digest(files)
    with contextlib.ExitStack() as stack:
        folder = path
        if is_gguf and digest is not None:
            with timed(load_ms, "convert"):
                folder = stack.enter_context(gguf_cache.unpacked(path, digest, _stored(options, path)))
        with timed(load_ms, "read"):
            loaded = load(
                folder,
                options.dtype,
                kernels=options.kernels,
                known_digest=digest,
                device=options.device,
            )
    loaded.name = path.name
    return loaded


def _stored(options: EngineOptions, path: Path) -> torch.dtype:
    """What a GGUF file is unpacked into: float32 where the model computes in it, so nothing is rounded."""
    return choose(
        options.dtype, gguf.configuration(path), kernels=options.kernels, device=options.device
    ).dtype


def _request(fields: dict[str, Any]) -> GenerationRequest:
    for name in SEQUENCE_FIELDS:
        if fields.get(name) is not None:
            fields[name] = tuple(fields[name])
    if fields.get("cancel") is not None:
        fields["cancel"] = CancelRule(**fields["cancel"])
    return GenerationRequest(**fields)


def start_thread(target: Callable[[], None]) -> None:
    """A thread whose end by an exception ends the process: a half-dead engine would only look alive."""
    threading.Thread(target=lambda: guarded(target), daemon=True).start()


def guarded(work: Callable[[], None]) -> None:
    try:
        work()
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
        os._exit(BROKEN_CODE)


def _prefer_at_oom(score: int) -> None:
    """Ask the kernel to end this process before others when memory runs out."""
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text(str(score))


def _facts(engine: Engine, options: EngineOptions, threads_from: str) -> dict[str, Any]:
    loaded = engine.loaded
    return {
        "model": loaded.name,
        "max_model_tokens": loaded.max_model_tokens,
        "configuration": {
            "model": loaded.name,
            "model_digest": loaded.digest,
            "architecture": loaded.architecture,
            "parameters": loaded.parameters,
            "dtype": loaded.weights,
            "cache_dtype": str(loaded.dtype).removeprefix("torch."),
            "max_model_tokens": loaded.max_model_tokens,
            "shape": _shape(loaded),
            "weights_bytes": loaded.weights_bytes,
            "kv_pool_bytes": engine.pool.size_bytes,
            "engine": {
                "max_batch": options.max_batch,
                "kv_blocks": engine.pool.blocks,
                "block_tokens": options.block_tokens,
                "prefill_chunk_tokens": options.prefill_chunk_tokens,
                "prefix_cache": options.prefix_cache,
                "max_waiting": options.max_waiting,
                "threads": torch.get_num_threads(),
                "threads_from": threads_from,
                "kernels": engine.kernels,
                **_speculation(engine, options),
                **_recorded(engine),
            },
            **engine.device.facts(),
            "versions": {
                "python": platform.python_version(),
                "torch": torch.__version__,
                "transformers": transformers.__version__,
            },
        },
    }


def _speculation(engine: Engine, options: EngineOptions) -> dict[str, Any]:
    """How the engine guesses tokens, where it does."""
    if options.speculate is None:
        return {}
    draft = engine.draft.loaded if engine.draft is not None else None
    return {
        "speculate": options.speculate.partition(":")[0],
        "speculate_tokens": options.speculate_tokens,
        "speculate_max_batch": options.speculate_max_batch,
        **({} if draft is None else {"draft_model": draft.name, "draft_model_digest": draft.digest}),
    }


def _recorded(engine: Engine) -> dict[str, Any]:
    """How decode steps are recorded, where they can be."""
    graphs = engine.runner.graphs if isinstance(engine.runner, CudaRunner) else None
    return {} if graphs is None else graphs.facts()


def _shape(loaded: LoadedModel) -> dict[str, int]:
    """The dimensions that limits by arithmetic need; those the configuration names."""
    config, names = (
        loaded.model.config,
        {
            "layers": "num_hidden_layers",
            "heads": "num_attention_heads",
            "kv_heads": "num_key_value_heads",
            "head_dim": "head_dim",
            "hidden": "hidden_size",
            "vocabulary": "vocab_size",
        },
    )
    found = {ours: getattr(config, theirs, None) for ours, theirs in names.items()}
    return {name: value for name, value in found.items() if isinstance(value, int)}


def main() -> None:
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the host's to handle; it closes the engine
    _prefer_at_oom(OOM_SCORE_LOADING)
    sock = socket.socket(fileno=int(sys.argv[1]))
    entered_ns = time.monotonic_ns()
    frames.write(sock, [["alive"]])
    first = frames.read(sock)
    if first is None:
        return
    _, fields, known_digest, spawned_ns = first[0]
    options, child = EngineOptions(**fields), Child(sock)
    start_thread(lambda: child.watch(options.step_limit_s))
    load_ms = {"start": (entered_ns - spawned_ns) / 1e6}
    threads, threads_from = (options.threads, "setting") if options.threads else default_threads()
    torch.set_num_threads(threads)
    try:
        engine = child.load(options, known_digest, load_ms)
    except TargetUnavailable as error:
        child.refuse(str(error))
    except (MemoryError, RuntimeError) as error:
        if not telemetry.is_out_of_memory(f"{type(error).__name__}: {error}"):
            raise
        child.refuse(f"There is not enough memory to load {options.path}.")
    _prefer_at_oom(OOM_SCORE_SERVING)
    child.engine = engine
    child.tell(["ready", _facts(engine, options, threads_from) | {"load_ms": load_ms}])
    child.run(engine)


if __name__ == "__main__":
    guarded(main)
