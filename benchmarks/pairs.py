"""Two sides measured in turn, A, B, A, B …, so that what else the machine does falls on both alike."""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from benchmarks.peers.protocol import Job
from benchmarks.worker import Measurement, Worker


@dataclass(frozen=True)
class Spread:
    """Median and range of one figure over the repetitions."""

    median: float
    least: float
    most: float

    @classmethod
    def of(cls, values: Sequence[float]) -> "Spread":
        return cls(statistics.median(values), min(values), max(values))

    def as_json(self) -> dict[str, float]:
        return {"median": self.median, "min": self.least, "max": self.most}


@dataclass
class Pair:
    """The repetitions of one workload on product and peer; entry i of both ran next to each other."""

    workload: str
    text: str
    peer: str
    dtype: str
    peer_dtype: str
    counted: int
    product: list[Measurement] = field(default_factory=list)
    other: list[Measurement] = field(default_factory=list)

    @property
    def product_rate(self) -> Spread:
        """Tokens a second by the wall."""
        return Spread.of([self.counted / one.result.wall_s for one in self.product])

    @property
    def other_rate(self) -> Spread:
        return Spread.of([self.counted / one.result.wall_s for one in self.other])

    @property
    def ratio(self) -> Spread:
        """Product over peer, from runs next to each other; above 1 the product is faster."""
        both = zip(self.product, self.other, strict=True)
        return Spread.of([other.result.wall_s / own.result.wall_s for own, other in both])

    @property
    def cpu_ratio(self) -> Spread:
        """The same by processor seconds, which other work on the machine spoils less."""
        both = zip(self.product, self.other, strict=True)
        return Spread.of([other.cpu_s / own.cpu_s for own, other in both])

    @property
    def cpu_s(self) -> tuple[float, float]:
        """Median processor seconds of product and peer."""
        return (
            statistics.median(one.cpu_s for one in self.product),
            statistics.median(one.cpu_s for one in self.other),
        )

    @property
    def load(self) -> tuple[float, float]:
        """Least and most load average of the machine before the runs (the runs themselves are part of it)."""
        loads = [one.load for one in [*self.product, *self.other]]
        return min(loads), max(loads)

    @property
    def agreement(self) -> float:
        """Share of requests whose first token is the same on both sides."""
        own, other = self.product[0].result.first_ids, self.other[0].result.first_ids
        return sum(a == b for a, b in zip(own, other, strict=True)) / len(own)

    @property
    def same_answers(self) -> float | None:
        """Share of requests that both sides answer alike to the last token; None where ids are not told."""
        own, other = self.product[0].result.answers, self.other[0].result.answers
        if not own or not other:
            return None
        return sum(a == b for a, b in zip(own, other, strict=True)) / len(own)

    def as_json(self) -> dict[str, Any]:
        return {
            "workload": self.workload,
            "text": self.text,
            "peer": self.peer,
            "dtype": self.dtype,
            "peer_dtype": self.peer_dtype,
            "tokens_per_s": self.product_rate.as_json(),
            "peer_tokens_per_s": self.other_rate.as_json(),
            "ratio": self.ratio.as_json(),
            "cpu_ratio": self.cpu_ratio.as_json(),
            "cpu_s": self.cpu_s[0],
            "peer_cpu_s": self.cpu_s[1],
            "first_token_agreement": self.agreement,
            "same_answers": self.same_answers,
            "load": list(self.load),
            "repetitions": len(self.product),
        }


def measure(pair: Pair, product: Worker, other: Worker, job: Job, repetitions: int) -> Pair:
    """Run the job on both in turn, after one short run of each that is thrown away."""
    warm = Job(prompts=[job.prompts[0][:16]], out=4)
    for worker in (product, other):
        worker.run(warm)
    for _ in range(repetitions):
        for worker, runs in ((product, pair.product), (other, pair.other)):
            runs.append(worker.run(job))
    return pair


def percentile(values: Sequence[float], share: float) -> float:
    """By nearest rank: a value that was observed."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(len(ordered) * share) - 1)]


def latencies(runs: Sequence[Measurement]) -> dict[str, float | None]:
    """Percentiles of TTFT and TPOT over the requests of all runs, in ms; None where there are none."""
    ttft = [value for one in runs for value in one.result.ttft_ms]
    tpot = [value for one in runs for value in one.result.tpot_ms]
    return {
        "ttft_p50_ms": percentile(ttft, 0.50) if ttft else None,
        "ttft_p99_ms": percentile(ttft, 0.99) if ttft else None,
        "tpot_p50_ms": percentile(tpot, 0.50) if tpot else None,
        "tpot_p99_ms": percentile(tpot, 0.99) if tpot else None,
    }
