"""A model that cannot be loaded is refused in one sentence that says what and where."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import gguf as gguf_writer
import numpy
import pytest
import torch

from inference.engine import gguf, loading
from inference.engine.options import EngineOptions
from inference.errors import InputError, TargetUnavailable
from tests.inference.engine.conftest import Bench, byte_tokenizer, loaded, tiny_config, tiny_model

Spoil = Callable[[Path], None]


@pytest.fixture
def folder(model_folder: Path, tmp_path: Path) -> Path:
    """A copy of the tiny model that a test may spoil."""
    return Path(shutil.copytree(model_folder, tmp_path / "model"))


def test_a_folder_loads_with_the_facts_for_the_evidence(folder: Path) -> None:
    model = loading.load(folder, "float32")
    assert model.architecture == "LlamaForCausalLM"
    assert model.digest.startswith("sha256:")
    assert len(model.digest) == 71
    assert model.max_model_tokens == 512
    assert model.end_ids == {1}
    assert model.parameters == sum(parameter.numel() for parameter in model.model.parameters())
    assert loading.load(folder, "float32", known_digest="sha256:known").digest == "sha256:known"


def test_the_digest_is_of_the_weights(folder: Path) -> None:
    before = loading.load(folder, "float32").digest
    (folder / "README.md").write_text("words")
    assert loading.load(folder, "float32").digest == before
    tiny_model(tiny_config(), seed=1).save_pretrained(folder)
    assert loading.load(folder, "float32").digest != before


def _rewrite_config(folder: Path, **changes: object) -> None:
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | changes))


def _cut_weights(folder: Path) -> None:
    file = folder / "model.safetensors"
    file.write_bytes(file.read_bytes()[:-1000])


def _pickle_only(folder: Path) -> None:
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")


def _lose_a_layer(folder: Path) -> None:
    _rewrite_config(folder, num_hidden_layers=3, layer_types=["full_attention"] * 3)


def _remove_tokenizer(folder: Path) -> None:
    for name in ("tokenizer.json", "tokenizer_config.json"):
        (folder / name).unlink()


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (shutil.rmtree, "There is no model at"),
        (lambda folder: (folder / "config.json").unlink(), "has no config.json"),
        (lambda folder: (folder / "config.json").write_text("{"), "is not valid JSON"),
        (lambda folder: (folder / "model.safetensors").unlink(), "has no weights"),
        (_pickle_only, "pickle"),
        (_cut_weights, "broken or truncated safetensors"),
        (lambda folder: (folder / "model.safetensors").write_bytes(b"nothing"), "broken or truncated"),
        (_lose_a_layer, "incomplete"),
        (_remove_tokenizer, "tokenizer"),
        (lambda folder: _rewrite_config(folder, model_type="no_such_model"), "is not known"),
        (lambda folder: _rewrite_config(folder, hidden_size=48), "do not fit its config.json"),
        (lambda folder: _rewrite_config(folder, layer_types=["linear_attention"] * 2), "layers of type"),
    ],
)
def test_a_spoilt_folder_is_refused_in_one_sentence(folder: Path, spoil: Spoil, reason: str) -> None:
    spoil(folder)
    with pytest.raises(TargetUnavailable) as caught:
        loading.load(folder, "float32")
    assert reason in str(caught.value)
    assert str(folder) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_file_that_is_no_model(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("words")
    with pytest.raises(TargetUnavailable, match=r"neither a model folder nor a \.gguf file"):
        loading.load(path, "float32")


def _write_gguf(path: Path) -> None:
    """One tensor in a valid file: enough to be read, not a whole model."""
    writer = gguf_writer.GGUFWriter(path, "llama")
    writer.add_block_count(1)
    writer.add_tensor("token_embd.weight", numpy.ones((64, 64), dtype=numpy.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def test_a_gguf_file_is_checked_before_anything_reads_it(tmp_path: Path) -> None:
    path = tmp_path / "m.gguf"
    _write_gguf(path)
    gguf.check(path)
    whole = path.read_bytes()
    for content, reason in (
        (b"PK\x03\x04 no model", "not a GGUF file"),
        (b"", "not a GGUF file"),
        (whole[:20], "broken or truncated"),
        (whole[:-5000], "truncated"),
        (whole[:4] + b"\xff" * 60, "broken or truncated"),
    ):
        path.write_bytes(content)
        with pytest.raises(TargetUnavailable, match=reason):
            loading.load(path, "float32")


def test_a_gguf_file_that_is_no_whole_model(tmp_path: Path) -> None:
    path = tmp_path / "m.gguf"
    _write_gguf(path)
    with pytest.raises(TargetUnavailable, match="cannot be read as a language model"):
        loading.load(path, "float32")


def test_bfloat16_agrees_with_the_plain_model() -> None:
    model = loaded(tiny_model(tiny_config(initializer_range=0.1)))
    model.model.to(torch.bfloat16)
    model.dtype = torch.bfloat16
    bench = Bench(model)  # the probe compares at load
    assert bench.run([5, 6, 7], max_tokens=5).reason == "length"
    assert bench.engine.pool.layers[0][0].dtype == torch.bfloat16


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"kernels": "fast"}, "kernels"),
        ({"dtype": "float8"}, "unknown"),
        ({"max_batch": 0}, "max-batch"),
        ({"kv_blocks": -1}, "kv-blocks"),
        ({"threads": True}, "threads"),
        ({"block_tokens": 1.5}, "block-tokens"),
    ],
)
def test_settings_out_of_range_are_refused_before_anything_starts(
    options: dict[str, object], reason: str
) -> None:
    with pytest.raises(InputError, match=reason):
        EngineOptions(path="x", **options)  # type: ignore[arg-type]


def test_a_pool_larger_than_the_memory_is_refused() -> None:
    with pytest.raises(TargetUnavailable, match="MiB of memory are free"):
        Bench(loaded(tiny_model(tiny_config()), byte_tokenizer()), kv_blocks=10**9)
