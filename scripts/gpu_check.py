"""Check the embedded engine on a GPU: first that it is right, then how fast it is. Prints tables.

    python scripts/gpu_check.py [--device auto|cpu|cuda:N] [--quick] [--model FOLDER] [--only equality|speed]

Equality: greedy tokens in float32 against transformers' `generate()` with its own attention on the same
device, for tiny random models of nine architectures that are made here, and for the model in `--model` where
it is. Prompts arrive while others are answered, are computed in chunks, and come a second time out of the
prefix cache; with CUDA graphs and without. Then the same models in bfloat16, where the kernels are others: by
how much the logits of the paged path differ from the model's own, as the check at every load measures it.

Speed: the five workloads of docs/engine.md with CUDA graphs, without them, and without event stamps.

Exit status: 0 all equal · 1 something is not equal, or failed · 2 wrong arguments · 3 there is no GPU.
It needs the repository and its requirements, and reads and writes nothing else.
"""

import argparse
import os
import random
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
os.environ.setdefault("HF_HUB_OFFLINE", "1")

import torch  # noqa: E402
import transformers  # noqa: E402

from inference.engine.attention import NAME as PAGED  # noqa: E402
from inference.engine.cuda_runner import CudaRunner  # noqa: E402
from inference.engine.device import CudaDevice, Device, choose  # noqa: E402
from inference.engine.engine import Engine  # noqa: E402
from inference.engine.events import ENDS, Event  # noqa: E402
from inference.engine.loading import LoadedModel, load  # noqa: E402
from inference.engine.options import EngineOptions  # noqa: E402
from inference.errors import TargetUnavailable  # noqa: E402
from inference.requests import GenerationRequest  # noqa: E402
from scripts.gpu_models import (  # noqa: E402
    ARCHITECTURES,
    VOCABULARY,
    as_loaded,
    speed_model,
    tiny_model,
)

NO_GPU = 3
DEFAULT_MODEL = ROOT / "var" / "models" / "SmolLM2-135M-Instruct"
#: for bfloat16: weights as trained models have them, since wide ones magnify what is rounded, and no choice
#: of experts, which one rounded bit can turn in a model that was never trained to be sure of it
NARROW_WEIGHTS = {"initializer_range": 0.05, "num_local_experts": 2}
PROMPT_LENGTHS = (1, 5, 37, 70, 150)
TEXTS = (
    "The capital of France is",
    "Write one sentence about the sea.",
    "def fibonacci(n):\n    ",
    "List three uses of a paged key-value cache:",
)


@dataclass
class Runs:
    """An engine in this process, and what its events tell of each request."""

    engine: Any = None
    ids: dict[int, list[int]] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)
    open: int = 0
    mixed: int = 0

    def take(self, events: list[Event]) -> None:
        for kind, handle, _, *rest in events:
            if kind == "token":
                self.ids[handle].append(rest[1])
            elif kind in ENDS | {"rejected"}:
                self.open -= 1
                if kind != "finished":
                    self.failures.append(str(rest[0]) if rest else kind)
            elif kind == "step":
                self.mixed += 1

    def submit(self, prompt: list[int], max_tokens: int) -> int:
        handle = len(self.ids) + 1
        self.ids[handle] = []
        self.open += 1
        self.engine.submit(
            handle,
            GenerationRequest(
                id=str(handle), prompt_token_ids=tuple(prompt), max_tokens=max_tokens, ignore_eos=True
            ),
        )
        return handle

    def finish(self) -> None:
        while self.engine.step():
            pass
        if self.failures:
            raise TargetUnavailable(self.failures[0])
        if self.open:
            raise TargetUnavailable(f"{self.open} requests did not end.")
        self.engine.check_idle()


def start(loaded: LoadedModel, device: Device, **settings: Any) -> Runs:
    runs = Runs()
    options = EngineOptions(path=loaded.name, kernels="torch", **settings)
    runs.engine = Engine(loaded, options, runs.take, device=device)
    return runs


# -- equality -------------------------------------------------------------------------------------------


@contextmanager
def own_attention(model: Any) -> Iterator[None]:
    before = model.config._attn_implementation
    model.set_attn_implementation("eager")
    try:
        yield
    finally:
        model.set_attn_implementation(before if before == PAGED else "eager")


@torch.inference_mode()
def reference(model: Any, prompt: list[int], count: int) -> list[int]:
    """Greedy tokens of `generate()`."""
    ids = torch.tensor([prompt], device=model.device)
    with own_attention(model):
        out = model.generate(
            ids,
            attention_mask=torch.ones_like(ids),
            max_new_tokens=count,
            min_new_tokens=count,
            do_sample=False,
            eos_token_id=None,
            pad_token_id=0,
        )
    return out[0, len(prompt) :].tolist()


@torch.inference_mode()
def first_difference(model: Any, prompt: list[int], expected: list[int], found: list[int]) -> str:
    """Where two answers part, and how far apart the two tokens are for the model itself."""
    at = next((n for n, (a, b) in enumerate(zip(expected, found, strict=False)) if a != b), None)
    if at is None:
        return f"{len(found)} tokens instead of {len(expected)}"
    ids = torch.tensor([[*prompt, *expected[:at]]], device=model.device)
    with own_attention(model):
        logits = model(input_ids=ids, use_cache=False).logits[0, -1].float()
    gap = float(logits[expected[at]] - logits[found[at]])
    return f"token {at}: {found[at]} instead of {expected[at]}, {gap:.2g} apart in the model's own logits"


def compare(loaded: LoadedModel, device: Device, prompts: list[list[int]], out: int, graphs: str) -> str:
    """`equal`, or what is not; some prompts arrive while the first are answered, then all come again."""
    expected = [reference(loaded.model, prompt, out) for prompt in prompts]
    settings = {"max_batch": 4, "block_tokens": 16, "prefill_chunk_tokens": 48, "cuda_graphs": graphs}
    runs = start(loaded, device, kv_blocks=96, **settings)
    handles = [runs.submit(prompt, out) for prompt in prompts[:2]]
    for _ in range(3):
        runs.engine.step()
    handles += [runs.submit(prompt, out) for prompt in prompts[2:]]
    runs.finish()
    again = [runs.submit(prompt, out) for prompt in prompts]
    runs.finish()
    for handle, number in zip([*handles, *again], [*range(len(prompts))] * 2, strict=True):
        if runs.ids[handle] != expected[number]:
            told = first_difference(loaded.model, prompts[number], expected[number], runs.ids[handle])
            return f"DIFFERS: prompt of {len(prompts[number])} tokens, {told}"
    runner = runs.engine.runner
    if isinstance(runner, CudaRunner) and runner.graphs is not None:
        if runner.graphs.reason is not None:
            return f"equal, but no graphs: {runner.graphs.reason}"
        return f"equal, {runner.graphs.replays} replays"
    return f"equal, {runs.mixed} mixed" if runs.mixed else "equal"


def in_bfloat16(loaded: LoadedModel, device: Device) -> str:
    """The check at load, in bfloat16: the largest difference of logits, and which kernels computed it."""
    narrow = replace(loaded, model=loaded.model.to(torch.bfloat16), dtype=torch.bfloat16, weights="bfloat16")
    runs = start(narrow, device, kv_blocks=96, block_tokens=16, max_batch=4, cuda_graphs="lazy")
    runner = runs.engine.runner
    if not isinstance(runner, CudaRunner):
        return "passed"
    told = [f"differ by {runner.probed:.2%}"]
    kernels = runner.attention.kernels
    told.append("; ".join(f"kernel ({kind}): {reason}" for kind, reason in kernels.items()) or "no kernel")
    if runner.graphs is not None and runner.graphs.reason is not None:
        told.append(f"no graphs: {runner.graphs.reason}")
    return ", ".join(told)


def guarded(check: Callable[[], str]) -> str:
    try:
        return check()
    except TargetUnavailable as error:
        return f"FAILED: {error}"
    except Exception as error:  # one broken architecture must not hide the others
        return f"FAILED: {type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"


def equality(device: Device, model: Path, *, quick: bool) -> bool:
    """Print the table; whether all is equal."""
    on_gpu = device.name != "cpu"
    print("\n## Equality: greedy tokens in float32 against generate(), logits in bfloat16\n")
    print("| model | without graphs | with graphs | bfloat16 |")
    print("|---|---|---|---|", flush=True)
    rng = random.Random(0)
    prompts = [[rng.randrange(3, VOCABULARY) for _ in range(length)] for length in PROMPT_LENGTHS]
    names = list(ARCHITECTURES)[:: 4 if quick else 1]
    right = True
    for name in names:
        kind, changes = ARCHITECTURES[name]
        wide = as_loaded(name, tiny_model(kind, changes).to(device.torch_device))
        right &= _row(
            name,
            lambda graphs, wide=wide: compare(wide, device, prompts, 10 if quick else 24, graphs),
            lambda kind=kind, changes=changes, name=name: in_bfloat16(
                as_loaded(name, tiny_model(kind, changes | NARROW_WEIGHTS).to(device.torch_device)), device
            ),
            on_gpu=on_gpu,
        )
    if not (model / "config.json").is_file():
        print(f"| {model.name} | not checked: it is not at {model} (`make model` fetches it) | | |")
        return right
    loaded = load(model, "float32", known_digest="not needed", device=device.name)
    loaded.model.to(device.torch_device)
    texts = [loaded.tokenizer(text).input_ids for text in TEXTS[: 2 if quick else None]]
    return right & _row(
        model.name,
        lambda graphs: compare(loaded, device, texts, 8 if quick else 48, graphs),
        lambda: in_bfloat16(loaded, device),
        on_gpu=on_gpu,
    )


def _row(
    name: str, in_float32: Callable[[str], str], in_bfloat16: Callable[[], str], *, on_gpu: bool
) -> bool:
    cells = [guarded(lambda: in_float32("off"))]
    cells.append(guarded(lambda: in_float32("lazy")) if on_gpu else "–")
    cells.append(guarded(in_bfloat16))
    print(f"| {name} | {' | '.join(cell.replace('|', '/') for cell in cells)} |", flush=True)
    return not any("DIFFERS" in cell or "FAILED" in cell for cell in cells)


# -- speed ----------------------------------------------------------------------------------------------


def workloads(vocabulary: int, scale: float) -> dict[str, tuple[list[list[int]], int]]:
    """Prompts, and output tokens of each request, as docs/engine.md has them."""
    rng = random.Random(1)

    def ids(length: int) -> list[int]:
        return [rng.randrange(3, vocabulary) for _ in range(max(1, round(length * scale)))]

    def out(length: int) -> int:
        return max(1, round(length * scale))

    shared = ids(512)
    return {
        "mixed": ([ids(rng.randrange(32, 513)) for _ in range(32)], out(64)),
        "decode": ([ids(16) for _ in range(32)], out(128)),
        "prefix": ([shared + ids(32) for _ in range(32)], out(32)),
        "prefill": ([ids(1024) for _ in range(8)], 1),
        "single": ([ids(128)], out(128)),
    }


@dataclass
class Speed:
    tokens_per_s: float
    decode_step_ms: float | None
    device_share: float | None  # of the steps' time


def measure(runs: Runs, prompts: list[list[int]], out: int, counted: int, rounds: int) -> Speed:
    """The best of some rounds, each from an empty prefix cache."""
    engine, best = runs.engine, None
    for _ in range(rounds):
        engine.blocks.reset_cache()
        statistics = engine.statistics
        steps, busy_ns, device_ns = (dict(one) for one in _figures(statistics))
        for prompt in prompts:
            runs.submit(prompt, out)
        begun = time.perf_counter()
        runs.finish()
        took = time.perf_counter() - begun
        if best is not None and took >= best[0]:
            continue
        found = [
            {kind: now[kind] - before[kind] for kind in now}
            for now, before in zip(_figures(statistics), (steps, busy_ns, device_ns), strict=True)
        ]
        best = took, found
    assert best is not None
    took, (steps, busy_ns, device_ns) = best
    decode = busy_ns["decode"] / steps["decode"] / 1e6 if steps["decode"] else None
    share = sum(device_ns.values()) / sum(busy_ns.values()) if sum(device_ns.values()) else None
    return Speed(counted / took, decode, share)


def _figures(statistics: Any) -> tuple[dict[str, int], dict[str, int], dict[str, int]]:
    return statistics.steps, statistics.busy_ns, statistics.device_ns


def speed(device: Device, model: Path, *, quick: bool) -> None:
    on_gpu = device.name != "cpu"
    if (model / "config.json").is_file():
        loaded = load(model, "auto", known_digest="not needed", device=device.name)
    else:
        narrow = torch.cuda.is_available() and torch.cuda.is_bf16_supported(including_emulation=False)
        dtype = torch.bfloat16 if on_gpu and narrow else torch.float32
        loaded = as_loaded("random 135M Llama", speed_model().to(dtype))
    loaded.model.to(device.torch_device)
    scale, rounds = (0.05 if not on_gpu else 0.25, 1) if quick else (1.0, 3)
    settings = {"max_batch": 32, "prefill_chunk_tokens": 2048 if on_gpu else 256, "max_waiting": 64}
    with_graphs = start(loaded, device, cuda_graphs="load", **settings)
    if on_gpu:
        graphs = with_graphs.engine.runner.graphs
        print(f"\nGraphs: {graphs.count} recorded in {graphs.recorded_ms / 1e3:.1f} s", end="")
        print(f"; off: {graphs.reason}" if graphs.reason else "")
    without = start(loaded, device, cuda_graphs="off", **settings) if on_gpu else None
    print(f"\n## Speed: {loaded.name}, {str(loaded.dtype).removeprefix('torch.')}, scale {scale:g}\n")
    print("| work | tokens/s | without graphs | decode step | step without | device busy | stamps cost |")
    print("|---|---|---|---|---|---|---|", flush=True)
    for name, (prompts, out) in workloads(loaded.vocabulary, scale).items():
        counted = sum(map(len, prompts)) if name == "prefill" else out * len(prompts)
        fast = measure(with_graphs, prompts, out, counted, rounds)
        slow = measure(without, prompts, out, counted, rounds) if without else None
        cost = None
        if isinstance(with_graphs.engine.device, CudaDevice):
            with_graphs.engine.device.uses_events = False
            bare = measure(with_graphs, prompts, out, counted, rounds)
            with_graphs.engine.device.uses_events = True
            cost = bare.tokens_per_s / fast.tokens_per_s - 1
        cells = [
            _number(fast.tokens_per_s, ".0f"),
            _number(slow and slow.tokens_per_s, ".0f"),
            _number(fast.decode_step_ms, ".2f", " ms"),
            _number(slow and slow.decode_step_ms, ".2f", " ms"),
            _number(fast.device_share, ".0%"),
            _number(cost, "+.1%"),
        ]
        print(f"| {name} | {' | '.join(cells)} |", flush=True)


def _number(value: Any, form: str, unit: str = "") -> str:
    return "–" if value is None else f"{value:{form}}{unit}"


# -- the check ------------------------------------------------------------------------------------------


def environment(device: Device) -> None:
    versions = f"PyTorch {torch.__version__}, transformers {transformers.__version__}"
    print(f"{versions}, Python {sys.version.split()[0]}")
    print(f"{torch.get_num_threads()} threads, load {os.getloadavg()[0]:.1f}")
    for name, value in device.facts().items():
        print(f"{name}: {value}")


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--device", default="cuda", help="auto, cpu, cuda or cuda:N (default: cuda)")
    parser.add_argument("--quick", action="store_true", help="fewer models and a part of the lengths")
    parser.add_argument("--model", type=Path, default=DEFAULT_MODEL)
    parser.add_argument("--only", choices=("equality", "speed"))
    arguments = parser.parse_args(argv)
    try:
        device = choose(arguments.device)
    except TargetUnavailable as error:
        print(f"No GPU to check: {error}", file=sys.stderr)
        return NO_GPU
    torch.set_float32_matmul_precision("highest")
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    environment(device)
    right = arguments.only == "speed" or equality(device, arguments.model, quick=arguments.quick)
    if arguments.only != "equality":
        speed(device, arguments.model, quick=arguments.quick)
    print("\nAll equal." if right else "\nNOT EQUAL: see the table above.")
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
