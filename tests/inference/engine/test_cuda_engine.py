"""The engine on a GPU that is not there: its device, its mixed steps, its recordings and its ends."""

import itertools
import random
from collections.abc import Callable
from typing import Any

import pytest
import torch

from inference.engine import cuda_graphs, cuda_runner, engine, sampler, telemetry
from inference.engine.cuda_runner import CudaRunner, place
from inference.engine.device import CpuDevice, CudaDevice, DeviceLost
from inference.engine.loading import LoadedModel
from inference.engine.options import EngineOptions
from inference.engine.scheduler import Step, Work
from inference.engine.sequence import Sequence
from inference.engine.speculation import PromptLookup
from inference.errors import InputError, TargetUnavailable
from inference.telemetry import KEYS
from tests.inference.engine.conftest import PLAIN, Bench, Result, loaded, reference, tiny_config, tiny_model
from tests.inference.engine.fake_cuda import MIB, FakeCuda, FakeRecorder, fake_device, plain_varlen

Make = Callable[..., Bench]

#: one for each way of attention: plain, sliding windows, softcap, sinks
ARCHITECTURES: dict[str, dict[str, Any]] = {
    "llama": {},
    "mistral": {"sliding_window": 12},
    "gemma2": {"sliding_window": 12, "query_pre_attn_scalar": 8, "attn_logit_softcapping": 5.0},
    "gpt_oss": {"sliding_window": 12, "num_local_experts": 4, "num_experts_per_tok": 2},
}


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch) -> CudaDevice:
    found = fake_device()
    monkeypatch.setattr(engine, "choose", lambda _: found)
    monkeypatch.setattr(cuda_graphs, "CudaRecorder", FakeRecorder)
    return found


@pytest.fixture
def with_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuda_runner, "find_varlen", lambda _: plain_varlen)


def prompt(length: int, seed: int) -> list[int]:
    rng = random.Random(seed)
    return [rng.choice(PLAIN) for _ in range(length)]


def runner(bench: Bench) -> CudaRunner:
    found = bench.engine.runner
    assert isinstance(found, CudaRunner)
    return found


def arrive(bench: Bench, prompts: list[list[int]], out: int, **fields: Any) -> list[Result]:
    """The first two, and the others while they are answered."""
    results = [bench.submit(ids, max_tokens=out, **fields) for ids in prompts[:2]]
    bench.step(3)
    results += [bench.submit(ids, max_tokens=out, **fields) for ids in prompts[2:]]
    bench.finish()
    return results


# -- the same tokens ----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ARCHITECTURES)
def test_mixed_and_recorded_steps_equal_generate(device: CudaDevice, kind: str) -> None:
    model = tiny_model(tiny_config(kind, **ARCHITECTURES[kind]))
    prompts = [prompt(length, length) for length in (1, 23, 5, 41)]
    expected = [reference(model, ids, 10) for ids in prompts]
    bench = Bench(loaded(model), cuda_graphs="lazy")
    assert [result.ids for result in arrive(bench, prompts, 10)] == expected
    assert bench.engine.statistics.steps["mixed"] > 0
    graphs = runner(bench).graphs
    assert graphs is not None
    assert (graphs.reason, graphs.replays > 4) == (None, True)
    assert bench.engine.load_ms["graphs"] > 0
    assert bench.engine.load_ms["probe"] > 0
    assert [bench.run(ids, max_tokens=10).ids for ids in prompts] == expected  # out of the prefix cache


@pytest.mark.usefixtures("with_kernel")
def test_the_kernel_serves_mixed_and_recorded_steps(device: CudaDevice, llama: LoadedModel) -> None:
    prompts = [prompt(length, length) for length in (3, 30, 7, 19)]
    bench = Bench(llama, cuda_graphs="lazy")
    results = arrive(bench, prompts, 8)
    assert [result.ids for result in results] == [reference(llama.model, ids, 8) for ids in prompts]
    assert runner(bench).attention.kernels == {"float32, 8": "used"}


def test_preempted_requests_give_the_same_tokens(device: CudaDevice, llama: LoadedModel) -> None:
    bench = Bench(llama, kv_blocks=14, cuda_graphs="lazy")
    prompts = [prompt(6, seed) for seed in range(4)]
    results = arrive(bench, prompts, 20)
    assert bench.engine.scheduler.preemptions > 0
    assert [result.ids for result in results] == [reference(llama.model, ids, 20) for ids in prompts]


def test_drafts_right_and_wrong_give_the_same_tokens(
    device: CudaDevice, llama: LoadedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    prompts = [prompt(length, length) for length in (6, 9, 21)]
    expected = [reference(llama.model, ids, 14) for ids in prompts]

    def guess(_: Any, sequences: list[Sequence], limits: list[int]) -> list[tuple[int, ...]]:
        guesses = []
        for sequence, limit in zip(sequences, limits, strict=True):
            answer = expected[prompts.index(sequence.tokens[: sequence.prompt_length])]
            right = answer[sequence.num_output : sequence.num_output + limit]
            guesses.append((*right[:-1], *[(token + 1) % 200 for token in right[-1:]]))
        return guesses

    monkeypatch.setattr(PromptLookup, "propose", guess)
    bench = Bench(llama, cuda_graphs="lazy", speculate="ngram")
    assert [result.ids for result in arrive(bench, prompts, 14)] == expected
    statistics = bench.engine.statistics
    assert 0 < statistics.accepted < statistics.drafted


def test_without_recordings_every_step_runs_as_it_is(device: CudaDevice, llama: LoadedModel) -> None:
    bench = Bench(llama, cuda_graphs="off")
    ids = prompt(9, 1)
    assert bench.run(ids, max_tokens=5).ids == reference(llama.model, ids, 5)
    assert runner(bench).graphs is None


def test_recordings_that_fail_at_load_do_not_hinder_it(
    device: CudaDevice, llama: LoadedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Failing(FakeRecorder):
        def record(self, compute: Callable[[], None]) -> Callable[[], None]:
            raise RuntimeError("operation not permitted when stream is capturing")

    monkeypatch.setattr(cuda_graphs, "CudaRecorder", Failing)
    bench = Bench(llama, cuda_graphs="load")
    graphs = runner(bench).graphs
    assert graphs is not None
    assert graphs.facts()["graphs_off"] == "operation not permitted when stream is capturing"
    ids = prompt(9, 1)
    assert bench.run(ids, max_tokens=5).ids == reference(llama.model, ids, 5)


def test_recordings_that_spoil_the_probe_are_dropped(
    device: CudaDevice, llama: LoadedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Once(FakeRecorder):
        """Right when it is checked, and never again."""

        def record(self, compute: Callable[[], None]) -> Callable[[], None]:
            compute()
            replays = iter([compute])

            def replay() -> None:
                for one in itertools.islice(replays, 1):
                    one()

            return replay

    monkeypatch.setattr(cuda_graphs, "CudaRecorder", Once)
    bench = Bench(llama, cuda_graphs="lazy")
    graphs = runner(bench).graphs
    assert graphs is not None
    assert str(graphs.reason).startswith("replayed steps differ by")
    ids = prompt(9, 1)
    assert bench.run(ids, max_tokens=5).ids == reference(llama.model, ids, 5)


# -- mixed steps --------------------------------------------------------------------------------------


def test_a_mixed_step_tells_what_it_computed(device: CudaDevice, llama: LoadedModel) -> None:
    bench = Bench(llama, cuda_graphs="off")
    first = bench.submit(prompt(5, 1), max_tokens=12)
    bench.step(3)
    second = bench.submit(prompt(25, 2), max_tokens=3)  # chunks of 16: two mixed steps
    bench.finish()
    told = [event[3:] for event in second.of("step")]
    assert [composition for _, *composition in told] == [[1, 16, 1, 1], [1, 9, 1, 1]]
    assert [event[2:] for event in first.of("step")] == [event[2:] for event in second.of("step")]
    for result in (first, second):
        for event, after in itertools.pairwise(result.events):
            if event[0] == "step":  # the same stamps as what follows it
                assert after[0] == ("token" if result is first else "chunk")
                assert after[2:4] == event[2:4]
    statistics = bench.engine.statistics
    assert statistics.steps["mixed"] == 2
    assert statistics.tokens["mixed"] == 27
    assert statistics.mixed_tokens == {"prefill": 25, "decode": 2}


def test_steps_are_stamped_by_the_device(device: CudaDevice, llama: LoadedModel) -> None:
    bench = Bench(llama, cuda_graphs="off")
    result = bench.run(prompt(5, 1), max_tokens=3)
    stamps = [(event[3], event[2]) for event in result.of("chunk") + result.of("token")[1:]]
    assert all(start < end for start, end in stamps)
    assert all(before[1] <= after[0] for before, after in itertools.pairwise(stamps))
    statistics = bench.engine.statistics
    for kind in ("prefill", "decode"):
        assert 0 < statistics.device_ns[kind] <= statistics.busy_ns[kind]


def test_telemetry_has_the_memory_of_the_device(device: CudaDevice, llama: LoadedModel) -> None:
    bench = Bench(llama, cuda_graphs="off")
    assert "mixed_steps_total" not in telemetry.snapshot(bench.engine)
    bench.submit(prompt(5, 1), max_tokens=8)
    bench.step(3)
    bench.submit(prompt(5, 2), max_tokens=8)
    bench.finish()
    found = telemetry.snapshot(bench.engine)
    assert found["device_memory_bytes"] == 1000 * MIB
    assert found["device_allocated_bytes"] == 60 * MIB
    assert found["device_clock_error_ns"] >= 0
    assert found["mixed_steps_total"] == 1
    assert (found["prefill_tokens_mixed_total"], found["decode_tokens_mixed_total"]) == (5, 1)
    assert found.keys() <= KEYS.keys()
    assert found["decode_device_ms_total"] > 0


# -- ends ---------------------------------------------------------------------------------------------


def break_one_step(bench: Bench, monkeypatch: pytest.MonkeyPatch, number: int, error: Exception) -> None:
    inner, steps = bench.engine.runner.run, iter(range(10_000))

    def run(step: Step) -> torch.Tensor:
        if next(steps) == number:
            raise error
        return inner(step)

    monkeypatch.setattr(bench.engine.runner, "run", run)


def test_a_step_without_memory_ends_its_requests_and_no_others(
    device: CudaDevice, llama: LoadedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = Bench(llama, cuda_graphs="off", max_batch=2)
    break_one_step(bench, monkeypatch, 2, torch.OutOfMemoryError("Tried to allocate 120.00 MiB. GPU 0 …"))
    prompts = [prompt(5, seed) for seed in range(3)]
    results = [bench.submit(ids, max_tokens=6) for ids in prompts]
    bench.finish()
    reason = "cuda:0 is out of memory: 120.00 MiB more were needed, 900 of 1000 MiB are free."
    assert [event[3] for result in results for event in result.of("failed")] == [reason, reason]
    assert results[2].ids == reference(llama.model, prompts[2], 6)
    cuda: FakeCuda = device.api
    assert cuda.emptied == 1


def test_a_device_that_answers_no_more_ends_the_engine(
    device: CudaDevice, llama: LoadedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = Bench(llama, cuda_graphs="off")
    break_one_step(bench, monkeypatch, 1, RuntimeError("CUDA error: an illegal memory access"))
    result = bench.submit(prompt(5, 1), max_tokens=6)
    bench.step()
    cuda: FakeCuda = device.api
    cuda.broken = True
    with pytest.raises(DeviceLost, match="illegal memory access"):
        bench.step()
    assert result.kinds[-2:] == ["failed", "freed"]


# -- load ---------------------------------------------------------------------------------------------


def test_weights_that_do_not_fit_are_refused_with_what_is_free(llama: LoadedModel) -> None:
    far = fake_device()
    far.torch_device = torch.device("meta")
    far.api.free = 0
    far.api.memory_reserved = far.api.memory_allocated
    with pytest.raises(TargetUnavailable, match="but only 0 MiB of memory are free on cuda:0"):
        place(llama, far)
    assert llama.model.device.type == "cpu"


def test_a_load_that_runs_out_of_memory_says_so(
    device: CudaDevice, llama: LoadedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    def starve(*_: Any, **__: Any) -> None:
        raise torch.OutOfMemoryError("Tried to allocate 3.00 GiB.")

    monkeypatch.setattr("inference.engine.kv.KVPool.allocate", starve)
    with pytest.raises(TargetUnavailable, match="tiny cannot be loaded: cuda:0 is out of memory"):
        Bench(llama)


def test_a_pool_larger_than_the_device_is_refused(device: CudaDevice, llama: LoadedModel) -> None:
    with pytest.raises(TargetUnavailable, match=r"KV blocks need .* but only 940 MiB of memory are free"):
        Bench(llama, kv_blocks=1_000_000)


def test_quantised_weights_stay_on_the_cpu(device: CudaDevice) -> None:
    model = loaded(tiny_model(tiny_config()))
    model.weights = "int8"
    with pytest.raises(TargetUnavailable, match="int8 weights are computed on the CPU only"):
        Bench(model)


@pytest.mark.parametrize("name", ["gpu", "cuda:", "cuda:x", ""])
def test_a_device_must_be_one_that_can_be(name: str) -> None:
    with pytest.raises(InputError, match="choose auto, cpu, cuda or cuda:N"):
        EngineOptions(path="x", device=name)


def test_recording_must_be_off_lazy_or_at_load() -> None:
    with pytest.raises(InputError, match="must be off, lazy or load"):
        EngineOptions(path="x", cuda_graphs="on")


# -- sampling -----------------------------------------------------------------------------------------


class OnDevice:
    """Logits that are not the host's until they are asked for."""

    device = torch.device("cuda")

    def __init__(self, logits: torch.Tensor) -> None:
        self._logits = logits

    def max(self, dim: int) -> Any:
        return self._logits.max(dim=dim)

    def __getitem__(self, rows: slice) -> torch.Tensor:
        return self._logits[rows]


def test_ids_come_by_one_fetch_and_scores_only_where_they_are_needed(
    device: CudaDevice, llama: LoadedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = Bench(llama, cuda_graphs="off")
    bench.submit(prompt(4, 1), max_tokens=9)
    bench.submit(prompt(5, 2), max_tokens=9, temperature=0.9, seed=7)
    bench.submit(prompt(6, 3), max_tokens=9)
    bench.step(2)
    work = [Work(sequence, 1) for sequence in bench.engine.scheduler.running]
    logits = bench.engine.runner.run(Step("decode", work)).clone()
    logits[2, 5] = float("nan")
    fetched: list[int] = []
    looked: list[int] = []
    fetch, rows = device.fetch, device.rows
    monkeypatch.setattr(device, "fetch", lambda ids: fetched.append(len(ids)) or fetch(ids))
    monkeypatch.setattr(device, "rows", lambda ones: looked.append(len(ones)) or rows(ones))
    found: Any = OnDevice(logits)
    assert sampler.choose(found, work, device) == sampler.choose(logits, work, CpuDevice())
    assert sampler.choose(found, work, device)[2] is None
    assert (fetched[:1], looked[:1]) == ([3], [1])
    bench.finish()
