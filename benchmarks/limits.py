"""The fastest that a workload could be on a machine, by arithmetic: no engine can do with less.

Work and traffic may overlap perfectly, so a workload takes at least as long as the longer of both:

- arithmetic: two operations a weight and token in the linear layers, two a weight of the output layer for
  each token that is sampled, four a (token, context token) pair, head dimension and head in attention; what
  prompts share is computed once
- traffic: all weights are read at least once in each of `out` passes (they are larger than the caches), and
  each decoded token reads the keys and values of its context
"""

import json
from dataclasses import dataclass
from pathlib import Path

from benchmarks.machine import Peaks
from benchmarks.peers.protocol import Job

WEIGHT_BYTES = {"float32": 4.0, "bfloat16": 2.0, "int8": 1.0, "int4": 0.5}
CACHE_BYTES = {"float32": 4, "bfloat16": 2, "int8": 2, "int4": 2}


@dataclass(frozen=True, kw_only=True)
class Shape:
    """Of a decoder: `linear` weights are used for every token, `head` weights for every sampled one."""

    linear: int
    head: int
    layers: int
    heads: int
    kv_heads: int
    head_dim: int


@dataclass(frozen=True, kw_only=True)
class Limit:
    """`compute_s` and `traffic_s` for one workload; the longer of both is the limit."""

    compute_s: float
    traffic_s: float

    @property
    def seconds(self) -> float:
        return max(self.compute_s, self.traffic_s)

    @property
    def bound(self) -> str:
        return "compute" if self.compute_s >= self.traffic_s else "memory"


def shape_of(model: Path) -> Shape:
    """From the configuration of a model folder with gated feed-forward layers (Llama and its kin)."""
    config = json.loads((model / "config.json").read_text(encoding="utf-8"))
    heads, hidden = config["num_attention_heads"], config["hidden_size"]
    kv_heads = config.get("num_key_value_heads") or heads
    head_dim = config.get("head_dim") or hidden // heads
    attention = hidden * head_dim * (heads + 2 * kv_heads) + heads * head_dim * hidden
    feed_forward = 3 * hidden * config["intermediate_size"]
    return Shape(
        linear=config["num_hidden_layers"] * (attention + feed_forward),
        head=hidden * config["vocab_size"],
        layers=config["num_hidden_layers"],
        heads=heads,
        kv_heads=kv_heads,
        head_dim=head_dim,
    )


def operations(shape: Shape, job: Job) -> float:
    """Arithmetic operations that the job needs."""
    pair = 4 * shape.heads * shape.head_dim * shape.layers

    def tokens_after(start: int, stop: int) -> float:
        """Tokens at positions start … stop - 1, each attending to all up to itself."""
        pairs = (stop * (stop + 1) - start * (start + 1)) / 2
        return 2 * shape.linear * (stop - start) + pair * pairs

    own = sum(tokens_after(job.shared, len(prompt) + job.out - 1) for prompt in job.prompts)
    sampled = 2 * shape.head * job.out * len(job.prompts)
    return tokens_after(0, job.shared) + own + sampled


def traffic_bytes(shape: Shape, job: Job, dtype: str) -> float:
    """Bytes of weights and of the cache that the job needs read."""
    weights = (shape.linear + shape.head) * WEIGHT_BYTES[dtype] * job.out
    token = 2 * shape.kv_heads * shape.head_dim * shape.layers * CACHE_BYTES[dtype]
    decoded = job.out - 1
    own = sum((len(prompt) - job.shared) * decoded + decoded * (decoded + 1) / 2 for prompt in job.prompts)
    return weights + token * (own + job.shared * decoded)


def limit(shape: Shape, job: Job, dtype: str, peaks: Peaks) -> Limit:
    return Limit(
        compute_s=operations(shape, job) / peaks.flops(dtype),
        traffic_s=traffic_bytes(shape, job, dtype) / peaks.read_bytes,
    )
