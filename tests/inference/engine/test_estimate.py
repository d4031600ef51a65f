"""What a load will need, from the headers of its files alone; and the threads it computes with."""

import json
from pathlib import Path

import pytest

from inference.engine import cores
from inference.engine.estimate import DEVICE_POOL_BYTES, PROCESS_BYTES, Need, count_weights, need_of
from inference.engine.memory import pool_bytes
from inference.engine.options import EngineOptions
from tests.inference.engine.conftest import VOCABULARY, tiny_config, tiny_model
from tests.inference.engine.test_gguf import write_gguf


def test_weights_are_counted_in_headers(model_folder: Path, tmp_path: Path) -> None:
    model = tiny_model(tiny_config(tie_word_embeddings=False))
    assert count_weights(model_folder) == sum(weight.numel() for weight in model.parameters())
    larger = tiny_model(tiny_config(tie_word_embeddings=False, vocab_size=VOCABULARY + 1))
    write_gguf(tmp_path / "tiny.gguf", larger)
    assert count_weights(tmp_path / "tiny.gguf") == sum(weight.numel() for weight in larger.parameters())


@pytest.mark.parametrize(
    ("dtype", "auto_dtype", "bytes_per_weight", "value_bytes"),
    [("float32", None, 4, 4), ("bfloat16", None, 2, 2), ("auto", None, 4, 4), ("auto", "bfloat16", 2, 2)],
)
def test_need_follows_the_data_type_and_the_pool(
    model_folder: Path, dtype: str, auto_dtype: str | None, bytes_per_weight: int, value_bytes: int
) -> None:
    options = EngineOptions(path=str(model_folder), dtype=dtype, kv_blocks=10, block_tokens=4)
    need = need_of(options, auto_dtype=auto_dtype)
    assert need is not None
    assert need.weights_bytes == count_weights(model_folder) * bytes_per_weight
    layers, kv_heads, head_dim = 2, 2, 8
    assert need.kv_pool_bytes == 40 * 2 * layers * kv_heads * head_dim * value_bytes
    assert need.total_bytes >= need.weights_bytes + need.kv_pool_bytes + PROCESS_BYTES


def test_without_a_size_the_pool_is_what_an_engine_would_take(model_folder: Path) -> None:
    options = EngineOptions(path=str(model_folder))
    need, on_device = need_of(options), need_of(options, on_device=True)
    assert need is not None
    assert need.kv_pool_bytes == pytest.approx(pool_bytes(), rel=0.2)
    assert on_device is not None
    assert on_device.kv_pool_bytes == DEVICE_POOL_BYTES  # there it takes what is left, not a share


def test_a_draft_model_counts_too(model_folder: Path) -> None:
    plain = need_of(EngineOptions(path=str(model_folder), kv_blocks=1))
    both = need_of(EngineOptions(path=str(model_folder), kv_blocks=1, speculate=f"draft:{model_folder}"))
    assert isinstance(plain, Need)
    assert both is not None
    assert both.weights_bytes == 2 * plain.weights_bytes


@pytest.mark.parametrize("content", [b"", b"\xff" * 64, json.dumps({"a": 1}).encode()])
def test_what_the_files_do_not_tell_is_not_guessed(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "model.safetensors").write_bytes(content)
    assert need_of(EngineOptions(path=str(tmp_path))) is None
    assert need_of(EngineOptions(path=str(tmp_path / "nowhere"))) is None


@pytest.mark.parametrize(
    ("variables", "quota", "expected"),
    [
        ({}, None, (8, "8 cores / 1 engine processes")),
        ({"PHASEGATE_ENGINE_WORKERS": "3"}, None, (2, "8 cores / 3 engine processes")),
        ({"PHASEGATE_ENGINE_WORKERS": "20"}, None, (1, "8 cores / 20 engine processes")),
        ({"PHASEGATE_ENGINE_WORKERS": "many"}, "max 100000", (8, "8 cores / 1 engine processes")),
        ({}, "250000 100000", (3, "3 cores / 1 engine processes")),
        ({"OMP_NUM_THREADS": "5", "PHASEGATE_ENGINE_WORKERS": "2"}, None, (5, "OMP_NUM_THREADS")),
    ],
)
def test_threads_are_the_cores_shared_by_the_engines_of_the_machine(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    variables: dict[str, str],
    quota: str | None,
    expected: tuple[int, str],
) -> None:
    for name in ("OMP_NUM_THREADS", cores.WORKERS_VARIABLE):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(cores.os, "sched_getaffinity", lambda pid: set(range(8)))
    monkeypatch.setattr(cores, "CGROUP_QUOTA", tmp_path / "cpu.max")
    if quota is not None:
        (tmp_path / "cpu.max").write_text(quota)
    assert cores.default_threads() == expected
