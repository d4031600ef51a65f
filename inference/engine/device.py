"""Where the engine computes: the placement of tensors, the stamps of a step, and the memory of the device.

On CPU a step is stamped by the clock around it. A GPU computes behind the program's back, so there a step is
stamped by events in its stream (`DeviceClock`), and waited for once: where the sampled ids are fetched.
"""

import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import torch

from inference.engine import memory as machine
from inference.errors import TargetUnavailable

CUDA_NAME = re.compile(r"cuda(?::(\d+))?")
POOL_SHARE = 0.8  # of the memory that is free once the weights are there; the rest is for activations
ANCHOR_TRIES = 3  # the narrowest of so many readings of both clocks is taken
ANCHOR_EVERY_NS = 1_000_000_000  # milliseconds in float32 are then exact to 0.06 µs

_NS_PER_MS = 1_000_000
_MIB = 2**20


class DeviceLost(Exception):
    """The device answers nothing but errors from here on: only a new process can use it again."""


@dataclass(frozen=True)
class Stamps:
    """When a step began and ended, as `time.monotonic_ns()`; `device_ns` is what the device itself took."""

    start_ns: int
    end_ns: int
    device_ns: int | None = None


@dataclass(frozen=True)
class DeviceMemory:
    """Bytes: in tensors now and at most, taken from the device by this process, free on it, and its whole."""

    allocated: int
    peak: int
    reserved: int
    free: int
    total: int


class Device(Protocol):
    """What the engine asks of the place where it computes."""

    name: str  # "cpu", "cuda:0"
    torch_device: torch.device
    phase_pure: bool  # whether a step is chunks of prompts or single tokens, never both
    records_steps: bool  # whether decode steps are recorded and replayed

    def tensors(self, *columns: list[int]) -> list[torch.Tensor]:
        """The columns as int64 tensors on the device, in one transfer."""

    def begin(self, start_ns: int) -> None:
        """A step begins; `start_ns` is when the program turned to it.

        What was fetched since the step before (drafts that were guessed) belongs to it.
        """

    def fetch(self, ids: torch.Tensor) -> list[int]:
        """The sampled ids, once the device has them: the one place where a step waits."""

    def rows(self, logits: torch.Tensor) -> torch.Tensor:
        """Rows of logits on the host, for those who sample there."""

    def finish(self) -> Stamps:
        """The step is over; waits for it where nothing of it was fetched."""

    def pool_bytes(self) -> int:
        """The key-value pool that an engine takes where its size is not set."""

    def free_bytes(self) -> int:
        """Memory that can still be taken."""

    def memory(self) -> DeviceMemory | None:
        """The device's own memory; None where that is the machine's."""

    def clock_figures(self) -> dict[str, int]:
        """How well its clock is known, in ns; empty where it is the host's."""

    def shortage(self, error: BaseException) -> str | None:
        """What is to be told of an error that means memory has run out; None of any other."""

    def broken(self, error: BaseException) -> bool:
        """Whether nothing can be computed in this process after this error."""

    def release(self) -> None:
        """Give back what is taken but not in use."""

    def facts(self) -> dict[str, Any]:
        """What belongs into the evidence."""


class CpuDevice:
    """The processors and the memory of the machine."""

    name = "cpu"
    torch_device = torch.device("cpu")
    phase_pure = True
    records_steps = False

    def __init__(self) -> None:
        self._start_ns = 0

    def tensors(self, *columns: list[int]) -> list[torch.Tensor]:
        return [torch.tensor(column, dtype=torch.long) for column in columns]

    def begin(self, start_ns: int) -> None:
        self._start_ns = start_ns

    def fetch(self, ids: torch.Tensor) -> list[int]:
        return ids.tolist()

    def rows(self, logits: torch.Tensor) -> torch.Tensor:
        return logits

    def finish(self) -> Stamps:
        return Stamps(self._start_ns, time.monotonic_ns())

    def pool_bytes(self) -> int:
        return machine.pool_bytes()

    def free_bytes(self) -> int:
        return machine.available_bytes()

    def memory(self) -> DeviceMemory | None:
        return None

    def clock_figures(self) -> dict[str, int]:
        return {}

    def shortage(self, error: BaseException) -> str | None:
        return None

    def broken(self, error: BaseException) -> bool:
        return False

    def release(self) -> None:
        pass

    def facts(self) -> dict[str, Any]:
        return {"device": self.name, "cpu_capability": torch.backends.cpu.get_cpu_capability()}


class DeviceClock:
    """Translates events of a stream into `time.monotonic_ns()`.

    device   ──anchor────────────────event──►      elapsed between them: the device's own timer
    host     ──before│after───────────?─────►      ? = middle of before and after + elapsed

    The two clocks drift apart by some millionths, and elapsed milliseconds come as float32. Both errors
    grow with the distance from the anchor, so it is set anew every second, between two steps. `error_ns` is
    half the width of the reading, and `drift_ns` how far off the former anchor was by then.
    """

    def __init__(self, make_event: Callable[[], Any], now_ns: Callable[[], int] = time.monotonic_ns) -> None:
        self.error_ns = 0
        self.drift_ns = 0
        self._make_event = make_event
        self._now_ns = now_ns
        self._event: Any = None
        self._at_ns = 0

    def set_anchor(self) -> None:
        """Read both clocks together. The stream must be idle: what is queued before the event widens it."""
        best: tuple[int, int, Any] | None = None
        for _ in range(ANCHOR_TRIES):
            event = self._make_event()
            before_ns = self._now_ns()
            event.record()
            event.synchronize()
            after_ns = self._now_ns()
            if best is None or after_ns - before_ns < best[0]:
                best = after_ns - before_ns, (before_ns + after_ns) // 2, event
        assert best is not None
        width_ns, at_ns, event = best
        self.drift_ns = 0 if self._event is None else at_ns - self.to_host_ns(event)
        self.error_ns, self._at_ns, self._event = width_ns // 2, at_ns, event

    def to_host_ns(self, event: Any) -> int:
        """When an event that has passed was reached."""
        return self._at_ns + round(self._event.elapsed_time(event) * _NS_PER_MS)

    def is_due(self, now_ns: int) -> bool:
        return now_ns - self._at_ns > ANCHOR_EVERY_NS


class CudaDevice:
    """One GPU, by torch.cuda.

    `uses_events` off stamps steps by the host's clock alone, to measure what the events cost. `api` and
    `torch_device` are exchanged where the logic is tested without a GPU.
    """

    phase_pure = False
    records_steps = True

    def __init__(
        self, index: int, *, api: Any = torch.cuda, torch_device: torch.device | None = None
    ) -> None:
        self.name = f"cuda:{index}"
        self.torch_device = torch_device or torch.device("cuda", index)
        self.index = index
        self.uses_events = True
        self.api = api
        api.set_device(index)
        self.clock = DeviceClock(lambda: api.Event(enable_timing=True))
        self.clock.set_anchor()
        self._start, self._end = api.Event(enable_timing=True), api.Event(enable_timing=True)
        self._start_ns = 0
        self._ended = self._waited = self._on_host = False
        self._running = self._guessed = False

    def tensors(self, *columns: list[int]) -> list[torch.Tensor]:
        together = torch.tensor([one for column in columns for one in column], dtype=torch.long)
        placed = self.place(together)
        return list(placed.split([len(column) for column in columns]))

    def place(self, tensor: torch.Tensor) -> torch.Tensor:
        """A host tensor on the device: from pinned memory, in the order of the stream, without waiting."""
        if self.torch_device.type != "cuda":
            return tensor
        return tensor.pin_memory().to(self.torch_device, non_blocking=True)

    # -- stamps ---------------------------------------------------------------------------------------

    def begin(self, start_ns: int) -> None:
        self._start_ns = start_ns
        self._ended = self._waited = self._on_host = False
        self._running = True
        if self.uses_events:
            self._start.record()

    def fetch(self, ids: torch.Tensor) -> list[int]:
        if self._running:
            self._mark_end()
        else:
            self._guessed = True
        self._waited = len(ids) > 0  # of a step that completes nobody's tokens there is nothing to wait for
        return ids.tolist()

    def rows(self, logits: torch.Tensor) -> torch.Tensor:
        self._on_host = True  # the tokens will be there when the host has drawn them, not before
        return logits.to("cpu")

    def finish(self) -> Stamps:
        guessed = self._guessed
        self._running = self._guessed = False
        self._mark_end()
        if not self.uses_events:
            if not self._waited:
                self.api.synchronize(self.index)
            return Stamps(self._start_ns, time.monotonic_ns())
        self._end.synchronize()
        now_ns = time.monotonic_ns()
        start_ns = min(max(self.clock.to_host_ns(self._start), self._start_ns), now_ns)
        end_ns = min(max(self.clock.to_host_ns(self._end), start_ns), now_ns)
        if guessed:
            start_ns = self._start_ns
        device_ns = round(self._start.elapsed_time(self._end) * _NS_PER_MS)
        if self.clock.is_due(now_ns):
            self.clock.set_anchor()
        return Stamps(start_ns, now_ns if self._on_host else end_ns, device_ns)

    def _mark_end(self) -> None:
        if not self._ended and self.uses_events:
            self._end.record()
        self._ended = True

    # -- memory ---------------------------------------------------------------------------------------

    def pool_bytes(self) -> int:
        return int(POOL_SHARE * self.free_bytes())

    def free_bytes(self) -> int:
        """What the device has free, and what this process has taken of it and not in use."""
        free, _ = self.api.mem_get_info(self.index)
        unused = self.api.memory_reserved(self.index) - self.api.memory_allocated(self.index)
        return int(free + unused)

    def memory(self) -> DeviceMemory | None:
        free, total = self.api.mem_get_info(self.index)
        return DeviceMemory(
            allocated=int(self.api.memory_allocated(self.index)),
            peak=int(self.api.max_memory_allocated(self.index)),
            reserved=int(self.api.memory_reserved(self.index)),
            free=int(free),
            total=int(total),
        )

    def clock_figures(self) -> dict[str, int]:
        return {"device_clock_error_ns": self.clock.error_ns, "device_clock_drift_ns": self.clock.drift_ns}

    def shortage(self, error: BaseException) -> str | None:
        if not isinstance(error, torch.OutOfMemoryError):
            return None
        asked = re.search(r"Tried to allocate ([\d.]+ \w+)", str(error))
        needed = f"{asked[1]} more were needed, " if asked else ""
        free, total = self.api.mem_get_info(self.index)
        return f"{self.name} is out of memory: {needed}{free / _MIB:.0f} of {total / _MIB:.0f} MiB are free."

    def broken(self, error: BaseException) -> bool:
        if not isinstance(error, RuntimeError) or isinstance(error, torch.OutOfMemoryError):
            return False
        try:
            self.api.synchronize(self.index)
        except RuntimeError:
            return True  # such errors stick: every later call gives them again
        return False

    def release(self) -> None:
        self.api.empty_cache()

    def facts(self) -> dict[str, Any]:
        major, minor = self.api.get_device_capability(self.index)
        _, total = self.api.mem_get_info(self.index)
        return {
            "device": self.name,
            "device_name": self.api.get_device_name(self.index),
            "device_capability": f"{major}.{minor}",
            "device_memory_bytes": int(total),
            "cuda": torch.version.cuda,
            "cpu_capability": torch.backends.cpu.get_cpu_capability(),
        }


def choose(name: str) -> Device:
    """The device of a name (`auto`, `cpu`, `cuda` or `cuda:N`); raises TargetUnavailable where it is not."""
    if name == "cpu" or (name == "auto" and not torch.cuda.is_available()):
        return CpuDevice()
    found = CUDA_NAME.fullmatch("cuda" if name == "auto" else name)
    if found is None:
        raise TargetUnavailable(f"There is no device {name!r}; choose auto, cpu, cuda or cuda:N.")
    if not torch.cuda.is_available():
        raise TargetUnavailable(f"{name} is not available: {_why_not()}.")
    index, count = int(found[1] or 0), torch.cuda.device_count()
    if index >= count:
        raise TargetUnavailable(f"There is no cuda:{index}: this machine has {count} GPU{'s'[: count != 1]}.")
    try:
        return CudaDevice(index)
    except RuntimeError as error:
        raise TargetUnavailable(f"cuda:{index} does not answer: {str(error).splitlines()[0]}.") from error


def _why_not() -> str:
    if torch.version.cuda is None:
        return f"this PyTorch ({torch.__version__}) is built without CUDA"
    return f"PyTorch ({torch.__version__}, CUDA {torch.version.cuda}) sees no GPU, or no driver for it"
