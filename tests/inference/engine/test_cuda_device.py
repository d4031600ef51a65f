"""The stamps and the memory of a GPU, with events on a made-up timer."""

import itertools
import time
from typing import Any

import pytest
import torch

from inference.engine import device as devices
from inference.engine.device import CpuDevice, CudaDevice, DeviceClock, choose
from inference.errors import TargetUnavailable
from tests.inference.engine.fake_cuda import MIB, FakeCuda, FakeEvent, fake_device

MS = 1_000_000


class Timer:
    """A device timer that a test sets; what it is read for comes in the order of the script."""

    def __init__(self, *readings_ms: float) -> None:
        self.readings = iter(readings_ms)

    def __call__(self) -> float:
        return next(self.readings)


def clock(cuda: FakeCuda, host_ns: list[int]) -> DeviceClock:
    readings = iter(host_ns)
    return DeviceClock(lambda: FakeEvent(cuda), lambda: next(readings))


# -- the clock ----------------------------------------------------------------------------------------


def test_the_narrowest_reading_of_both_clocks_is_the_anchor() -> None:
    cuda = FakeCuda(Timer(10.0, 11.0, 12.0, 15.5))
    found = clock(cuda, [0, 9000, 1_000_000, 1_000_400, 2_000_000, 2_005_000])
    found.set_anchor()
    assert found.error_ns == 200
    event = FakeEvent(cuda)
    event.record()  # 4.5 ms after the second reading
    assert found.to_host_ns(event) == 1_000_200 + 4_500_000


def test_a_new_anchor_tells_how_far_off_the_former_was() -> None:
    cuda = FakeCuda(Timer(*([100.0] * 3), *([1100.0] * 3)))
    late = 1000 * MS + 3000  # the host's clock is 3 µs ahead after a second
    found = clock(cuda, [0, 0, 0, 0, 0, 0, *[late] * 6])
    found.set_anchor()
    assert found.drift_ns == 0
    assert not found.is_due(999 * MS)
    assert found.is_due(1001 * MS)
    found.set_anchor()
    assert found.drift_ns == 3000
    assert not found.is_due(late + 999 * MS)


# -- a step -------------------------------------------------------------------------------------------


def step(device: CudaDevice, *, fetch: bool = True, on_host: bool = False) -> Any:
    start_ns = time.monotonic_ns()
    device.begin(start_ns)
    if fetch:
        assert device.fetch(torch.tensor([3, 5])) == [3, 5]
    if on_host:
        device.rows(torch.zeros(1, 4))
    stamps = device.finish()
    assert start_ns <= stamps.start_ns <= stamps.end_ns <= time.monotonic_ns()
    return stamps


def test_a_step_is_stamped_by_the_device() -> None:
    at = [0.0]
    device = fake_device(lambda: at[0])
    anchor_ns = device.clock._at_ns
    start_ns = time.monotonic_ns()
    passed_ms = (start_ns - anchor_ns) / MS
    device.begin(start_ns)
    device._start.device_ms = passed_ms + 0.02
    at[0] = passed_ms + 0.03
    device.fetch(torch.tensor([1]))
    while time.monotonic_ns() < start_ns + 0.05 * MS:
        pass
    stamps = device.finish()
    assert abs(stamps.start_ns - (start_ns + 20_000)) < 100
    assert abs(stamps.end_ns - (start_ns + 30_000)) < 100
    assert abs(stamps.device_ns - 10_000) < 100


def test_stamps_never_leave_what_the_host_has_seen() -> None:
    for device_ms in (-1e6, 1e6):  # a timer that says something impossible
        counter = itertools.chain([0.0] * 3, itertools.repeat(device_ms))
        step(fake_device(lambda readings=counter: next(readings)))


def test_the_end_is_the_fetch_not_what_the_host_does_later() -> None:
    device = fake_device()
    device.begin(time.monotonic_ns())
    device.fetch(torch.tensor([1]))
    fetched_ns = time.monotonic_ns()
    while time.monotonic_ns() < fetched_ns + 0.2 * MS:
        pass
    assert device.finish().end_ns <= fetched_ns + device.clock.error_ns + 1000


def test_tokens_drawn_on_the_host_are_there_when_the_host_has_drawn_them() -> None:
    device = fake_device()
    device.begin(time.monotonic_ns())
    device.fetch(torch.tensor([1]))
    device.rows(torch.zeros(1, 4))
    drawn_ns = time.monotonic_ns()
    assert device.finish().end_ns >= drawn_ns


def test_a_step_without_tokens_is_waited_for() -> None:
    device = fake_device()
    cuda: FakeCuda = device.api
    before = cuda.synchronised
    step(device, fetch=False)
    assert cuda.synchronised == before + 1


def test_without_events_the_clock_of_the_host_stamps() -> None:
    device = fake_device()
    device.uses_events = False
    cuda: FakeCuda = device.api
    recorded, before = cuda.recorded, cuda.synchronised
    assert step(device).device_ns is None
    assert cuda.synchronised == before  # the fetch has waited
    step(device, fetch=False)
    assert (cuda.recorded, cuda.synchronised) == (recorded, before + 1)
    device.begin(time.monotonic_ns())
    assert device.fetch(torch.tensor([], dtype=torch.long)) == []  # of a chunk there is nothing to fetch
    device.finish()
    assert cuda.synchronised == before + 2


def test_a_step_in_which_somebody_guesses_begins_with_that() -> None:
    at = [0.0]
    device = fake_device(lambda: at[0])
    passed_ms = (time.monotonic_ns() - device.clock._at_ns) / MS
    begun_ns = time.monotonic_ns()
    at[0] = passed_ms + 5.0  # the forward pass: far behind the guesses
    device.fetch(torch.tensor([4]))  # a draft, while the step is scheduled
    device.begin(begun_ns)
    device.fetch(torch.tensor([1]))
    assert device.finish().start_ns == begun_ns
    device.begin(begun_ns)
    assert device.finish().start_ns > begun_ns


def test_the_anchor_is_set_anew_between_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    device = fake_device()
    first = device.clock._event
    step(device)
    assert device.clock._event is first
    monkeypatch.setattr(devices, "ANCHOR_EVERY_NS", 0)
    step(device)
    assert device.clock._event is not first


def test_a_cpu_step_is_stamped_by_the_clock_around_it() -> None:
    device = CpuDevice()
    before_ns = time.monotonic_ns()
    device.begin(before_ns)
    stamps = device.finish()
    assert (stamps.start_ns, stamps.device_ns) == (before_ns, None)
    assert before_ns <= stamps.end_ns <= time.monotonic_ns()


# -- tensors and memory -------------------------------------------------------------------------------


@pytest.mark.parametrize("device", [CpuDevice(), fake_device()])
def test_columns_become_tensors(device: Any) -> None:
    columns = [[1, 2, 3], [], [4]]
    found = device.tensors(*columns)
    assert [tensor.tolist() for tensor in found] == columns
    assert {tensor.dtype for tensor in found} == {torch.int64}


def test_memory_that_is_taken_but_not_in_use_counts_as_free() -> None:
    device = fake_device()
    assert device.free_bytes() == 940 * MIB
    assert device.pool_bytes() == int(0.8 * 940 * MIB)
    memory = device.memory()
    assert memory is not None
    figures = (memory.allocated, memory.peak, memory.reserved, memory.free, memory.total)
    assert [figure // MIB for figure in figures] == [60, 80, 100, 900, 1000]


def test_a_shortage_says_what_was_needed_and_what_is_free() -> None:
    device = fake_device()
    error = torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has …")
    assert device.shortage(error) == (
        "cuda:0 is out of memory: 2.00 GiB more were needed, 900 of 1000 MiB are free."
    )
    assert device.shortage(RuntimeError("something else")) is None
    assert CpuDevice().shortage(error) is None


def test_only_an_error_that_sticks_breaks_the_device() -> None:
    device = fake_device()
    cuda: FakeCuda = device.api
    error = RuntimeError("shapes do not fit")
    assert not device.broken(error)
    cuda.broken = True
    assert device.broken(error)
    assert not device.broken(torch.OutOfMemoryError("CUDA out of memory."))
    assert not device.broken(ValueError("not the device's"))
    assert not CpuDevice().broken(error)


def test_the_facts_name_the_device() -> None:
    facts = fake_device().facts()
    assert facts["device"] == "cuda:0"
    assert facts["device_name"] == "Pretended GPU"
    assert facts["device_capability"] == "9.0"
    assert facts["device_memory_bytes"] == 1000 * MIB
    assert CpuDevice().facts()["device"] == "cpu"


# -- the choice ---------------------------------------------------------------------------------------


def test_without_a_gpu_auto_is_the_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert choose("auto").name == "cpu"
    assert choose("cpu").name == "cpu"
    with pytest.raises(TargetUnavailable, match="cuda is not available: "):
        choose("cuda")


def test_with_gpus_auto_is_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(devices, "CudaDevice", lambda index: f"gpu {index}")
    assert choose("auto") == choose("cuda") == choose("cuda:0") == "gpu 0"
    assert choose("cuda:1") == "gpu 1"
    with pytest.raises(TargetUnavailable, match="There is no cuda:2: this machine has 2 GPUs"):
        choose("cuda:2")
    with pytest.raises(TargetUnavailable, match="There is no device 'tpu'"):
        choose("tpu")


def test_a_gpu_that_does_not_answer_is_said_to(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: int) -> None:
        raise RuntimeError("CUDA error: all devices are busy\nmore")

    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    monkeypatch.setattr(devices, "CudaDevice", refuse)
    with pytest.raises(TargetUnavailable, match="cuda:0 does not answer: CUDA error: all devices are busy"):
        choose("cuda")
