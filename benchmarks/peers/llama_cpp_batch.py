"""llama.cpp through its low-level Python bindings: a batch of sequences, each with a KV stream of its own."""

import ctypes
import time
from pathlib import Path
from typing import Any

from benchmarks.peers.protocol import Absent, Job, Result, Setup, serve

BATCH_TOKENS = 2048  # in one call
UBATCH_TOKENS = 512  # computed at once; both are llama.cpp's defaults


class LlamaCpp:
    """`setup.model` is a GGUF file in the wanted type."""

    def __init__(self, setup: Setup) -> None:
        import llama_cpp

        if not Path(setup.model).is_file():
            raise Absent(f"there is no {setup.model}")
        self._c = llama_cpp
        self._setup = setup
        self._quiet = llama_cpp.llama_log_callback(lambda level, text, data: None)
        llama_cpp.llama_log_set(self._quiet, ctypes.c_void_p(0))
        self._model = llama_cpp.llama_model_load_from_file(
            setup.model.encode(), llama_cpp.llama_model_default_params()
        )
        if not self._model:
            raise Absent(f"llama.cpp cannot load {setup.model}")
        self._vocabulary = llama_cpp.llama_vocab_n_tokens(llama_cpp.llama_model_get_vocab(self._model))
        self._batch = llama_cpp.llama_batch_init(BATCH_TOKENS, 0, 1)

    def facts(self) -> dict[str, Any]:
        return {
            "name": "llama.cpp",
            "version": f"bindings {self._c.__version__}",
            "dtype": self._setup.dtype,
            "processor": self._c.llama_print_system_info().decode(),
        }

    def run(self, job: Job) -> Result:
        if job.arrivals_s is not None:
            raise Absent("its bindings have no scheduler, so no arrivals")
        context = self._context(job)
        try:
            start = time.perf_counter()
            chosen = self._prefill(context, job)
            first, made = list(chosen), len(chosen)
            length = [len(prompt) for prompt in job.prompts]
            for step in range(job.out - 1):
                chosen = self._decode(
                    context, [(n, id_, length[n] + step, True) for n, id_ in enumerate(chosen)]
                )
                made += len(chosen)
            return Result(wall_s=time.perf_counter() - start, output_tokens=made, first_ids=first)
        finally:
            self._c.llama_free(context)

    def _context(self, job: Job) -> Any:
        """A fresh context with room for the job; buffers are touched once before the clock runs."""
        c, settings = self._c, self._c.llama_context_default_params()
        longest = max(map(len, job.prompts)) + job.out
        settings.n_seq_max = len(job.prompts)
        settings.n_ctx = -(-longest // 256) * 256 * len(job.prompts)
        settings.n_batch, settings.n_ubatch = BATCH_TOKENS, UBATCH_TOKENS
        settings.n_threads = settings.n_threads_batch = self._setup.threads
        settings.kv_unified = False  # each sequence attends to its own stream only
        settings.no_perf = True
        for name, value in self._setup.options.items():
            setattr(settings, name, value)
        context = c.llama_init_from_model(self._model, settings)
        if not context:
            raise Absent("llama.cpp cannot allocate the context")
        c.llama_set_n_threads(context, self._setup.threads, self._setup.threads)
        self._decode(context, [(0, job.prompts[0][0], 0, True)])
        c.llama_memory_clear(c.llama_get_memory(context), True)
        return context

    def _prefill(self, context: Any, job: Job) -> list[int]:
        """First token of each sequence; what all prompts share is computed once and copied."""
        chosen: dict[int, int] = {}
        shared = min(job.shared, min(map(len, job.prompts)) - 1) if len(job.prompts) > 1 else 0
        if shared:
            for at in range(0, shared, BATCH_TOKENS):
                stop = min(shared, at + BATCH_TOKENS)
                self._decode(context, [(0, job.prompts[0][p], p, False) for p in range(at, stop)])
            memory = self._c.llama_get_memory(context)
            for number in range(1, len(job.prompts)):
                self._c.llama_memory_seq_cp(memory, 0, number, -1, -1)
        pending: list[tuple[int, int, int, bool]] = []
        for number, prompt in enumerate(job.prompts):
            for position in range(shared, len(prompt)):
                pending.append((number, prompt[position], position, position == len(prompt) - 1))
                if len(pending) == BATCH_TOKENS:
                    chosen |= self._take(context, pending)
                    pending = []
        if pending:
            chosen |= self._take(context, pending)
        return [chosen[number] for number in range(len(job.prompts))]

    def _take(self, context: Any, entries: list[tuple[int, int, int, bool]]) -> dict[int, int]:
        numbers = [number for number, _, _, wanted in entries if wanted]
        return dict(zip(numbers, self._decode(context, entries), strict=True))

    def _decode(self, context: Any, entries: list[tuple[int, int, int, bool]]) -> list[int]:
        """Compute (sequence, id, position, wanted) entries; the greedy next ids of the wanted ones."""
        import numpy

        batch = self._batch
        batch.n_tokens = len(entries)
        for at, (number, id_, position, wanted) in enumerate(entries):
            batch.token[at], batch.pos[at], batch.logits[at] = id_, position, int(wanted)
            batch.n_seq_id[at] = 1
            batch.seq_id[at][0] = number
        code = self._c.llama_decode(context, batch)
        if code:
            raise Absent(f"llama_decode failed with {code}")
        count = sum(wanted for *_, wanted in entries)
        if not count:
            return []
        logits = numpy.ctypeslib.as_array(self._c.llama_get_logits(context), (count, self._vocabulary))
        return logits.argmax(axis=1).tolist()


if __name__ == "__main__":
    serve(LlamaCpp)
