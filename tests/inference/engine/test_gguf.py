"""A real GGUF file, written here: it loads into the same model, and converts into a folder once."""

import copy
from pathlib import Path
from typing import Any

import gguf as gguf_format
import numpy
import pytest
import torch

from inference.engine import gguf, loading
from inference.errors import TargetUnavailable
from tests.inference.engine.conftest import SPECIAL, VOCABULARY, byte_tokenizer, tiny_config, tiny_model

NAMES = {
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm",
}


def write_gguf(path: Path, model: Any) -> None:
    """The tiny Llama as llama.cpp's converter writes it: renamed, with rotary halves interleaved."""
    config = model.config
    writer = gguf_format.GGUFWriter(path, "llama")
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_key_length(config.head_dim)
    writer.add_rope_dimension_count(config.head_dim)
    writer.add_rope_freq_base(config.rope_parameters["rope_theta"])
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_vocab_size(config.vocab_size)
    vocabulary = byte_tokenizer().get_vocab()
    tokens = [*sorted(vocabulary, key=lambda token: vocabulary[token]), "Ġa"]
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list(tokens)
    writer.add_token_types([3 if token in SPECIAL else 1 for token in tokens])
    writer.add_token_merges(["Ġ a"])
    writer.add_bos_token_id(0)
    writer.add_eos_token_id(1)
    writer.add_chat_template("{% for m in messages %}{{ m['content'] }}{% endfor %}")
    for name, tensor in model.state_dict().items():
        writer.add_tensor(*_renamed(name, tensor, config))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _renamed(name: str, tensor: torch.Tensor, config: Any) -> tuple[str, numpy.ndarray]:
    fixed = {
        "model.embed_tokens.weight": "token_embd.weight",
        "model.norm.weight": "output_norm.weight",
        "lm_head.weight": "output.weight",
    }
    if name in fixed:
        return fixed[name], tensor.numpy()
    _, _, layer, rest = name.split(".", 3)
    part = rest.removesuffix(".weight")
    heads = {
        "self_attn.q_proj": config.num_attention_heads,
        "self_attn.k_proj": config.num_key_value_heads,
    }.get(part)
    if heads:
        rows, columns = tensor.shape
        tensor = tensor.reshape(heads, 2, rows // heads // 2, columns).swapaxes(1, 2).reshape(rows, columns)
    return f"blk.{layer}.{NAMES[part]}.weight", tensor.contiguous().numpy()


@pytest.fixture(scope="module")
def model() -> Any:
    return tiny_model(tiny_config(tie_word_embeddings=False, vocab_size=VOCABULARY + 1))


@pytest.fixture(scope="module")
def file(model: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("gguf") / "tiny.gguf"
    write_gguf(path, model)
    return path


@torch.inference_mode()
def logits(model: Any) -> torch.Tensor:
    return model(input_ids=torch.tensor([[5, 60, 200, 7, 11]])).logits


def test_a_gguf_file_loads_into_the_same_model(file: Path, model: Any) -> None:
    found = loading.load(file, "float32")
    assert found.architecture == "LlamaForCausalLM"
    assert found.max_model_tokens == 512
    assert 1 in found.end_ids
    torch.testing.assert_close(logits(found.model), logits(model), rtol=1e-4, atol=1e-4)
    assert found.decode(found.tokenizer("Hello 你好").input_ids) == "Hello 你好"


def test_conversion_makes_a_folder_that_loads(file: Path, model: Any, tmp_path: Path) -> None:
    folder = tmp_path / "models" / "tiny"
    said: list[str] = []
    gguf.convert(file, folder, progress=said.append)
    assert said == ["converting tiny to safetensors (about half a minute) …"]
    assert [path.name for path in folder.parent.iterdir()] == ["tiny"]
    found = loading.load(folder, "float32")
    assert found.model.generation_config.eos_token_id == 1
    assert found.tokenizer.apply_chat_template([{"role": "user", "content": "x"}], tokenize=False) == "x"
    rounded = copy.deepcopy(model)
    for parameter in rounded.parameters():
        parameter.data = parameter.data.to(torch.bfloat16).float()
    torch.testing.assert_close(logits(found.model), logits(rounded), rtol=1e-3, atol=1e-3)


def test_a_conversion_that_breaks_leaves_nothing(file: Path, tmp_path: Path) -> None:
    cut = tmp_path / "cut.gguf"
    cut.write_bytes(file.read_bytes()[:-4000])
    folder = tmp_path / "models" / "tiny"
    with pytest.raises(TargetUnavailable, match="truncated GGUF"):
        gguf.convert(cut, folder, progress=lambda _: None)
    assert list(folder.parent.iterdir()) == []
