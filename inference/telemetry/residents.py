"""Memory of a changing set of processes, and its peak between two moments."""

import threading
from collections.abc import Callable, Iterable

import psutil

from inference.telemetry.gpu import GpuSampler

SAMPLE_EVERY_S = 0.1


class Residents:
    """Samples the resident bytes of `pids()` from `start` to `stop`, and those on accelerators."""

    def __init__(self, pids: Callable[[], Iterable[int]]) -> None:
        self._pids = pids
        self._gpu = GpuSampler()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="residents", daemon=True)
        self.before_bytes = self.peak_bytes = self.after_bytes = 0
        self.device_before_bytes: int | None = None
        self.device_peak_bytes: int | None = None
        self.device_after_bytes: int | None = None

    def start(self) -> None:
        self.before_bytes, self.device_before_bytes = self._sample()
        self._thread.start()

    def stop(self) -> None:
        self._over.set()
        self._thread.join()
        self.after_bytes, self.device_after_bytes = self._sample()
        self._gpu.close()

    def _run(self) -> None:
        while not self._over.wait(SAMPLE_EVERY_S):
            self._sample()

    def _sample(self) -> tuple[int, int | None]:
        pids = list(self._pids())
        resident, on_device = resident_bytes(pids), self._gpu.process_bytes(pids)
        self.peak_bytes = max(self.peak_bytes, resident)
        if on_device is not None:
            self.device_peak_bytes = max(self.device_peak_bytes or 0, on_device)
        return resident, on_device


def resident_bytes(pids: Iterable[int]) -> int:
    """Resident bytes of these processes alone, without what they started; those that are gone have none."""
    total = 0
    for pid in pids:
        try:
            total += psutil.Process(pid).memory_info().rss
        except psutil.Error:
            continue
    return total
