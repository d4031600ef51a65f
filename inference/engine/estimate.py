"""How much memory loading a model will take, from the sizes in its files; nothing is loaded for it."""

import json
import struct
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

import gguf

from inference.engine.memory import pool_bytes
from inference.engine.options import EngineOptions

#: bytes of one weight at the peak of the load: what is packed was bfloat16 before
BYTES_PER_WEIGHT = {"float32": 4.0, "bfloat16": 2.0, "int8": 3.0, "int4": 2.6}
WIDEST = "float32"  # what `auto` may come to
PACKED = 2.1  # times the weights: the packed copy beside the stored ones, and workspaces; measured
PROCESS_BYTES = 450 * 2**20  # interpreter, torch and transformers, measured
#: on an accelerator: the driver's context, and a pool worth having, since an engine takes what is left
CONTEXT_BYTES, DEVICE_POOL_BYTES = 512 * 2**20, 2**30


@dataclass(frozen=True)
class Need:
    """Bytes that a load takes: estimated, and rather too much than too little."""

    weights_bytes: int
    kv_pool_bytes: int
    process_bytes: int = PROCESS_BYTES

    @property
    def total_bytes(self) -> int:
        return int(self.weights_bytes * PACKED) + self.kv_pool_bytes + self.process_bytes


def need_of(options: EngineOptions, *, auto_dtype: str | None = None, on_device: bool = False) -> Need | None:
    """What `options` will take; None where the files do not say, so that the load itself has to.

    `auto_dtype` is what `auto` came to in this machine's last load; `on_device`: of an accelerator's memory.
    """
    dtype = options.dtype if options.dtype != "auto" else auto_dtype or WIDEST
    try:
        weights = sum(count_weights(path) for path in (options.model_path, *_draft_of(options)))
        unset = DEVICE_POOL_BYTES if on_device else pool_bytes()
        pool = _pool_bytes(options, 4 if dtype == "float32" else 2, unset)
    except Exception:  # whatever broken files bring up: the load will find a sentence for it
        return None
    return Need(
        weights_bytes=int(weights * BYTES_PER_WEIGHT.get(dtype, 4.0)),
        kv_pool_bytes=pool,
        process_bytes=CONTEXT_BYTES if on_device else PROCESS_BYTES,
    )


def _draft_of(options: EngineOptions) -> list[Path]:
    """The second model of speculative decoding, where it has one."""
    return [Path(options.draft_path).expanduser()] if options.draft_path else []


def count_weights(path: Path) -> int:
    """Parameters in a model folder or a GGUF file, from the headers alone."""
    if path.is_dir():
        return sum(_safetensors_weights(file) for file in path.glob("*.safetensors"))
    return sum(int(tensor.n_elements) for tensor in gguf.GGUFReader(path).tensors)


def _safetensors_weights(file: Path) -> int:
    with file.open("rb") as stream:
        (length,) = struct.unpack("<Q", stream.read(8))
        header = json.loads(stream.read(length))
    return sum(prod(tensor["shape"]) for name, tensor in header.items() if name != "__metadata__")


def _pool_bytes(options: EngineOptions, value_bytes: int, unset: int) -> int:
    """The pool that is asked for, where the configuration tells its shape; else `unset`."""
    config_file = options.model_path / "config.json"
    if options.kv_blocks is None or not config_file.is_file():
        return unset
    config: dict[str, Any] = json.loads(config_file.read_text(encoding="utf-8"))
    heads = config["num_attention_heads"]
    head_dim = config.get("head_dim") or config["hidden_size"] // heads
    kv_heads = config.get("num_key_value_heads") or heads
    per_token = 2 * config["num_hidden_layers"] * kv_heads * head_dim * value_bytes
    return int(per_token * options.block_tokens * options.kv_blocks)
