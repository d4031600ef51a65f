"""Resources: this process's tree, servers' metrics in the formats seen, and devices where there are any."""

import os
import types
from typing import Any

import pytest

from inference.telemetry import (
    GpuSampler,
    HostSampler,
    gpu,
    parse,
)
from inference.telemetry.host import tree_rss_bytes

VLLM = """
# HELP vllm:num_requests_running Number of requests in model execution batches.
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="a\\"b"} 3.0
vllm:num_requests_running{engine="1",model_name="m"} 2.0
# TYPE vllm:num_requests_waiting gauge
vllm:num_requests_waiting{engine="0"} 7.0
# TYPE vllm:gpu_cache_usage_perc gauge
vllm:gpu_cache_usage_perc 0.5
# TYPE vllm:kv_cache_usage_perc gauge
vllm:kv_cache_usage_perc 0.25
# TYPE vllm:prefix_cache_queries counter
vllm:prefix_cache_queries_total{engine="0"} 100.0
vllm:prefix_cache_queries_created{engine="0"} 1.7e9
# TYPE vllm:prefix_cache_hits_total counter
vllm:prefix_cache_hits_total{engine="0"} 0.0
# TYPE vllm:iteration_tokens_total histogram
vllm:iteration_tokens_total_bucket{le="1.0"} 4.0
vllm:iteration_tokens_total_bucket{le="+Inf"} 10.0
vllm:iteration_tokens_total_sum 40.0
vllm:iteration_tokens_total_count 10.0
vllm:broken NaN
this line is nothing
"""


def test_families_types_and_labels_are_read() -> None:
    families = parse(VLLM)

    running = families["vllm:num_requests_running"]
    assert (running.type, running.total()) == ("gauge", 5.0)
    assert running.total(model_name='a"b') == 3.0
    assert running.total(model_name="other") is None
    tokens = families["vllm:iteration_tokens_total"]
    assert (tokens.type, tokens.total("_sum"), tokens.total("_count")) == ("histogram", 40.0, 10.0)
    assert "vllm:broken" not in families


def test_the_host_tells_memory_and_from_the_second_sample_on_the_processors_share() -> None:
    sampler = HostSampler(os.getpid())

    first, second = sampler.sample(), sampler.sample()

    assert first["rss_bytes"] > 10 * 2**20
    assert first["system_memory_bytes"] > first["system_memory_available_bytes"] > 0
    assert not {"cpu_share", "process_cpu_share"} & first.keys()
    assert 0.0 <= second["process_cpu_share"] <= 1.0
    assert 0.0 <= second["cpu_share"] <= 1.0


def test_a_process_that_is_gone_has_no_memory() -> None:
    assert tree_rss_bytes(2**22 + 1) is None
    assert "rss_bytes" not in HostSampler(2**22 + 1).sample()


def test_without_nvml_nothing_is_observed(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(name: str) -> Any:
        raise ImportError(name)

    monkeypatch.setattr(gpu, "import_module", absent)

    sampler = GpuSampler()
    assert sampler.sample() == {}
    sampler.close()


class Nvml(types.SimpleNamespace):
    """NVML with two devices, of which none tells its power."""

    NVML_TEMPERATURE_GPU = "core"

    class NVMLError(Exception):
        pass

    def nvmlInit(self) -> None: ...

    def nvmlDeviceGetCount(self) -> int:
        return 2

    def nvmlDeviceGetHandleByIndex(self, index: int) -> int:
        return index

    def nvmlDeviceGetMemoryInfo(self, device: int) -> Any:
        return types.SimpleNamespace(used=10 + device, free=90 - device, total=100)

    def nvmlDeviceGetUtilizationRates(self, device: int) -> Any:
        return types.SimpleNamespace(gpu=40 + device)

    def nvmlDeviceGetPowerUsage(self, device: int) -> int:
        raise self.NVMLError

    def nvmlDeviceGetTemperature(self, device: int, sensor: str) -> int:
        assert sensor == self.NVML_TEMPERATURE_GPU
        return 50 + device

    def nvmlDeviceGetComputeRunningProcesses(self, device: int) -> list[Any]:
        return [
            types.SimpleNamespace(pid=7, usedGpuMemory=100),
            types.SimpleNamespace(pid=8, usedGpuMemory=None if device else 5),
        ]

    def nvmlShutdown(self) -> None: ...


def test_devices_are_summed_and_the_busiest_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu, "import_module", lambda name: Nvml())

    sampler = GpuSampler()

    assert sampler.sample() == {
        "gpu_utilisation": 0.41,
        "gpu_memory_used_bytes": 21,
        "gpu_memory_bytes": 200,
        "gpu_temperature_c": 51,
    }
    assert (sampler.free_bytes(), sampler.free_bytes(1), sampler.free_bytes(2)) == (90, 89, None)
    assert sampler.process_bytes([7]) == 200
    assert sampler.process_bytes([7, 8]) is None  # of one of them a device does not tell
    assert sampler.process_bytes([9]) == 0
    sampler.close()
    assert sampler.sample() == {}
    assert sampler.process_bytes([7]) is sampler.free_bytes() is None
