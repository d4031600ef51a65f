"""A loaded model made ready for steps: a pool of the right size, paged attention, and the proof that it fits.

A draft model comes with a pool of its own that has the blocks of the target's: both are sized together.
"""

from dataclasses import dataclass
from pathlib import Path

from inference.engine.cpu import CpuAttention
from inference.engine.cuda_runner import CudaRunner, place, prove_on_gpu
from inference.engine.device import Device
from inference.engine.kv import KVPool, bytes_per_token
from inference.engine.loading import LoadedModel
from inference.engine.options import EngineOptions
from inference.engine.proving import Proven, prove
from inference.engine.runner import ModelRunner, Runner
from inference.engine.stages import timed
from inference.errors import TargetUnavailable


@dataclass(frozen=True)
class PagedModel:
    """A model that computes steps."""

    loaded: LoadedModel
    pool: KVPool
    runner: Runner
    kernels: str  # what computes it, as the evidence says


def assemble(
    models: list[tuple[LoadedModel, Path]],
    options: EngineOptions,
    load_ms: dict[str, float],
    device: Device,
) -> list[PagedModel]:
    """The models on pools of one size, each proven; raises TargetUnavailable where one cannot be."""
    try:
        return _assemble(models, options, load_ms, device)
    except RuntimeError as error:
        if (shortage := device.shortage(error)) is None:
            raise
        raise TargetUnavailable(f"{models[0][0].name} cannot be loaded: {shortage}") from error


def _assemble(
    models: list[tuple[LoadedModel, Path]],
    options: EngineOptions,
    load_ms: dict[str, float],
    device: Device,
) -> list[PagedModel]:
    pools = [KVPool(options.block_tokens) for _ in models]
    with timed(load_ms, "allocate"):
        for loaded, _ in models:
            place(loaded, device)
        _allocate(models, pools, options, device)
    found = []
    with timed(load_ms, "probe"):
        for (loaded, path), pool in zip(models, pools, strict=True):
            proven = _prove(loaded, path, pool, options, device)
            found.append(PagedModel(loaded, pool, proven.runner, proven.kernels))
    for model in found:
        if isinstance(model.runner, CudaRunner) and model.runner.graphs is not None:
            recorded_ms = model.runner.graphs.recorded_ms
            load_ms["graphs"] = load_ms.get("graphs", 0.0) + recorded_ms
            load_ms["probe"] -= recorded_ms
    return found


def _prove(loaded: LoadedModel, path: Path, pool: KVPool, options: EngineOptions, device: Device) -> Proven:
    if device.name == "cpu":
        return prove(loaded, path, pool, options.kernels)
    return prove_on_gpu(loaded, path, pool, options, device)


def _allocate(
    models: list[tuple[LoadedModel, Path]], pools: list[KVPool], options: EngineOptions, device: Device
) -> None:
    shapes = [_shapes(loaded, path, pool, device) for (loaded, path), pool in zip(models, pools, strict=True)]
    block_bytes = options.block_tokens * sum(
        bytes_per_token(one, loaded.dtype) for one, (loaded, _) in zip(shapes, models, strict=True)
    )
    blocks = options.kv_blocks
    if blocks is None:
        affordable = device.pool_bytes() // block_bytes
        useful = options.max_batch * -(-models[0][0].max_model_tokens // options.block_tokens)
        blocks = max(1, min(affordable, useful))
    elif blocks * block_bytes > (free := device.free_bytes()):
        raise TargetUnavailable(
            f"{blocks} KV blocks need {blocks * block_bytes / 2**20:.0f} MiB, "
            f"but only {free / 2**20:.0f} MiB of memory are free."
        )
    for one, pool, (loaded, _) in zip(shapes, pools, models, strict=True):
        pool.allocate(blocks, one, loaded.dtype, device.torch_device, spare=device.records_steps)


def _shapes(loaded: LoadedModel, path: Path, pool: KVPool, device: Device) -> dict[int, tuple[int, int, int]]:
    try:
        shapes = ModelRunner(loaded.model, pool, CpuAttention(), device).shapes()
    except Exception as error:
        raise TargetUnavailable(
            f"{loaded.architecture} in {path} cannot run on the paged cache: {error}."
        ) from error
    if bytes_per_token(shapes, loaded.dtype) == 0:
        raise TargetUnavailable(f"{loaded.architecture} in {path} has no attention to cache.")
    return shapes
