"""The small random models that `gpu_check.py` computes with: made from code, so that nothing is fetched."""

from typing import Any

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import AutoConfig, AutoModelForCausalLM, PreTrainedTokenizerFast

from inference.engine.loading import LoadedModel

WINDOW = 24
VOCABULARY = 259

ARCHITECTURES: dict[str, tuple[str, dict[str, Any]]] = {
    "Llama": ("llama", {}),
    "Qwen2": ("qwen2", {}),
    "Qwen3": ("qwen3", {}),
    "Mistral, window": ("mistral", {"sliding_window": WINDOW}),
    "Gemma 2, softcap": (
        "gemma2",
        {"sliding_window": WINDOW, "query_pre_attn_scalar": 32, "attn_logit_softcapping": 5.0},
    ),
    "Gemma 3, window": ("gemma3_text", {"sliding_window": WINDOW, "query_pre_attn_scalar": 32}),
    "gpt-oss, sinks": (
        "gpt_oss",
        {"sliding_window": WINDOW, "num_local_experts": 4, "num_experts_per_tok": 2},
    ),
    "Phi-3": ("phi3", {"original_max_position_embeddings": 1024}),
    "GPT-2": ("gpt2", {"n_embd": 128, "n_layer": 3, "n_head": 4, "n_positions": 1024}),
}


# -- models made here -----------------------------------------------------------------------------------


def tiny_model(kind: str, changes: dict[str, Any]) -> Any:
    """A random model whose greedy choices are clear: wide weights, so that no two tokens are nearly equal."""
    sizes: dict[str, Any] = {
        "vocab_size": VOCABULARY,
        "hidden_size": 128,
        "intermediate_size": 256,
        "num_hidden_layers": 3,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 32,
        "max_position_embeddings": 1024,
        "bos_token_id": 0,
        "eos_token_id": 1,
        "pad_token_id": 1,
        "initializer_range": 0.3,
    }
    torch.manual_seed(0)
    config = AutoConfig.for_model(kind, **(sizes | changes))
    return AutoModelForCausalLM.from_config(config, dtype=torch.float32).eval()


def speed_model() -> Any:
    """A random model of the size of SmolLM2-135M, for where that is not at hand."""
    sizes: dict[str, Any] = {
        "vocab_size": 49152,
        "hidden_size": 576,
        "intermediate_size": 1536,
        "num_hidden_layers": 30,
        "num_attention_heads": 9,
        "num_key_value_heads": 3,
        "head_dim": 64,
        "max_position_embeddings": 2048,
        "tie_word_embeddings": True,
    }
    torch.manual_seed(0)
    return AutoModelForCausalLM.from_config(
        AutoConfig.for_model("llama", **sizes), dtype=torch.float32
    ).eval()


def byte_tokenizer() -> PreTrainedTokenizerFast:
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {token: number for number, token in enumerate(["<s>", "</s>", "<pad>", *letters])}
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, bos_token="<s>", eos_token="</s>")


def as_loaded(name: str, model: Any) -> LoadedModel:
    return LoadedModel(
        model=model,
        tokenizer=byte_tokenizer(),
        name=name,
        digest="made here",
        architecture=type(model).__name__,
        dtype=model.dtype,
        max_model_tokens=getattr(model.config, "max_position_embeddings", 1024),
        vocabulary=int(model.get_input_embeddings().weight.shape[0]),
        end_ids=frozenset({1}),
    )


# -- the engine, stepped here ---------------------------------------------------------------------------
