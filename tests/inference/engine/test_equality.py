"""Greedy output equals `generate()`, token for token in float32, whatever the architecture and the batch."""

import random
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoConfig

from inference.engine.loading import LoadedModel, load
from inference.errors import TargetUnavailable
from tests.inference.engine.conftest import (
    PLAIN,
    VOCABULARY,
    Bench,
    byte_tokenizer,
    loaded,
    reference,
    tiny_config,
    tiny_model,
)

ARCHITECTURES: dict[str, dict[str, Any]] = {
    "llama": {},
    "qwen2": {},
    "qwen3": {},
    "qwen3_moe": {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 32},
    "mistral": {"sliding_window": 12},
    "gemma2": {"sliding_window": 12, "query_pre_attn_scalar": 8, "attn_logit_softcapping": 5.0},
    "gemma3_text": {"sliding_window": 12, "query_pre_attn_scalar": 8},
    "gpt_oss": {"sliding_window": 12, "num_local_experts": 4, "num_experts_per_tok": 2},
    "phi3": {"original_max_position_embeddings": 512},
    "olmo2": {},
    "smollm3": {"no_rope_layer_interval": 2},
    "stablelm": {},
    "gpt2": {"n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 512},
    "gptj": {"n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 512, "rotary_dim": 4},
    "gpt_neox": {},
    "opt": {"ffn_dim": 64, "word_embed_proj_dim": 32},
}


#: which of them are computed in C as a whole; of the others only the linear layers are
IN_C = {"llama", "qwen2", "qwen3", "mistral", "gemma2", "gemma3_text", "phi3", "olmo2", "smollm3"}


@pytest.mark.parametrize("kernels", ["auto", "torch"])
@pytest.mark.parametrize("kind", ARCHITECTURES)
def test_a_mixed_batch_equals_generate(kind: str, kernels: str) -> None:
    model = tiny_model(tiny_config(kind, **ARCHITECTURES[kind]))
    rng = random.Random(kind)
    prompts = [[rng.choice(PLAIN) for _ in range(length)] for length in (1, 5, 23, 41)]
    expected = [reference(model, ids, 14) for ids in prompts]
    bench = Bench(loaded(model), kernels=kernels)  # blocks of 4, chunks of 16: long prompts are chunked
    if kernels == "torch":
        assert bench.engine.kernels == "PyTorch"
    else:
        assert (bench.engine.kernels == "C step") == (kind in IN_C)
    results = [bench.submit(ids, max_tokens=14) for ids in prompts]
    bench.finish()
    assert [result.ids for result in results] == expected
    again = [bench.run(ids, max_tokens=14) for ids in prompts]  # now from the prefix cache
    assert [result.ids for result in again] == expected
    assert bench.engine.blocks.hit_tokens > 0


@pytest.mark.parametrize(
    ("kind", "sizes"),
    [
        ("falcon", {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 4}),
        ("bloom", {"hidden_size": 32, "n_layer": 1, "n_head": 4}),
        ("mpt", {"d_model": 32, "n_layers": 1, "n_heads": 4}),
        ("mamba", {"hidden_size": 32, "num_hidden_layers": 1, "state_size": 4}),
    ],
)
def test_what_has_no_place_for_paged_attention_is_refused(
    kind: str, sizes: dict[str, int], tmp_path: Path
) -> None:
    tiny_model(AutoConfig.for_model(kind, vocab_size=VOCABULARY, **sizes)).save_pretrained(tmp_path)
    byte_tokenizer().save_pretrained(tmp_path)
    with pytest.raises(TargetUnavailable, match="cannot run on the paged cache"):
        load(tmp_path, "float32")


def test_the_probe_refuses_a_model_that_computes_something_else_on_the_paged_cache(
    llama: LoadedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("inference.engine.cpu._weights", lambda scores, _: torch.ones_like(scores))
    with pytest.raises(TargetUnavailable, match="gives other results on the paged cache"):
        Bench(llama, kernels="torch")
