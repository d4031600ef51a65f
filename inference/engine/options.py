"""What a user may set of the engine, checked once, before any process starts."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from inference.errors import InputError

DTYPES = ("auto", "bfloat16", "float32")
LATER_DTYPES = ("int8", "int4")
COUNTS = ("max_batch", "kv_blocks", "block_tokens", "prefill_chunk_tokens", "threads", "max_waiting")


@dataclass(frozen=True, kw_only=True)
class EngineOptions:
    """Settings of one engine process; `None` lets the engine choose from the machine.

    `dtype="auto"` is bfloat16 where the processor multiplies it natively (AVX512-BF16, AMX), else
    float32, which is several times faster there. Sizes are tokens unless the name says otherwise.
    """

    path: str
    dtype: str = "auto"
    max_batch: int = 32  # sequences in one step
    kv_blocks: int | None = None
    block_tokens: int = 32
    prefill_chunk_tokens: int = 256
    threads: int | None = None
    prefix_cache: bool = True
    max_waiting: int = 4096  # requests; one more is refused at once
    step_limit_s: float = 180.0  # a step that takes longer is stuck: the process ends and says so

    def __post_init__(self) -> None:
        if self.dtype in LATER_DTYPES:
            raise InputError(f"dtype {self.dtype} is not available yet in this version.")
        if self.dtype not in DTYPES:
            raise InputError(f"dtype {self.dtype!r} is unknown; choose one of {', '.join(DTYPES)}.")
        for name in (
            "max_batch",
            "kv_blocks",
            "block_tokens",
            "prefill_chunk_tokens",
            "threads",
            "max_waiting",
        ):
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

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)
