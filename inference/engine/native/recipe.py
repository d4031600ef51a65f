"""From a transformers model to the description that the C step works on, for families it knows.

A family is known by its model type. What a recipe reads wrongly the equality check at load finds, but for
what only shows beyond its few tokens (windows, long positions): those are read with care and tested.
"""

import ctypes
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch

from inference.engine.kv import KVPool
from inference.engine.native import library
from inference.engine.native.library import BF16, F32, GELU_TANH, SILU, Layer, Model
from inference.engine.native.linear import weights_of
from inference.engine.native.packing import Packed, interleave, pack

ACTIVATIONS = {"silu": SILU, "gelu_pytorch_tanh": GELU_TANH}
STEADY_ROPES = frozenset({"default", "linear", "llama3", "yarn"})  # the same for every length
FIRST_POSITIONS = 2048


class NotDescribed(Exception):
    """The C step has no recipe for this model; the text says what is missing."""


@dataclass(frozen=True)
class Family:
    """Where a family keeps its norms, and what else is its own."""

    attn_in: str | None = "input_layernorm"
    attn_out: str | None = None
    mlp_in: str | None = "post_attention_layernorm"
    mlp_out: str | None = None
    norm_offset: float = 0.0  # Gemma stores weight − 1
    wide_norms: bool = False
    window_in_config: bool = False  # every layer has the configuration's window


GEMMA = Family(
    attn_out="post_attention_layernorm",
    mlp_in="pre_feedforward_layernorm",
    mlp_out="post_feedforward_layernorm",
    norm_offset=1.0,
)
FAMILIES = {
    "llama": Family(),
    "mistral": Family(window_in_config=True),
    "qwen2": Family(),
    "qwen3": Family(),
    "smollm3": Family(),
    "phi3": Family(window_in_config=True),
    "olmo2": Family(
        attn_in=None,
        attn_out="post_attention_layernorm",
        mlp_in=None,
        mlp_out="post_feedforward_layernorm",
        wide_norms=True,
    ),
    "gemma2": GEMMA,
    "gemma3_text": GEMMA,
}


@dataclass
class Described:
    """A model in C, the memory it points to, and its tables of positions."""

    model: Model
    layers: Any  # array of Layer
    keep: list[torch.Tensor]
    tables: "Tables"
    size_bytes: int


def describe(model: Any, pool: KVPool, weights: str) -> Described:
    """Pack the weights of a model on its pool; raises NotDescribed where there is no recipe."""
    return _Cook(model, pool, weights).described()


def family_of(config: Any) -> Family:
    """Raises NotDescribed for what the C step does not compute."""
    family = FAMILIES.get(config.model_type)
    if family is None:
        raise NotDescribed(f"models of type {config.model_type} have no C step")
    if _activation(config) not in ACTIVATIONS:
        raise NotDescribed(f"the activation {_activation(config)} has no C step")
    ropes = getattr(config, "rope_parameters", None) or {}
    for rope in ropes.values() if "rope_type" not in ropes else [ropes]:
        if isinstance(rope, dict) and rope.get("rope_type") not in STEADY_ROPES:
            raise NotDescribed(f"positions of type {rope.get('rope_type')} have no C step")
    if getattr(config, "use_bidirectional_attention", None):
        raise NotDescribed("attention in both directions has no C step")
    return family


def _activation(config: Any) -> str:
    return str(getattr(config, "hidden_activation", None) or getattr(config, "hidden_act", None))


class Tables:
    """Cosines and sines by position, `[positions, rotary / 2]`, by the model's own module when needed."""

    def __init__(self, rotary: Callable[..., Any], kinds: list[str | None], most: int) -> None:
        self._rotary, self._kinds, self._most = rotary, kinds, most
        self.positions = 0
        self.of: dict[str | None, tuple[torch.Tensor, torch.Tensor]] = {}
        self.grow(FIRST_POSITIONS)

    def grow(self, positions: int) -> None:
        """Reach at least so far; the tensors are new ones afterwards."""
        while self.positions < positions:
            self.positions = min(max(FIRST_POSITIONS, self.positions * 2), max(self._most, positions))
        at = torch.arange(self.positions)[None]
        for kind in self._kinds:
            arguments = {} if kind is None else {"layer_type": kind}
            both = self._rotary(torch.zeros(1), at, **arguments)
            half = both[0].shape[-1] // 2
            cosines, sines = (one[0, :, :half].float().contiguous() for one in both)
            self.of[kind] = cosines, sines

    @property
    def rotary(self) -> int:
        return 2 * next(iter(self.of.values()))[0].shape[1]


@dataclass
class _Cook:
    model: Any
    pool: KVPool
    weights: str
    keep: list[torch.Tensor] = field(default_factory=list)
    size_bytes: int = 0

    def described(self) -> Described:
        config = self.model.config
        family = family_of(config)
        body = self.model.model
        attention = body.layers[0].self_attn
        inner = config.intermediate_size
        if inner % library.panel() or attention.head_dim % (library.panel() // 2):
            raise NotDescribed("its dimensions are not in whole vectors of this processor")
        kinds: list[str | None] = [None]
        if isinstance(getattr(body.rotary_emb, "rope_type", None), dict):  # a table for each kind of layer
            kinds = sorted(body.rotary_emb.rope_type)
        tables = Tables(body.rotary_emb, kinds, config.max_position_embeddings)
        layers = (Layer * len(body.layers))()
        for number, source in enumerate(body.layers):
            self._layer(layers[number], source, family, number)
        keys = self.pool.layers[0][0]
        embedding, head = body.embed_tokens, self.model.lm_head
        described = Model(
            layers=len(body.layers),
            hidden=config.hidden_size,
            heads=config.num_attention_heads,
            kv_heads=keys.shape[0],
            head_dim=attention.head_dim,
            rotary=tables.rotary,
            inner=inner,
            vocabulary=head.weight.shape[0],
            activation=ACTIVATIONS[_activation(config)],
            kv_format=_format(keys),
            embedding_format=_format(embedding.weight),
            block_tokens=self.pool.block_tokens,
            eps=config.rms_norm_eps,
            scaling=attention.scaling,
            attention_cap=getattr(config, "attn_logit_softcapping", None) or 0.0,
            logit_cap=getattr(config, "final_logit_softcapping", None) or 0.0,
            embedding_scale=_embedding_scale(embedding),
            slots=keys.shape[1],
            embedding=self._tensor(embedding.weight),
            final_norm=self._norm(body.norm, family),
            head=self._matrix(head.weight, head.bias, weights_of(head, self.model, self.weights)),
            layer=ctypes.cast(layers, ctypes.POINTER(Layer)),
        )
        found = Described(described, layers, self.keep, tables, self.size_bytes)
        point_at_tables(found, self.model)
        return found

    def _layer(self, layer: Layer, source: Any, family: Family, number: int) -> None:
        attention, mlp = source.self_attn, source.mlp
        if hasattr(attention, "qkv_proj"):
            layer.qkv = self._matrix(attention.qkv_proj.weight, attention.qkv_proj.bias)
            gate, up = mlp.gate_up_proj.weight.chunk(2)
            both = mlp.gate_up_proj.bias
            biases = None if both is None else both.chunk(2)
        else:
            three = [attention.q_proj, attention.k_proj, attention.v_proj]
            bias = None if three[0].bias is None else torch.cat([one.bias for one in three])
            layer.qkv = self._matrix(torch.cat([one.weight for one in three]), bias)
            gate, up = mlp.gate_proj.weight, mlp.up_proj.weight
            biases = None if mlp.gate_proj.bias is None else (mlp.gate_proj.bias, mlp.up_proj.bias)
        layer.gate_up = self._matrix(interleave(gate, up), None if biases is None else interleave(*biases))
        layer.o = self._matrix(attention.o_proj.weight, attention.o_proj.bias)
        layer.down = self._matrix(mlp.down_proj.weight, mlp.down_proj.bias)
        for name in ("attn_in", "attn_out", "mlp_in", "mlp_out"):
            place = getattr(family, name)
            if place is not None:
                setattr(layer, name, self._norm(getattr(source, place), family))
        if hasattr(attention, "q_norm"):
            layer.q_norm = self._norm(attention.q_norm, family)
            layer.k_norm = self._norm(attention.k_norm, family)
            layer.norm_is_wide = family.wide_norms
        of = self.model.config if family.window_in_config else attention
        layer.window = getattr(of, "sliding_window", None) or 0
        keys, values = self.pool.layers[number]
        layer.keys, layer.values = keys.data_ptr(), values.data_ptr()

    def _matrix(self, weight: torch.Tensor, bias: torch.Tensor | None, weights: str = "") -> Any:
        packed: Packed = pack(weight.detach(), weights or self.weights, bias)
        self.keep += packed.keep
        self.size_bytes += packed.size_bytes
        return packed.matrix

    def _norm(self, module: Any, family: Family) -> int:
        return self._tensor(module.weight.detach().float() + family.norm_offset)

    def _tensor(self, tensor: torch.Tensor) -> int:
        tensor = tensor.detach().contiguous()
        self.keep.append(tensor)
        self.size_bytes += tensor.nbytes
        return tensor.data_ptr()


def point_at_tables(found: Described, model: Any) -> None:
    """Let each layer point at its table of positions (again after they have grown)."""
    for number, source in enumerate(model.model.layers):
        attention = source.self_attn
        if getattr(attention, "use_rope", 1) == 0:  # SmolLM3 leaves positions out of some layers
            continue
        kind = getattr(attention, "layer_type", None)
        cosines, sines = found.tables.of[kind if kind in found.tables.of else None]
        found.layers[number].cosines, found.layers[number].sines = cosines.data_ptr(), sines.data_ptr()


def _format(tensor: torch.Tensor) -> int:
    if tensor.dtype not in (torch.float32, torch.bfloat16):
        raise NotDescribed(f"{tensor.dtype} has no C step")
    return F32 if tensor.dtype == torch.float32 else BF16


def _embedding_scale(embedding: Any) -> float:
    scale = getattr(embedding, "embed_scale", None)
    return 1.0 if scale is None else float(scale.to(embedding.weight.dtype))
