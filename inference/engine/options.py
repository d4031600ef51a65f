"""What a user may set of the engine, checked once, before any process starts."""

import re
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from inference.errors import InputError

DTYPES = ("auto", "bfloat16", "float32", "int8", "int4")
KERNELS = ("auto", "native", "torch")
DEVICE = re.compile(r"auto|cpu|cuda(:\d+)?")
CUDA_GRAPHS = ("off", "lazy", "load")
COUNTS = (
    "max_batch",
    "kv_blocks",
    "block_tokens",
    "prefill_chunk_tokens",
    "threads",
    "max_waiting",
    "speculate_tokens",
    "speculate_max_batch",
)
DRAFT = "draft:"


@dataclass(frozen=True, kw_only=True)
class EngineOptions:
    """Settings of one engine process; `None` lets the engine choose from the machine.

    `dtype="auto"` is the fastest that rounds no stored weight (see `inference.engine.precision`); int8 and
    int4 round the weights of the linear layers. `kernels="auto"` is the fastest that computes the same
    (see `inference.engine.proving`). Sizes are tokens unless the name says otherwise.
    """

    path: str
    device: str = "auto"  # the first GPU where there is one, else the CPU; or cpu, cuda, cuda:N
    dtype: str = "auto"
    kernels: str = "auto"  # native: nothing but C; torch: nothing of it
    max_batch: int = 32  # sequences in one step
    kv_blocks: int | None = None
    block_tokens: int = 32
    prefill_chunk_tokens: int = 256
    threads: int | None = None
    prefix_cache: bool = True
    max_waiting: int = 4096  # requests of one priority; one more is refused at once
    speculate: str | None = None  # "ngram" (prompt lookup) or "draft:PATH" (a small model)
    speculate_tokens: int = 5  # the most that are guessed for one sequence in a step
    speculate_max_batch: int = 2  # with more sequences in a decode step, nothing is guessed
    cuda_graphs: str = "load"  # decode steps on a GPU are recorded: off, lazy (at first use) or load
    step_limit_s: float = 180.0  # a step that takes longer is stuck: the process ends and says so

    def __post_init__(self) -> None:
        if not DEVICE.fullmatch(self.device):
            raise InputError(f"device {self.device!r} is unknown; choose auto, cpu, cuda or cuda:N.")
        if self.cuda_graphs not in CUDA_GRAPHS:
            raise InputError(f"cuda-graphs must be off, lazy or load, not {self.cuda_graphs!r}.")
        if self.dtype not in DTYPES:
            raise InputError(f"dtype {self.dtype!r} is unknown; choose one of {', '.join(DTYPES)}.")
        if self.kernels not in KERNELS:
            raise InputError(f"kernels {self.kernels!r} is unknown; choose one of {', '.join(KERNELS)}.")
        if self.speculate not in (None, "ngram") and not self.draft_path:
            raise InputError(f"speculate must be ngram or draft:PATH, not {self.speculate!r}.")
        for name in COUNTS:
            value = getattr(self, name)
            if value is None and name in ("kv_blocks", "threads"):
                continue
            if not isinstance(value, int) or isinstance(value, bool) or value < 1:
                raise InputError(
                    f"{name.replace('_', '-')} must be a whole number of at least 1, not {value!r}."
                )

    @property
    def model_path(self) -> Path:
        return Path(self.path)

    @property
    def draft_path(self) -> str | None:
        """Where the draft model is, if there is one."""
        if self.speculate is None or not self.speculate.startswith(DRAFT):
            return None
        return self.speculate.removeprefix(DRAFT) or None

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)
