"""GGUF files: check them before torch sees them, read them, and convert them once to a safetensors folder."""

import shutil
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gguf
import torch
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer, GgufConfig
from transformers.utils import logging as transformers_logging

from inference.errors import TargetUnavailable

MAGIC = b"GGUF"


def check(path: Path) -> None:
    """Raise TargetUnavailable unless the header parses and every tensor lies inside the file."""
    with path.open("rb") as file:
        if file.read(4) != MAGIC:
            raise TargetUnavailable(f"{path} is not a GGUF file: it does not start with the GGUF mark.")
    size_bytes = path.stat().st_size
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # numpy warns of overflow when lengths in the header are garbage
            tensors = gguf.GGUFReader(path).tensors
    except Exception as error:  # whatever numpy makes of bytes that are not there
        raise TargetUnavailable(f"{path} is a broken or truncated GGUF file ({size_bytes} bytes).") from error
    if not tensors:
        raise TargetUnavailable(f"{path} is a GGUF file without any tensor.")
    end_bytes = max(int(tensor.data_offset) + int(tensor.n_bytes) for tensor in tensors)
    if end_bytes > size_bytes:
        raise TargetUnavailable(
            f"{path} is a truncated GGUF file: it has {size_bytes} bytes, its tensors need {end_bytes}."
        )


def configuration(path: Path) -> Any:
    """The model's configuration as the file's header tells it."""
    check(path)
    try:
        return AutoConfig.from_pretrained(path.parent, gguf_file=path.name, local_files_only=True)
    except Exception as error:  # whatever transformers makes of it
        raise TargetUnavailable(
            f"{path} cannot be read as a language model: {first_sentence(error)}."
        ) from error


def read(path: Path, dtype: torch.dtype) -> tuple[Any, Any]:
    """Model and tokenizer of one GGUF file, every weight unpacked into `dtype`."""
    check(path)
    transformers_logging.disable_progress_bar()
    try:
        tokenizer = AutoTokenizer.from_pretrained(path.parent, gguf_file=path.name, local_files_only=True)
        model = AutoModelForCausalLM.from_pretrained(
            path.parent,
            gguf_file=path.name,
            quantization_config=GgufConfig(dequantize=True),
            dtype=dtype,
            local_files_only=True,
        )
    except TargetUnavailable:
        raise
    except Exception as error:  # whatever transformers makes of it
        raise TargetUnavailable(
            f"{path} cannot be read as a language model: {first_sentence(error)}."
        ) from error
    return model, tokenizer


def convert(
    path: Path, folder: Path, *, progress: Callable[[str], None], dtype: torch.dtype = torch.bfloat16
) -> None:
    """Convert a GGUF file into a safetensors folder with its tokenizer and chat template.

    The folder appears whole or not at all: it is written beside its final place and renamed.
    """
    partial = folder.with_name(f".{folder.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    try:
        progress(f"converting {folder.name} to safetensors (about half a minute) …")
        model, tokenizer = read(path, dtype)
        for config in (model.config, model.generation_config):
            config._name_or_path = folder.name
        if hasattr(model.config, "quantization_config"):
            del model.config.quantization_config
        model.hf_quantizer = None
        model.save_pretrained(partial, safe_serialization=True)
        tokenizer.save_pretrained(partial)
        partial.rename(folder)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def first_sentence(error: Exception) -> str:
    """What an exception of another library says, cut to one line for one sentence."""
    text = " ".join(str(error).split()) or type(error).__name__
    return text.split(". ")[0].rstrip(".")[:300]
