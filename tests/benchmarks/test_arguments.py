"""What the benchmark may be asked."""

import sys
from argparse import ArgumentTypeError
from pathlib import Path

import pytest

from benchmarks import arguments as asked


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "config.json").write_text("{}")
    return tmp_path


def parse(folder: Path, *words: str):
    parser = asked.parser()
    arguments = parser.parse_args(["--model", str(folder), *words])
    asked.check(arguments, parser)
    return arguments


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("max_batch=16", 16),
        ("prefix_cache=false", False),
        ("kv_blocks=null", None),
        ("kernels=torch", "torch"),
        ("speculate=draft:a=b", "draft:a=b"),
    ],
)
def test_a_setting_is_json_where_it_can_be(text, value):
    assert asked.setting(text)[1] == value


@pytest.mark.parametrize("text", ["max_batch", "=3", ""])
def test_a_setting_needs_a_key_and_a_value(text):
    with pytest.raises(ArgumentTypeError, match="KEY=VALUE"):
        asked.setting(text)


def test_transformers_are_in_our_own_environment_and_others_only_where_named(folder):
    arguments = parse(folder, "--peer", "vllm=/there/python")
    assert [(peer.name, peer.python) for peer in asked.peers(arguments)] == [
        ("vllm", "/there/python"),
        ("transformers", sys.executable),
    ]
    assert asked.absent(arguments) == ["llama.cpp"]


def test_a_peer_has_its_own_options_and_type(folder):
    arguments = parse(
        folder,
        *("--peer", "vllm=p", "--peer-dtype", "vllm=float32", "--peer-option", "vllm:enforce_eager=true"),
        *("--without", "transformers"),
    )
    (vllm,) = asked.peers(arguments)
    assert (vllm.dtype, vllm.options) == ("float32", {"enforce_eager": True})
    assert asked.absent(arguments) == ["llama.cpp"]


def test_a_second_engine_differs_from_the_first_only_where_told(folder):
    arguments = parse(
        folder,
        *("--without", "transformers", "--engine", "max_batch=8"),
        *("--versus", "kernels=torch", "--versus", "dtype=float32"),
    )
    (variant,) = asked.peers(arguments)
    assert variant.module == "product"
    assert variant.dtype == "float32"
    assert variant.options == {"max_batch": 8, "kernels": "torch"}


@pytest.mark.parametrize(
    "words",
    [
        ["--scale", "0"],
        ["--repetitions", "0"],
        ["--dtype", "float16"],
        ["--only", "mixed,everything"],
        ["--peer", "triton=python"],
        ["--peer-dtype", "vllm=float16"],
        ["--model", "/nowhere"],
    ],
)
def test_nonsense_is_refused_before_anything_is_loaded(folder, words, capsys):
    with pytest.raises(SystemExit) as ended:
        parse(folder, *words)
    assert ended.value.code == 2
    assert "error:" in capsys.readouterr().err
