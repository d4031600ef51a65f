"""The engine process: `python -P -m inference.engine.child FD`, started and owned by `EngineHost`.

The main thread steps the engine. A second one reads commands, so that a request is accepted (and stamped)
while a step runs; it ends the process at once when the host is gone. A third one ends it when a step hangs.
"""

import ctypes
import os
import platform
import signal
import socket
import sys
import threading
import time
from typing import Any

import torch
import transformers

from inference.engine import frames, telemetry
from inference.engine.engine import Engine
from inference.engine.events import Event
from inference.engine.loading import LoadedModel, load
from inference.engine.options import EngineOptions
from inference.errors import TargetUnavailable
from inference.requests import GenerationRequest

PR_SET_PDEATHSIG = 1
WATCH_EVERY_S = 1.0
SEQUENCE_FIELDS = ("messages", "prompt_token_ids", "stop")  # tuples that the wire has made lists


class Child:
    """The engine and its connection to the host."""

    def __init__(self, sock: socket.socket, options: EngineOptions, known_digest: str | None) -> None:
        self._sock = sock
        self._sending = threading.Lock()
        torch.set_num_threads(options.threads or _default_threads())
        self._options = options
        loaded = load(options.model_path, options.dtype, known_digest=known_digest)
        self.engine = Engine(loaded, options, self.emit)

    def emit(self, batch: list[Event]) -> None:
        with self._sending:
            frames.write(self._sock, batch)

    def run(self) -> None:
        self.emit([["ready", _facts(self.engine, self._options)]])
        for target in (self._read_commands, self._watch):
            threading.Thread(target=target, name=target.__name__, daemon=True).start()
        while True:
            if not self.engine.step():
                self.engine.wait_for_work()

    def _read_commands(self) -> None:
        while (commands := frames.read(self._sock)) is not None:
            if len(commands) == 1:
                self._obey(commands[0])
            else:
                with self.engine.together():
                    for command in commands:
                        self._obey(command)
        os._exit(0)  # the host is gone; nobody is left to tell

    def _obey(self, command: list[Any]) -> None:
        kind, *arguments = command
        if kind == "submit":
            handle, fields = arguments
            self.engine.submit(handle, _request(fields))
        elif kind == "abort":
            self.engine.abort(*arguments)
        else:
            self._answer(*arguments)

    def _answer(self, number: int, name: str, arguments: list[Any]) -> None:
        try:
            ok, value = True, self._call(name, *arguments)
        except Exception as error:
            ok, value = False, f"The engine could not answer {name!r}: {error}."
        self.emit([["result", number, ok, value]])

    def _call(self, name: str, *arguments: Any) -> Any:
        if name == "telemetry":
            return telemetry.snapshot(self.engine)
        if name == "reset_prefix_cache":
            return self.engine.reset_prefix_cache()
        if name == "tokenize":
            return self.engine.loaded.tokenizer(arguments[0], add_special_tokens=False).input_ids
        raise ValueError("unknown call")

    def _watch(self) -> None:
        limit_ns = int(self._options.step_limit_s * 1e9)
        while True:
            time.sleep(WATCH_EVERY_S)
            since_ns = self.engine.statistics.running_since_ns
            if since_ns is not None and time.monotonic_ns() - since_ns > limit_ns:
                reason = f"The engine was stuck: a step took longer than {self._options.step_limit_s:g} s."
                self.emit([["stuck", reason]])
                os._exit(70)


def _request(fields: dict[str, Any]) -> GenerationRequest:
    for name in SEQUENCE_FIELDS:
        if fields.get(name) is not None:
            fields[name] = tuple(fields[name])
    return GenerationRequest(**fields)


def _default_threads() -> int:
    asked = os.environ.get("OMP_NUM_THREADS", "")
    return int(asked) if asked.isdigit() and int(asked) > 0 else len(os.sched_getaffinity(0))


def _facts(engine: Engine, options: EngineOptions) -> dict[str, Any]:
    loaded = engine.loaded
    return {
        "model": loaded.name,
        "max_model_tokens": loaded.max_model_tokens,
        "configuration": {
            "model": loaded.name,
            "model_digest": loaded.digest,
            "architecture": loaded.architecture,
            "parameters": loaded.parameters,
            "dtype": str(loaded.dtype).removeprefix("torch."),
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
                "attention": "paged, CPU",
            },
            "device": "cpu",
            "cpu_capability": torch.backends.cpu.get_cpu_capability(),
            "versions": {
                "python": platform.python_version(),
                "torch": torch.__version__,
                "transformers": transformers.__version__,
            },
        },
    }


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
    sock = socket.socket(fileno=int(sys.argv[1]))
    first = frames.read(sock)
    if first is None:
        return
    _, fields, known_digest = first[0]
    try:
        child = Child(sock, EngineOptions(**fields), known_digest)
    except TargetUnavailable as error:
        frames.write(sock, [["unavailable", str(error)]])
        return
    except MemoryError:
        frames.write(sock, [["unavailable", f"There is not enough memory to load {fields['path']}."]])
        return
    child.run()


if __name__ == "__main__":
    main()
