"""The C library as Python sees it: its calls and its structures, as in `model.h` and `product.h`."""

import ctypes
import functools
from ctypes import POINTER, Structure, c_float, c_int32, c_int64, c_void_p

from inference.engine.native import build

F32, BF16, I8, I4 = range(4)
SILU, GELU_TANH = range(2)


class Matrix(Structure):
    _fields_ = [
        ("n", c_int64),
        ("k", c_int64),
        ("format", c_int32),
        ("padding", c_int32),
        ("data", c_void_p),
        ("scales", c_void_p),
        ("bias", c_void_p),
    ]


class Layer(Structure):
    _fields_ = [
        *[(name, Matrix) for name in ("qkv", "o", "gate_up", "down")],
        *[(name, c_void_p) for name in ("attn_in", "attn_out", "mlp_in", "mlp_out", "q_norm", "k_norm")],
        *[(name, c_void_p) for name in ("cosines", "sines", "keys", "values")],
        ("window", c_int32),
        ("norm_is_wide", c_int32),
    ]


class Model(Structure):
    _fields_ = [
        *[(name, c_int32) for name in ("layers", "hidden", "heads", "kv_heads", "head_dim", "rotary")],
        *[(name, c_int32) for name in ("inner", "vocabulary", "activation", "kv_format")],
        *[(name, c_int32) for name in ("embedding_format", "block_tokens")],
        *[(name, c_float) for name in ("eps", "scaling", "attention_cap", "logit_cap", "embedding_scale")],
        ("padding", c_int32),
        ("slots", c_int64),
        ("embedding", c_void_p),
        ("final_norm", c_void_p),
        ("head", Matrix),
        ("layer", POINTER(Layer)),
    ]


class Step(Structure):
    _fields_ = [
        *[(name, c_int32) for name in ("tokens", "spans", "kept", "padding")],
        *[(name, c_void_p) for name in ("ids", "positions", "slots", "start", "stop", "context")],
        *[(name, c_void_p) for name in ("first_block", "blocks", "rows", "logits")],
    ]


@functools.cache
def open_library() -> ctypes.CDLL:
    """The library of this machine, built at the first call; raises `build.NoLibrary`."""
    path = build.library_path()
    try:
        found = ctypes.CDLL(str(path))
    except OSError as error:
        raise build.NoLibrary(f"The C step in {path} cannot be loaded: {error}.") from error
    found.pg_step.argtypes = [POINTER(Model), POINTER(Step)]
    found.pg_step.restype = None
    found.pg_linear.argtypes = [POINTER(Matrix), c_void_p, c_int64, c_void_p]
    found.pg_linear.restype = None
    found.pg_threads.argtypes = [ctypes.c_int]
    found.pg_buffer_bytes.restype = c_int64
    return found


def panel() -> int:
    """Outputs in a panel of packed weights on this processor."""
    return int(open_library().pg_panel())
