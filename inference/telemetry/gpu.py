"""NVIDIA devices through NVML, where `nvidia-ml-py` is installed; elsewhere nothing is observed."""

from collections.abc import Iterable
from importlib import import_module
from typing import Any


class GpuSampler:
    """Samples every device; without NVML or a device each sample is empty."""

    def __init__(self) -> None:
        self._nvml: Any = None
        self._devices: list[Any] = []
        try:
            nvml = import_module("pynvml")
        except ImportError:
            return
        try:
            nvml.nvmlInit()
            self._devices = [
                nvml.nvmlDeviceGetHandleByIndex(index) for index in range(nvml.nvmlDeviceGetCount())
            ]
        except nvml.NVMLError:
            return
        self._nvml = nvml

    def sample(self) -> dict[str, Any]:
        """The GPU keys of `inference.telemetry`: the busiest device's utilisation, sums of the rest."""
        nvml = self._nvml
        if nvml is None or not self._devices:
            return {}
        try:
            memory = [nvml.nvmlDeviceGetMemoryInfo(device) for device in self._devices]
            busy = [nvml.nvmlDeviceGetUtilizationRates(device).gpu for device in self._devices]
        except nvml.NVMLError:
            return {}
        found = {
            "gpu_utilisation": max(busy) / 100.0,
            "gpu_memory_used_bytes": sum(item.used for item in memory),
            "gpu_memory_bytes": sum(item.total for item in memory),
        }
        for name, read in (("gpu_power_w", self._power_w), ("gpu_temperature_c", self._temperature_c)):
            try:
                found[name] = read()
            except nvml.NVMLError:
                continue  # some devices do not tell
        return found

    def process_bytes(self, pids: Iterable[int]) -> int | None:
        """Device memory of these processes; None where it is not told."""
        nvml, wanted = self._nvml, frozenset(pids)
        if nvml is None or not self._devices:
            return None
        try:
            running = [
                process
                for device in self._devices
                for process in nvml.nvmlDeviceGetComputeRunningProcesses(device)
                if process.pid in wanted
            ]
        except nvml.NVMLError:
            return None
        known = [process.usedGpuMemory for process in running if process.usedGpuMemory is not None]
        return sum(known) if len(known) == len(running) else None

    def free_bytes(self, index: int = 0) -> int | None:
        """Memory that can still be taken of one device; None where it is not told."""
        if self._nvml is None or index >= len(self._devices):
            return None
        try:
            return int(self._nvml.nvmlDeviceGetMemoryInfo(self._devices[index]).free)
        except self._nvml.NVMLError:
            return None

    def _power_w(self) -> float:
        """The sum of all devices."""
        return sum(self._nvml.nvmlDeviceGetPowerUsage(device) for device in self._devices) / 1000.0

    def _temperature_c(self) -> int:
        """The hottest device's."""
        sensor = self._nvml.NVML_TEMPERATURE_GPU
        return max(self._nvml.nvmlDeviceGetTemperature(device, sensor) for device in self._devices)

    def close(self) -> None:
        """Let go of NVML; further samples are empty."""
        if self._nvml is not None:
            self._nvml.nvmlShutdown()
            self._nvml = None
