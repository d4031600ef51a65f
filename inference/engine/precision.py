"""In which numbers a model is computed: the type of its values and cache, the precision of its weights."""

from dataclasses import dataclass
from typing import Any

import torch

from inference.engine.native.build import NoLibrary
from inference.engine.native.library import open_library
from inference.engine.native.recipe import NotDescribed, family_of

QUANTISED = ("int8", "int4")


@dataclass(frozen=True)
class Precision:
    """`dtype` of what is not a linear layer's weight, and `weights` of those that are."""

    dtype: torch.dtype
    weights: str  # float32, bfloat16, int8 or int4


def choose(name: str, config: Any, *, kernels: str = "auto", device: str = "cpu") -> Precision:
    """The precision asked for by name; `auto` is the fastest that rounds no stored weight.

    That is bfloat16 where the processor multiplies it itself or the C step widens it on the way, and float32
    elsewhere: PyTorch's bfloat16 products are several times slower there.
    """
    if name == "float32":
        return Precision(torch.float32, "float32")
    if device != "cpu" and torch.cuda.is_available():
        narrow = torch.cuda.is_bf16_supported(including_emulation=False)
    else:
        narrow = native_bfloat16() or (kernels != "torch" and has_c_step(config))
    dtype = torch.bfloat16 if narrow or name == "bfloat16" else torch.float32
    return Precision(dtype, name if name in QUANTISED else str(dtype).removeprefix("torch."))


def native_bfloat16() -> bool:
    """Whether this processor multiplies bfloat16 itself; where not, float32 is several times faster."""
    return bool(torch.cpu._is_avx512_bf16_supported() or torch.cpu._is_amx_tile_supported()) or (
        torch.backends.cpu.get_cpu_capability() not in ("DEFAULT", "AVX2", "AVX512", "NO AVX")
        and bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())
    )


def has_c_step(config: Any) -> bool:
    """Whether the whole step of such a model can be computed in C on this machine."""
    try:
        family_of(config)
        open_library()
    except (NotDescribed, NoLibrary):
        return False
    return True
