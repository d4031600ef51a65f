"""NVIDIA devices through NVML, where `nvidia-ml-py` is installed; elsewhere nothing is observed."""

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
        try:
            found["gpu_power_w"] = (
                sum(nvml.nvmlDeviceGetPowerUsage(device) for device in self._devices) / 1000.0
            )
        except nvml.NVMLError:
            return found  # some devices do not tell their power
        return found

    def close(self) -> None:
        """Let go of NVML; further samples are empty."""
        if self._nvml is not None:
            self._nvml.nvmlShutdown()
            self._nvml = None
