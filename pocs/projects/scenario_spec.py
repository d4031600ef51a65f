"""The definition of a scenario: which requests, how long, how many at once, what is interrupted."""

from dataclasses import asdict, dataclass, field
from typing import Any

from pocs.common.errors import InvalidInput
from pocs.projects.limits import Limit, only_total, read_limit
from pocs.projects.output_checks import (
    CHECKS_MAX,
    MATCHES,
    QUALITY_MAX,
    Check,
    QualityItem,
    read_check,
    read_quality,
)
from pocs.projects.scenario_fields import Reader
from pocs.projects.scenario_load import LOAD_DEFAULTS, check_load, read_load

PHASES = ("queue", "prefill", "decode")
LANGUAGES = ("en", "zh", "mixed")


#: fields that came later: an empty one is left out, so that digests of earlier specs stay what they were
LATER_FIELDS = frozenset({"options", "checks", "quality"})


@dataclass(frozen=True, kw_only=True)
class Interruption:
    """Every `every`-th request is left in this phase (`queue`, `prefill` or `decode`)."""

    phase: str
    every: int = 4
    after_tokens: int = 4


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
    options: dict[str, Any] = field(default_factory=dict)  # the kind's own fields (`scenario_kinds`)
    checks: tuple[Check, ...] = ()
    quality: tuple[QualityItem, ...] = ()
    quality_match: str = "exact"  # exact or contains
    arrival: str = ""  # shape of load (`scenario_load`)
    input_lengths: str = ""
    output_lengths: str = ""
    turns: int = 1
    think_time_s: float = 0.0
    distinct_prefixes: int = 1
    prefix_share: float = 1.0
    workload: str = ""
    too_long: str = "reject"

    def as_json(self) -> dict[str, Any]:
        """The form stored in `ScenarioVersion.spec` and hashed; later fields only where not empty."""
        found = asdict(self) | {
            "prompts": list(self.prompts),
            "tenants": list(self.tenants),
            "applications": list(self.applications),
            "interruptions": [asdict(item) for item in self.interruptions],
            "limits": [item.as_json() for item in self.limits],
            "checks": [item.as_json() for item in self.checks],
            "quality": [asdict(item) for item in self.quality],
        }
        if not self.quality:
            del found["quality_match"]
        kept = {name: value for name, value in found.items() if value or name not in LATER_FIELDS}
        absent = object()
        return {name: value for name, value in kept.items() if value != LOAD_DEFAULTS.get(name, absent)}

    @classmethod
    def from_json(cls, data: Any, *, pointer: str = "") -> "ScenarioSpec":
        """The spec in `data`, or InvalidInput naming every wrong field below `pointer`.

        Lengths, concurrency and the number of requests have no default: a figure without them says
        nothing. A limit without phase and percentile is refused, as is one on the total time alone.
        """
        read = Reader(data, pointer)
        values: dict[str, Any] = {
            "input_tokens": read.integer("input_tokens", 1, 1_000_000),
            "output_tokens": read.integer("output_tokens", 1, 100_000),
            "concurrency": read.integer("concurrency", 1, 4_096),
            "requests": read.integer("requests", 1, 100_000),
            "rate": read.number("rate", 0, 100_000, default=None, above=True),
            "warmup_requests": read.integer("warmup_requests", 0, 1_000, default=1),
            "distinct_prompts": read.integer("distinct_prompts", 1, 100_000, default=8),
            "shared_prefix_tokens": read.integer("shared_prefix_tokens", 0, 1_000_000, default=0),
            "language": read.choice("language", LANGUAGES, default="en"),
            "prompts": read.texts("prompts", longest=200_000, most=2_000),
            "temperature": read.number("temperature", 0, 2, default=0.0),
            "seed": read.integer("seed", 0, 2**63 - 1, default=0),
            "timeout_s": read.number("timeout_s", 0, 86_400, default=120.0, above=True),
            "tenants": read.texts("tenants", longest=120, most=100),
            "applications": read.texts("applications", longest=120, most=100),
            "interruptions": tuple(read.objects("interruptions", _interruption)),
            "limits": tuple(read.objects("limits", read_limit)),
            "options": read.mapping("options"),
            "checks": tuple(read.objects("checks", read_check)),
            "quality": tuple(read.objects("quality", read_quality)),
            "quality_match": read.choice("quality_match", MATCHES, default="exact"),
        }
        values |= read_load(read)
        read.at_most("checks", CHECKS_MAX)
        read.at_most("quality", QUALITY_MAX)
        read.refuse_unknown()
        _check_together(read, values)
        if read.errors:
            raise InvalidInput(read.summary(), read.errors)
        return cls(**values)


def _interruption(read: Reader) -> Interruption:
    return Interruption(
        phase=read.choice("phase", PHASES),
        every=read.integer("every", 1, 1_000, default=4),
        after_tokens=read.integer("after_tokens", 0, 100_000, default=4),
    )


def _check_together(read: Reader, values: dict[str, Any]) -> None:
    """What single fields cannot say: which values contradict each other."""
    if read.errors:
        return
    if values["requests"] < values["concurrency"]:
        read.concurrency_never_reached(values["requests"], values["concurrency"])
    if values["shared_prefix_tokens"] > values["input_tokens"]:
        read.prefix_longer_than_input(values["input_tokens"])
    check_load(read, values)
    if only_total(values["limits"]):
        read.total_time_alone()
