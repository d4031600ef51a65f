"""Weights as the C step reads them: panels of neighbouring outputs, in the precision that is asked for.

int8: one scale an output, w ≈ q · max|w| / 127. int4: one scale for an output and 32 inputs, chosen so that
the value of the largest magnitude is met exactly (as llama.cpp's Q4_0 does): w ≈ (q − 8) · w_max / −8.
"""

from dataclasses import dataclass, field

import torch
from torch.nn.functional import pad

from inference.engine.native import library
from inference.engine.native.library import BF16, F32, I4, I8, Matrix

GROUP = 32
FORMATS = {"float32": F32, "bfloat16": BF16, "int8": I8, "int4": I4}


@dataclass
class Packed:
    """A matrix for the C step; `keep` holds the memory its pointers point to."""

    matrix: Matrix
    keep: list[torch.Tensor] = field(default_factory=list)

    @property
    def size_bytes(self) -> int:
        return sum(tensor.nbytes for tensor in self.keep)


def format_for(weights: str, columns: int) -> str:
    """The precision a matrix of so many inputs can have: int4 needs whole groups."""
    return "int8" if weights == "int4" and columns % GROUP else weights


def quantise(weight: torch.Tensor, weights: str) -> tuple[torch.Tensor, torch.Tensor]:
    """`[N, K]` → whole numbers `[N, K]` (int8: −127…127, int4: 0…15) and scales (`[N]`, `[N, K / 32]`)."""
    weight = weight.float()
    if weights == "int8":
        scales = weight.abs().amax(dim=1).clamp_min(1e-12) / 127
        return (weight / scales[:, None]).round_().clamp_(-127, 127).to(torch.int8), scales
    grouped = weight.view(weight.shape[0], -1, GROUP)
    furthest = grouped.gather(2, grouped.abs().argmax(dim=2, keepdim=True)).squeeze(2)
    scales = torch.where(furthest == 0, torch.ones_like(furthest), furthest / -8)
    whole = (grouped / scales[..., None]).round_().add_(8).clamp_(0, 15)
    return whole.view_as(weight).to(torch.uint8), scales


def dequantise(whole: torch.Tensor, scales: torch.Tensor, weights: str) -> torch.Tensor:
    """The float32 values that the C step computes with."""
    if weights == "int8":
        return whole.float() * scales[:, None]
    grouped = whole.float().view(whole.shape[0], -1, GROUP)
    return ((grouped - 8) * scales[..., None]).view(whole.shape)


def rounded(weight: torch.Tensor, weights: str) -> torch.Tensor:
    """A weight as it will be after quantisation, in its own type."""
    weights = format_for(weights, weight.shape[1])
    return dequantise(*quantise(weight, weights), weights).to(weight.dtype)


def pack(weight: torch.Tensor, weights: str, bias: torch.Tensor | None = None) -> Packed:
    """A weight `[N, K]` and a bias `[N]` in panels."""
    outputs, inputs = weight.shape
    weights = format_for(weights, inputs)
    scales: torch.Tensor | None = None
    if weights in ("int8", "int4"):
        whole, scales = quantise(weight, weights)
        if weights == "int8":
            data, scales = _panels(whole), _padded(scales)
        else:
            data, scales = _nibbles(_panels(whole)), _panels(scales)
    else:
        data = _panels(weight.to(getattr(torch, weights)))
    keep = [data]
    matrix = Matrix(n=outputs, k=inputs, format=FORMATS[weights], data=data.data_ptr())
    if scales is not None:
        scales = scales.float().contiguous()
        keep.append(scales)
        matrix.scales = scales.data_ptr()
    if bias is not None:
        bias = bias.detach().float().contiguous()
        keep.append(bias)
        matrix.bias = bias.data_ptr()
    return Packed(matrix, keep)


def interleave(gate: torch.Tensor, up: torch.Tensor) -> torch.Tensor:
    """Two `[N, …]` as panels in turn: a panel of gate, a panel of up, and so on; N in whole panels."""
    size = library.panel()
    both = torch.stack([gate.view(-1, size, *gate.shape[1:]), up.view(-1, size, *up.shape[1:])], dim=1)
    return both.view(-1, *gate.shape[1:])


def _padded(values: torch.Tensor) -> torch.Tensor:
    size = library.panel()
    return pad(values, (0, -len(values) % size))


def _panels(values: torch.Tensor) -> torch.Tensor:
    """`[N, K]` → `[N / panel, K, panel]`, missing outputs zero."""
    size = library.panel()
    values = pad(values, (0, 0, 0, -values.shape[0] % size))
    return values.view(-1, size, values.shape[1]).transpose(1, 2).contiguous()


def _nibbles(panels: torch.Tensor) -> torch.Tensor:
    """`[P, K, panel]` of 0…15 → `[P, K / 2, panel]`: an even input in the low half, the next in the high."""
    return (panels[:, 0::2] | (panels[:, 1::2] << 4)).contiguous()
