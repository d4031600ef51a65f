"""Linear layers in C inside a transformers model, for architectures whose whole step is not described."""

from ctypes import byref
from typing import Any

import torch
from torch import nn

from inference.engine.native import library
from inference.engine.native.packing import pack


class NativeLinear(nn.Module):
    """`nn.Linear` with packed weights; inputs of any type, computed in float32."""

    def __init__(self, linear: nn.Linear, weights: str) -> None:
        super().__init__()
        self._library = library.open_library()
        self._packed = pack(linear.weight.detach(), weights, linear.bias)
        self.in_features, self.out_features = linear.in_features, linear.out_features

    @property
    def size_bytes(self) -> int:
        return self._packed.size_bytes

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """`[…, K]` → `[…, N]`, in the type of the input."""
        rows = x.reshape(-1, self.in_features).float().contiguous()
        out = torch.empty(len(rows), self.out_features)
        self._library.pg_linear(byref(self._packed.matrix), rows.data_ptr(), len(rows), out.data_ptr())
        return out.to(x.dtype).view(*x.shape[:-1], self.out_features)


def replace_linears(model: Any, weights: str, threads: int) -> list[tuple[nn.Module, str, nn.Linear]]:
    """Put packed layers in the place of all plain linear ones; what was there, for `put_back`.

    Raises `NoLibrary` where there is no C library, before anything is replaced.
    """
    library.open_library().pg_threads(threads)
    replaced: list[tuple[nn.Module, str, nn.Linear]] = []
    for parent in list(model.modules()):
        for name, child in list(parent.named_children()):
            if type(child) is nn.Linear:
                setattr(parent, name, NativeLinear(child, weights_of(child, model, weights)))
                replaced.append((parent, name, child))
    return replaced


def weights_of(linear: nn.Module, model: Any, weights: str) -> str:
    """The precision of one layer: the one that makes the logits suffers first, and never gets int4."""
    return "int8" if weights == "int4" and linear is model.get_output_embeddings() else weights


def put_back(replaced: list[tuple[nn.Module, str, nn.Linear]]) -> None:
    for parent, name, linear in replaced:
        setattr(parent, name, linear)
