"""The definition of a scenario: which requests, how long, how many at once, what is interrupted."""

from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Interruption:
    """Every `every`-th request is left in this phase (`queue`, `prefill` or `decode`)."""

    phase: str
    every: int = 4
    after_tokens: int = 4


@dataclass(frozen=True, kw_only=True)
class Limit:
    """An upper limit on one percentile of one phase's figure, e.g. p95 of ttft_ms ≤ 800."""

    metric: str
    percentile: str
    max: float


@dataclass(frozen=True, kw_only=True)
class ScenarioSpec:
    """What one run of a scenario does. Lengths are tokens, `rate` requests a second (open loop)."""

    input_tokens: int
    output_tokens: int
    concurrency: int
    requests: int
    rate: float | None = None
    warmup_requests: int = 1
    distinct_prompts: int = 8
    shared_prefix_tokens: int = 0
    language: str = "en"  # en, zh or mixed
    prompts: tuple[str, ...] = ()  # real prompts; generated ones of `input_tokens` when empty
    temperature: float = 0.0
    seed: int = 0
    timeout_s: float = 120.0
    tenants: tuple[str, ...] = ()
    applications: tuple[str, ...] = ()
    interruptions: tuple[Interruption, ...] = ()
    limits: tuple[Limit, ...] = field(default_factory=tuple)

    def as_json(self) -> dict[str, Any]:
        """The form stored in `ScenarioVersion.spec` and hashed."""
        return asdict(self)
