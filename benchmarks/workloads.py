"""The five workloads and the Poisson load, as token ids that depend only on name, scale and vocabulary."""

import random
from dataclasses import dataclass

from benchmarks.peers.protocol import Job

NAMES = ("mixed", "decode", "prefix", "prefill", "single")
POISSON = "poisson"
FIRST_ID, LAST_ID = 100, 40_000  # beyond the special tokens, inside every vocabulary measured here
POISSON_SHARE = 0.7  # of the capacity on `mixed`


@dataclass(frozen=True)
class Workload:
    """`counted`: the tokens whose number a second is compared, of input or of output."""

    name: str
    text: str
    job: Job
    counted: int


def build(name: str, scale: float = 1.0) -> Workload:
    """The workload with all lengths multiplied by `scale` (at least one token each)."""
    rng = random.Random(name)

    def length(tokens: int) -> int:
        return max(1, round(tokens * scale))

    def ids(tokens: int) -> list[int]:
        return [rng.randrange(FIRST_ID, LAST_ID) for _ in range(length(tokens))]

    shared: list[int] = []
    match name:
        case "mixed":
            prompts, out = [ids(rng.randrange(32, 513)) for _ in range(32)], length(64)
            text = f"32 × ({length(32)}–{length(512)} in, {out} out)"
        case "decode":
            prompts, out = [ids(16) for _ in range(32)], length(128)
            text = f"32 × ({length(16)} in, {out} out)"
        case "prefix":
            shared = ids(512)
            prompts, out = [shared + ids(32) for _ in range(32)], length(32)
            text = f"32 × ({len(shared)} shared + {length(32)} in, {out} out)"
        case "prefill":
            prompts, out = [ids(1024) for _ in range(8)], 1
            text = f"8 × {length(1024)} in (input tokens/s)"
        case "single":
            prompts, out = [ids(128)], length(128)
            text = f"{length(128)} in, {out} out"
        case _:
            raise ValueError(f"there is no workload {name!r}")
    counted = sum(map(len, prompts)) if name == "prefill" else out * len(prompts)
    return Workload(name, text, Job(prompts=prompts, out=out, shared=len(shared)), counted)


def poisson(mixed: Workload, capacity_tokens_per_s: float, count: int) -> tuple[Job, float]:
    """`count` requests as in `mixed`, arriving at 70 % of the capacity, and the rate in requests a second."""
    rate = POISSON_SHARE * capacity_tokens_per_s / mixed.job.out
    rng = random.Random(POISSON)
    prompts, arrivals_s, at_s = [], [], 0.0
    for number in range(count):
        lengths = mixed.job.prompts[number % len(mixed.job.prompts)]
        prompts.append([rng.randrange(FIRST_ID, LAST_ID) for _ in lengths])
        arrivals_s.append(at_s)
        at_s += rng.expovariate(rate)
    return Job(prompts=prompts, out=mixed.job.out, arrivals_s=arrivals_s), rate
