"""A GPU that is not there: events on a made-up timer, recordings made again, kernels in plain torch."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch

from inference.engine.device import CudaDevice

MIB = 2**20


class FakeEvent:
    """An event that is reached at once, on a device timer that runs by itself."""

    def __init__(self, cuda: "FakeCuda") -> None:
        self._cuda = cuda
        self.device_ms: float | None = None

    def record(self) -> None:
        self.device_ms = self._cuda.device_ms()
        self._cuda.recorded += 1

    def synchronize(self) -> None:
        assert self.device_ms is not None
        self._cuda.synchronised += 1

    def elapsed_time(self, other: "FakeEvent") -> float:
        assert self.device_ms is not None
        assert other.device_ms is not None
        return other.device_ms - self.device_ms


@dataclass
class FakeCuda:
    """What `CudaDevice` calls of torch.cuda."""

    device_ms: Callable[[], float]
    recorded: int = 0
    synchronised: int = 0
    emptied: int = 0
    broken: bool = False
    free: int = 900 * MIB
    calls: list[str] = field(default_factory=list)

    def Event(self, *, enable_timing: bool) -> FakeEvent:
        assert enable_timing
        return FakeEvent(self)

    def set_device(self, index: int) -> None:
        self.calls.append(f"set_device {index}")

    def synchronize(self, _index: int) -> None:
        if self.broken:
            raise RuntimeError("CUDA error: an illegal memory access was encountered")
        self.synchronised += 1

    def mem_get_info(self, _index: int) -> tuple[int, int]:
        return self.free, 1000 * MIB

    def memory_allocated(self, _index: int) -> int:
        return 60 * MIB

    def memory_reserved(self, _index: int) -> int:
        return 100 * MIB

    def max_memory_allocated(self, _index: int) -> int:
        return 80 * MIB

    def empty_cache(self) -> None:
        self.emptied += 1

    def get_device_capability(self, _index: int) -> tuple[int, int]:
        return 9, 0

    def get_device_name(self, _index: int) -> str:
        return "Pretended GPU"


def fake_device(device_ms: Callable[[], float] | None = None) -> CudaDevice:
    """A CudaDevice whose tensors lie in the machine's memory."""
    cuda: Any = FakeCuda(device_ms or (lambda: time.monotonic_ns() / 1e6))
    return CudaDevice(0, api=cuda, torch_device=torch.device("cpu"))


class FakeRecorder:
    """A recording that is made again at each replay: on fixed inputs, into fixed outputs."""

    def __init__(self) -> None:
        self.recorded = 0

    def record(self, compute: Callable[[], None]) -> Callable[[], None]:
        self.recorded += 1
        compute()
        return compute


def plain_varlen(  # noqa: PLR0917  the order is torch's
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    cu_seq_q: torch.Tensor,
    cu_seq_k: torch.Tensor,
    max_q: int,
    max_k: int,
    *,
    scale: float,
    window_size: tuple[int, int],
    enable_gqa: bool,
    seqused_k: torch.Tensor,
) -> torch.Tensor:
    """What `torch.nn.attention.varlen.varlen_attn` promises: `(T, Hq, D)` over `(Tk, Hkv, D)`, causal or not.

    The last query of a sequence stands at its last used key.
    """
    for one in (cu_seq_q, cu_seq_k, seqused_k):
        assert one.dtype == torch.int32
        assert one.is_contiguous()
    assert query.stride(-1) == key.stride(-1) == value.stride(-1) == 1
    assert enable_gqa == (query.shape[1] != key.shape[1])
    assert query.shape[0] == int(cu_seq_q[-1])
    assert key.shape[0] == int(cu_seq_k[-1])
    out = torch.empty_like(query)
    left, right = window_size
    for number, used in enumerate(seqused_k.tolist()):
        first, last = cu_seq_q[number : number + 2].tolist()
        start, stop = cu_seq_k[number : number + 2].tolist()
        assert 0 < last - first <= max_q
        assert 0 < used <= min(max_k, stop - start)
        own = slice(start, start + used)
        groups = query.shape[1] // key.shape[1]
        keys, values = (one[own].repeat_interleave(groups, dim=1) for one in (key, value))
        scores = torch.einsum("qhd,khd->hqk", query[first:last], keys) * scale
        at = torch.arange(used - (last - first), used)[:, None]
        keys_at = torch.arange(used)[None, :]
        hidden = torch.zeros(scores.shape[1:], dtype=torch.bool)
        if left >= 0:
            hidden |= keys_at < at - left
        if right >= 0:
            hidden |= keys_at > at + right
        weights = scores.masked_fill(hidden, float("-inf")).softmax(dim=-1)
        out[first:last] = torch.einsum("hqk,khd->qhd", weights, values)
    return out
