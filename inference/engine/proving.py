"""Which runner a model gets: the fastest that computes what the model computes by itself.

Tried in this order, each held against the model's own attention before it may serve: the whole step in C;
the model's code with its linear layers in C; the model's code as it is.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn

from inference.engine.cpu import CpuAttention
from inference.engine.kv import KVPool
from inference.engine.loading import LoadedModel, use_paged_attention
from inference.engine.native.build import NoLibrary
from inference.engine.native.linear import NativeLinear, put_back, replace_linears, weights_of
from inference.engine.native.packing import rounded
from inference.engine.native.recipe import NotDescribed
from inference.engine.native.runner import NativeRunner
from inference.engine.precision import QUANTISED, native_bfloat16
from inference.engine.probe import Probe
from inference.engine.runner import ModelRunner, Runner
from inference.errors import TargetUnavailable

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Proven:
    """A runner that computes the right thing, and what it is called in the evidence."""

    runner: Runner
    kernels: str


def prove(loaded: LoadedModel, path: Path, pool: KVPool, kernels: str) -> Proven:
    """The first runner that passes; raises TargetUnavailable where none that may be used does.

    `kernels` is `auto`, `native` (nothing but C) or `torch`. Quantised weights need C.
    """
    if loaded.weights in QUANTISED:
        round_weights(loaded.model, loaded.weights)
    probe = Probe(loaded, pool)
    use_paged_attention(loaded.model, path)
    reasons: list[str] = []
    for attempt in _attempts(loaded, kernels):
        try:
            return attempt(loaded, pool, probe)
        except (NoLibrary, NotDescribed, _Differs) as error:
            reasons.append(str(error))
            logger.info("%s: %s", path, error)
    raise TargetUnavailable(
        f"{loaded.architecture} in {path} cannot be computed with these settings: {'; '.join(reasons)}."
    )


class _Differs(Exception):
    pass


Attempt = Callable[[LoadedModel, KVPool, Probe], Proven]


def _attempts(loaded: LoadedModel, kernels: str) -> list[Attempt]:
    quantised = loaded.weights in QUANTISED
    if kernels == "torch" and quantised:
        raise TargetUnavailable(f"{loaded.weights} weights need the C kernels; kernels=torch has none.")
    if kernels == "native" or quantised:
        return [_in_c, _linears_in_c]
    if kernels == "torch" or (loaded.dtype == torch.bfloat16 and native_bfloat16()):
        return [_as_it_is]  # oneDNN uses the processor's own bfloat16 units, which the C step does not
    return [_in_c, _linears_in_c, _as_it_is]


def _in_c(loaded: LoadedModel, pool: KVPool, probe: Probe) -> Proven:
    try:
        runner = NativeRunner(loaded.model, pool, weights=loaded.weights, threads=torch.get_num_threads())
    except (AttributeError, KeyError, RuntimeError) as error:  # of its type, and built otherwise
        raise NotDescribed(f"{loaded.architecture} is not built as its type is ({error})") from error
    _check(loaded, runner, probe, "the C step")
    loaded.weights_bytes = runner.weights_bytes
    return Proven(runner, "C step")


def _linears_in_c(loaded: LoadedModel, pool: KVPool, probe: Probe) -> Proven:
    replaced = replace_linears(loaded.model, loaded.weights, torch.get_num_threads())
    try:
        runner = ModelRunner(loaded.model, pool, CpuAttention())
        _check(loaded, runner, probe, "its linear layers in C")
    except Exception as error:
        put_back(replaced)
        if isinstance(error, _Differs):
            raise
        raise _Differs(f"with its linear layers in C it fails ({type(error).__name__}: {error})") from error
    loaded.weights_bytes = sum(tensor.nbytes for tensor in loaded.model.parameters()) + sum(
        module.size_bytes for module in loaded.model.modules() if isinstance(module, NativeLinear)
    )
    return Proven(runner, "PyTorch, linear layers in C")


def _as_it_is(loaded: LoadedModel, pool: KVPool, probe: Probe) -> Proven:
    runner = ModelRunner(loaded.model, pool, CpuAttention())
    difference = probe.difference(runner)
    if difference > probe.tolerance:
        raise _Differs(
            f"it gives other results on the paged cache than by itself (logits differ by {difference:.1%}); "
            "it is not supported"
        )
    return Proven(runner, "PyTorch")


def _check(loaded: LoadedModel, runner: Runner, probe: Probe, what: str) -> None:
    difference = probe.difference(runner)
    if difference > probe.tolerance:
        raise _Differs(f"{what} differs from {loaded.architecture} itself (logits by {difference:.1%})")


@torch.inference_mode()
def round_weights(model: Any, weights: str) -> None:
    """Give every linear layer the values it will have after quantisation, so that the check sees the same."""
    for module in model.modules():
        if type(module) is nn.Linear:
            own = weights_of(module, model, weights)
            module.weight = nn.Parameter(rounded(module.weight.data, own), requires_grad=False)
