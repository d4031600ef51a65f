"""An engine in this process whose steps cost everything but the model's forward."""

import socket
import subprocess
import time
from pathlib import Path
from typing import Any

import torch

from inference.engine import frames
from inference.engine.engine import Engine
from inference.engine.events import Event
from inference.engine.loading import load
from inference.engine.options import EngineOptions
from inference.engine.telemetry import Watch
from inference.requests import GenerationRequest

PROMPT_TOKENS = 16


class IdleLibrary:
    """The C library with a step that computes nothing: the packing of its arguments stays."""

    def __init__(self, library: Any) -> None:
        self._library = library

    def __getattr__(self, name: str) -> Any:
        return getattr(self._library, name)

    def pg_step(self, *described: Any) -> int:
        return 0


class IdleRunner:
    """Stands in for a model in PyTorch: logits that were computed before."""

    def __init__(self, runner: Any, vocabulary: int, most: int) -> None:
        self.pool, self.buffers_bytes = runner.pool, 0
        self._logits = torch.randn(most, vocabulary)

    def release_plain_weights(self) -> None:
        """Nothing: it has none."""

    def run(self, step: Any) -> torch.Tensor:
        return self._logits[: sum(work.keep for work in step.work)]


class Stepper:
    """Real requests in a real engine, its events written to a socket that somebody reads."""

    def __init__(self, model: Path, dtype: str, threads: int, settings: dict[str, Any]) -> None:
        torch.set_num_threads(threads)
        options = EngineOptions(path=str(model), dtype=dtype, threads=threads, **settings)
        self._near, far = socket.socketpair()
        # another process reads, as the host does: a thread would take part in the steps
        self._reader = subprocess.Popen(["cat"], stdin=far.fileno(), stdout=subprocess.DEVNULL)
        far.close()
        self._watch = Watch()
        loaded = load(model, dtype, kernels=options.kernels, known_digest="not needed")
        self.engine = Engine(loaded, options, self._emit)
        self._computing: Any = None

    def fill(self, count: int, out: int) -> None:
        """`count` requests, all past their prompts; they answer `out` tokens."""
        for number in range(count):
            ids = tuple(range(100 + number, 100 + number + PROMPT_TOKENS))
            self.engine.submit(
                number + 1,
                GenerationRequest(id=str(number), prompt_token_ids=ids, max_tokens=out, ignore_eos=True),
            )
        self.engine.step()
        while any(one.in_prefill for one in self.engine.scheduler.running) or self.engine.scheduler.waiting:
            self.engine.step()
        self.times_s(2)

    def idle(self) -> None:
        """From now on the forward computes nothing."""
        runner = self.engine.runner
        if hasattr(runner, "_library"):
            self._computing = runner._library
            runner._library = IdleLibrary(self._computing)
        else:
            self._computing = runner
            most = self.engine.options.max_batch
            self.engine.runner = IdleRunner(runner, self.engine.loaded.vocabulary, most)

    def compute(self) -> None:
        """The forward computes again."""
        runner = self.engine.runner
        if isinstance(runner, IdleRunner):
            self.engine.runner = self._computing
        else:
            runner._library = self._computing  # type: ignore[attr-defined]

    def times_s(self, steps: int) -> list[float]:
        """Seconds of each of the next steps."""
        found = []
        for _ in range(steps):
            start = time.perf_counter()
            if not self.engine.step():
                raise RuntimeError("the requests have ended before the measurement")
            found.append(time.perf_counter() - start)
        return found

    def empty(self) -> None:
        """Let all requests go."""
        for handle in list(self.engine._sequences):
            self.engine.abort(handle)
        self.engine.step()
        self.engine.check_idle()

    def close(self) -> None:
        self._near.close()
        self._reader.wait()

    def _emit(self, events: list[Event]) -> None:
        """As the engine process does."""
        if hasattr(self, "engine"):
            self._watch.observe(events, self.engine.blocks.held)
        frames.write(self._near, events)
