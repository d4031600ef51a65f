"""A model on a GPU: its weights moved there, its steps proven, and its decode steps recorded."""

from pathlib import Path
from typing import Any

import torch
from transformers import PreTrainedModel

from inference.engine.cuda import CudaAttention, find_varlen
from inference.engine.cuda_graphs import DecodeGraphs, Recorder
from inference.engine.device import Device
from inference.engine.kv import KVPool
from inference.engine.loading import LoadedModel, use_paged_attention
from inference.engine.options import EngineOptions
from inference.engine.probe import Probe
from inference.engine.proving import Proven
from inference.engine.runner import ModelRunner
from inference.engine.scheduler import Step
from inference.errors import TargetUnavailable

_MIB = 2**20


class CudaRunner(ModelRunner):
    """Decode steps are replayed where they are recorded; all others run as they are."""

    def __init__(self, model: PreTrainedModel, pool: KVPool, device: Device) -> None:
        self.attention = CudaAttention(device, find_varlen(device.torch_device))
        super().__init__(model, pool, self.attention, device)
        self.graphs: DecodeGraphs | None = None
        self.probed: float | None = None  # by how much its logits differed from the model's own at load

    def run(self, step: Step) -> torch.Tensor:
        if self.graphs is not None and step.kind == "decode":
            replayed = self.graphs.run(step.work)
            if replayed is not None:
                return replayed
        return super().run(step)


def place(loaded: LoadedModel, device: Device) -> None:
    """Move the weights to where they are used; raises TargetUnavailable with what is needed and free."""
    if loaded.model.device == device.torch_device:
        return
    needed, free = loaded.weights_bytes, device.free_bytes()
    if needed > free:
        raise TargetUnavailable(
            f"The weights of {loaded.name} need {needed / _MIB:.0f} MiB, "
            f"but only {free / _MIB:.0f} MiB of memory are free on {device.name}."
        )
    model: Any = loaded.model
    model.to(device.torch_device)


def prove_on_gpu(
    loaded: LoadedModel,
    path: Path,
    pool: KVPool,
    options: EngineOptions,
    device: Device,
    *,
    recorder: Recorder | None = None,
) -> Proven:
    """A runner whose logits are the model's own; raises TargetUnavailable where they are not.

    Recorded steps are held against the same logits. Where they fail, the model is served without them.
    """
    if str(loaded.dtype).removeprefix("torch.") != loaded.weights:
        raise TargetUnavailable(
            f"{loaded.weights} weights are computed on the CPU only; on {device.name} choose auto, "
            "bfloat16 or float32."
        )
    probe = Probe(loaded, pool)
    use_paged_attention(loaded.model, path)
    runner = CudaRunner(loaded.model, pool, device)
    runner.probed = probe.difference(runner)
    if runner.probed > probe.tolerance:
        raise TargetUnavailable(
            f"{loaded.architecture} in {path} gives other results on the paged cache than by itself "
            f"(logits differ by {runner.probed:.1%}); it is not supported."
        )
    if device.records_steps and options.cuda_graphs != "off":
        _record(loaded, runner, probe, options, recorder)
    return Proven(runner, "PyTorch, CUDA")


def _record(
    loaded: LoadedModel,
    runner: CudaRunner,
    probe: Probe,
    options: EngineOptions,
    recorder: Recorder | None,
) -> None:
    pool = runner.pool
    graphs = runner.graphs = DecodeGraphs(
        loaded.model,
        pool,
        runner.attention,
        runner.device,
        max_batch=options.max_batch,
        max_tokens=min(loaded.max_model_tokens, pool.blocks * pool.block_tokens),
        recorder=recorder,
    )
    if options.cuda_graphs == "load":
        graphs.record_all()
    difference = probe.difference(runner)
    if difference > probe.tolerance:
        graphs.stop(f"replayed steps differ by {difference:.1%} from the model itself")
