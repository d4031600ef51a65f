"""The C step: its products against PyTorch, its threads, its build, and what is used instead of it."""

import ctypes
import random
import threading
from pathlib import Path
from typing import Any

import pytest
import torch

from inference.engine import precision
from inference.engine.native import build, library, packing, recipe
from inference.engine.native.linear import NativeLinear
from inference.engine.native.recipe import FIRST_POSITIONS
from inference.engine.proving import round_weights
from inference.errors import TargetUnavailable
from tests.inference.engine.conftest import (
    PLAIN,
    Bench,
    loaded,
    reference,
    tiny_config,
    tiny_model,
)

FORMATS = ("float32", "bfloat16", "int8", "int4")


def as_computed(weight: torch.Tensor, weights: str) -> torch.Tensor:
    """The values a packed weight stands for, in float64."""
    if weights in ("int8", "int4"):
        weights = packing.format_for(weights, weight.shape[1])
        return packing.dequantise(*packing.quantise(weight, weights), weights).double()
    return weight.to(getattr(torch, weights)).double()


@pytest.mark.parametrize("weights", FORMATS)
@pytest.mark.parametrize(("outputs", "inputs"), [(16, 32), (40, 96), (7, 64), (259, 320), (64, 33)])
def test_products_equal_those_of_pytorch(weights: str, outputs: int, inputs: int) -> None:
    linear = torch.nn.Linear(inputs, outputs)
    native = NativeLinear(linear, weights)
    expected_weight = as_computed(linear.weight.data, weights)
    for rows in (*range(1, 15), 50):
        x = torch.randn(rows, inputs)
        expected = x.double() @ expected_weight.T + linear.bias.data.double()
        torch.testing.assert_close(native(x).double(), expected, rtol=1e-5, atol=1e-5)


def test_int4_without_whole_groups_falls_back_to_int8() -> None:
    assert packing.format_for("int4", 33) == "int8"
    assert packing.format_for("int4", 64) == "int4"


@pytest.mark.parametrize(("weights", "bound"), [("int8", 0.01), ("int4", 0.12)])
def test_quantised_weights_stay_near_the_stored_ones(weights: str, bound: float) -> None:
    weight = torch.randn(64, 128)
    weight[3] = 0  # a row without any magnitude
    off = (packing.rounded(weight, weights) - weight).norm() / weight.norm()
    assert 0 < off < bound
    assert not packing.rounded(weight, weights)[3].any()


def test_products_are_right_whoever_shares_the_threads() -> None:
    """Pieces are handed out by a counter: none may be lost or done twice, however the threads are slowed."""
    found = library.open_library()
    assert found.pg_threads(4) >= 4
    stop = threading.Event()
    busy = [threading.Thread(target=lambda: [None for _ in iter(stop.is_set, True)]) for _ in range(3)]
    for thread in busy:
        thread.start()
    try:
        linear = torch.nn.Linear(32, 640)
        native = NativeLinear(linear, "float32")
        x = torch.randn(3, 32)
        expected = linear(x)
        for _ in range(400):
            torch.testing.assert_close(native(x), expected, rtol=1e-4, atol=1e-4)
    finally:
        stop.set()


@pytest.mark.parametrize("weights", ["int8", "int4"])
@pytest.mark.parametrize("kind", ["llama", "qwen3", "gemma3_text", "gpt_neox"])
def test_quantised_output_equals_generate_with_the_same_rounded_weights(kind: str, weights: str) -> None:
    model = tiny_model(tiny_config(kind))
    rounded = tiny_model(tiny_config(kind))
    round_weights(rounded, weights)
    prompts = [list(PLAIN)[at : at + 21] for at in (3, 40, 90)]
    expected = [reference(rounded, ids, 10) for ids in prompts]
    bench = Bench(loaded(model, weights=weights))
    results = [bench.submit(ids, max_tokens=10) for ids in prompts]
    bench.finish()
    assert [result.ids for result in results] == expected


@pytest.mark.parametrize("weights", ["int8", "int4"])
def test_quantised_weights_take_less_memory(weights: str) -> None:
    plain = Bench(loaded(tiny_model(tiny_config(hidden_size=64, intermediate_size=256)))).engine.loaded
    small = Bench(loaded(tiny_model(tiny_config(hidden_size=64, intermediate_size=256)), weights=weights))
    assert small.engine.loaded.weights_bytes < 0.6 * plain.weights_bytes
    assert small.engine.loaded.parameters == plain.parameters


def test_positions_beyond_the_first_table_are_made_when_they_are_needed() -> None:
    length = FIRST_POSITIONS + 40
    model = tiny_model(tiny_config(max_position_embeddings=4096, num_hidden_layers=1))
    rng = random.Random(5)
    ids = [rng.choice(PLAIN) for _ in range(length)]
    expected = reference(model, ids, 4)
    bench = Bench(loaded(model), kv_blocks=80, block_tokens=32, prefill_chunk_tokens=512)
    assert bench.run(ids, max_tokens=4).ids == expected


def test_the_plain_weights_are_given_up_and_the_answers_stay() -> None:
    bench = Bench(loaded(tiny_model(tiny_config())))
    before = bench.run([5, 6, 7], max_tokens=6).ids
    bench.engine.release_plain_weights()
    assert sum(one.numel() for one in bench.engine.loaded.model.parameters()) == 0
    assert bench.run([5, 6, 7], max_tokens=6).ids == before
    assert bench.engine.loaded.weights_bytes > 0


# -- what is used where the C step cannot be ----------------------------------------------------------


@pytest.fixture
def no_library(monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing() -> Any:
        raise build.NoLibrary("there is no C compiler")

    for place in ("linear.library", "runner.library", "library"):
        monkeypatch.setattr(f"inference.engine.native.{place}.open_library", nothing)
    monkeypatch.setattr(precision, "open_library", nothing)


@pytest.mark.usefixtures("no_library")
def test_without_a_compiler_pytorch_computes_the_same() -> None:
    model = tiny_model(tiny_config())
    expected = reference(model, [9, 8, 7], 6)
    bench = Bench(loaded(model))
    assert bench.engine.kernels == "PyTorch"
    assert bench.run([9, 8, 7], max_tokens=6).ids == expected


@pytest.mark.usefixtures("no_library")
@pytest.mark.parametrize(("options", "weights"), [({"kernels": "native"}, ""), ({}, "int8")])
def test_what_needs_c_says_why_it_cannot_be_had(options: dict[str, str], weights: str) -> None:
    with pytest.raises(TargetUnavailable, match="there is no C compiler"):
        Bench(loaded(tiny_model(tiny_config()), weights=weights), **options)


def test_quantised_weights_without_c_kernels_are_refused() -> None:
    with pytest.raises(TargetUnavailable, match="kernels=torch has none"):
        Bench(loaded(tiny_model(tiny_config()), weights="int8"), kernels="torch")


def test_a_step_that_computes_something_else_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(recipe.ACTIVATIONS, "silu", library.GELU_TANH)
    model = tiny_model(tiny_config())
    expected = reference(model, [4, 5], 5)
    bench = Bench(loaded(model))
    assert bench.engine.kernels == "PyTorch, linear layers in C"
    assert bench.run([4, 5], max_tokens=5).ids == expected


def test_a_model_that_is_built_otherwise_than_its_type_says_is_computed_all_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(recipe.FAMILIES, "llama", recipe.Family(mlp_out="a_norm_it_does_not_have"))
    model = tiny_model(tiny_config())
    expected = reference(model, [4, 5], 5)
    bench = Bench(loaded(model))
    assert bench.engine.kernels == "PyTorch, linear layers in C"
    assert bench.run([4, 5], max_tokens=5).ids == expected


def test_two_threads_may_call_the_library_at_once() -> None:
    linears = [torch.nn.Linear(64, 640), torch.nn.Linear(320, 64)]
    wrong: list[float] = []

    def compute(linear: torch.nn.Linear) -> None:
        native = NativeLinear(linear, "float32")
        x = torch.randn(5, linear.in_features)
        expected = linear(x).detach()
        for _ in range(200):
            off = float((native(x) - expected).abs().max())
            if not off < 1e-4:
                wrong.append(off)

    callers = [threading.Thread(target=compute, args=[linear]) for linear in linears]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert wrong == []


def test_auto_is_bfloat16_where_it_is_fast_and_float32_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    llama, gpt2 = tiny_config("llama"), tiny_config("gpt2")
    for native in (True, False):
        monkeypatch.setattr(precision, "native_bfloat16", lambda native=native: native)
        assert precision.choose("auto", llama).dtype is torch.bfloat16
        assert precision.choose("auto", gpt2).dtype is (torch.bfloat16 if native else torch.float32)
        without_c = precision.choose("auto", llama, kernels="torch").dtype
        assert without_c is (torch.bfloat16 if native else torch.float32)
    assert precision.choose("int4", gpt2) == precision.Precision(torch.float32, "int4")
    assert precision.choose("float32", llama) == precision.Precision(torch.float32, "float32")


# -- the build ------------------------------------------------------------------------------------------


@pytest.fixture
def fresh_build(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("PHASEGATE_CACHE", str(tmp_path / "cache"))
    build.library_path.cache_clear()
    yield tmp_path
    build.library_path.cache_clear()


def compiler(folder: Path, script: str) -> Path:
    file = folder / "cc"
    file.write_text(f"#!/bin/sh\n{script}\n")
    file.chmod(0o755)
    return file


def test_a_compiler_that_fails_is_named_with_its_first_error(
    fresh_build: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = compiler(fresh_build, "echo 'step.c:1: error: no such processor' >&2; exit 1")
    monkeypatch.setattr(build, "_compilers", lambda: [[str(broken)]])
    with pytest.raises(build.NoLibrary, match="no such processor"):
        build.library_path()
    assert not list((fresh_build / "cache" / "native").iterdir())  # nothing half-made stays


def test_no_compiler_at_all_is_said(fresh_build: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build, "_compilers", list)
    with pytest.raises(build.NoLibrary, match="no C compiler was found"):
        build.library_path()


def test_a_cache_that_cannot_be_written_is_said(fresh_build: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (fresh_build / "cache").write_text("a file in the way")
    with pytest.raises(build.NoLibrary, match="could not be compiled"):
        build.library_path()


def test_the_library_is_built_once(fresh_build: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    marks = fresh_build / "marks"
    find_output = 'while [ "$1" != -o ]; do shift; done'
    made = compiler(fresh_build, f'echo x >> {marks}; {find_output}; echo made > "$2"')
    monkeypatch.setattr(build, "_compilers", lambda: [[str(made)]])
    first = build.library_path()
    build.library_path.cache_clear()
    assert build.library_path() == first
    assert first.read_text() == "made\n"
    assert marks.read_text() == "x\n"


def test_structures_have_the_size_that_c_gives_them() -> None:
    found = library.open_library()
    sizes = (ctypes.c_int64 * 4)()
    found.pg_sizes(sizes)
    python = [library.Matrix, library.Layer, library.Model, library.Step]
    assert list(sizes) == [ctypes.sizeof(one) for one in python]
