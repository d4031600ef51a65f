"""From a path to a model that is proven to run on the paged cache, or one sentence saying why not."""

import contextlib
import hashlib
import json
import math
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer, PreTrainedModel

from inference.engine import attention, gguf
from inference.engine.gguf import first_sentence
from inference.engine.precision import choose
from inference.errors import TargetUnavailable

KNOWN_LAYERS = frozenset({"full_attention", "sliding_attention"})
BYTE_TOKEN = re.compile("<0x[0-9A-F]{2}>")
DIGEST_CHUNK_BYTES = 8 * 2**20
LOCALLY: dict[str, Any] = {"local_files_only": True, "trust_remote_code": False}


@dataclass(kw_only=True)
class LoadedModel:
    """A model with its tokenizer and the facts that belong into the evidence."""

    model: PreTrainedModel
    tokenizer: Any
    name: str
    digest: str
    architecture: str
    dtype: torch.dtype
    max_model_tokens: int
    vocabulary: int
    end_ids: frozenset[int]
    byte_ids: frozenset[int] = frozenset()  # tokens of single bytes, `<0x41>`
    weights: str = ""  # precision of the linear layers; "": that of `dtype`
    parameters: int = 0
    weights_bytes: int = 0  # as they are computed with: packed, quantised

    def __post_init__(self) -> None:
        self.weights = self.weights or str(self.dtype).removeprefix("torch.")
        self.parameters = self.parameters or sum(one.numel() for one in self.model.parameters())
        tensors = [*self.model.parameters(), *self.model.buffers()]
        self.weights_bytes = self.weights_bytes or sum(tensor.nbytes for tensor in tensors)

    def decode(self, ids: list[int]) -> str:
        """Text of ids without special tokens, exactly as the tokenizer's decoder joins them."""
        backend = getattr(self.tokenizer, "backend_tokenizer", None)
        if backend is not None:  # the same without the wrapper's tenfold overhead
            return backend.decode(ids, skip_special_tokens=True)
        return self.tokenizer.decode(ids, skip_special_tokens=True, clean_up_tokenization_spaces=False)


def load(
    path: Path,
    dtype: str,
    *,
    kernels: str = "auto",
    known_digest: str | None = None,
    device: str = "cpu",
) -> LoadedModel:
    """Load a Hugging Face folder or a `.gguf` file; raises TargetUnavailable with one sentence.

    The weights lie in the machine's memory then; `device` is where they will be used.
    """
    if not path.exists():
        raise TargetUnavailable(f"There is no model at {path}.")
    if path.is_dir():
        files = _check_folder(path)
        config, tokenizer = _read_configuration(path)
        precision = choose(dtype, config, kernels=kernels, device=device)
        model = _read_weights(path, config, precision.dtype)
    else:
        if path.suffix.lower() != ".gguf":
            raise TargetUnavailable(f"{path} is neither a model folder nor a .gguf file.")
        files = [path]
        precision = choose(dtype, gguf.configuration(path), kernels=kernels, device=device)
        model, tokenizer = gguf.read(path, precision.dtype)
    model.eval()
    _check_model(path, model)
    if tokenizer.chat_template:  # compiled at its first use: not inside somebody's first request
        with contextlib.suppress(Exception):
            tokenizer.apply_chat_template([{"role": "user", "content": "."}])
    return LoadedModel(
        model=model,
        tokenizer=tokenizer,
        name=path.name,
        digest=known_digest or weights_digest(files),
        architecture=type(model).__name__,
        dtype=precision.dtype,
        weights=precision.weights,
        max_model_tokens=_max_tokens(model.config),
        vocabulary=_vocabulary(model),
        end_ids=_end_ids(model, tokenizer),
        byte_ids=frozenset(at for token, at in tokenizer.get_vocab().items() if BYTE_TOKEN.fullmatch(token)),
    )


def use_paged_attention(model: PreTrainedModel, path: Path) -> None:
    """Let the model call the paged attention; raises TargetUnavailable where it has no place for it."""
    try:
        model.set_attn_implementation(attention.NAME)
    except Exception as error:
        raise TargetUnavailable(f"{_unsupported(path, model)}: {first_sentence(error)}.") from error


def _check_folder(path: Path) -> list[Path]:
    """The weight files of a folder, each with a whole header."""
    config = path / "config.json"
    if not config.is_file():
        raise TargetUnavailable(f"{path} is not a model folder: it has no config.json.")
    try:
        json.loads(config.read_text(encoding="utf-8"))
    except ValueError as error:
        raise TargetUnavailable(f"{config} is not valid JSON: {error}.") from error
    files = sorted(path.glob("*.safetensors"))
    if not files:
        pickled = next(iter(sorted([*path.glob("*.bin"), *path.glob("*.pt"), *path.glob("*.pth")])), None)
        if pickled is not None:
            raise TargetUnavailable(
                f"{path} has its weights as pickle ({pickled.name}), which can run code; "
                "convert them to safetensors."
            )
        raise TargetUnavailable(f"{path} has no weights: no .safetensors file is there.")
    for file in files:
        try:
            with safe_open(file, framework="pt") as weights:
                weights.keys()
        except (SafetensorError, OSError) as error:
            raise TargetUnavailable(f"{file} is a broken or truncated safetensors file: {error}.") from error
    return files


def _read_configuration(path: Path) -> tuple[Any, Any]:
    """The configuration and the tokenizer of a folder."""
    try:
        config = AutoConfig.from_pretrained(path, **LOCALLY)
    except Exception as error:
        raise TargetUnavailable(f"The model in {path} is not known: {first_sentence(error)}.") from error
    try:
        tokenizer = AutoTokenizer.from_pretrained(path, **LOCALLY)
    except Exception as error:
        raise TargetUnavailable(f"{path} has no usable tokenizer: {first_sentence(error)}.") from error
    return config, tokenizer


def _read_weights(path: Path, config: Any, dtype: torch.dtype) -> PreTrainedModel:
    loader: Any = AutoModelForCausalLM
    try:
        model, report = loader.from_pretrained(
            path,
            config=config,
            dtype=dtype,
            use_safetensors=True,
            output_loading_info=True,
            ignore_mismatched_sizes=True,  # told apart below, where the message can name the weight
            **LOCALLY,
        )
    except Exception as error:
        raise TargetUnavailable(f"The model in {path} cannot be loaded: {first_sentence(error)}.") from error
    for name, stored, wanted in sorted(report["mismatched_keys"]):
        raise TargetUnavailable(
            f"The weights in {path} do not fit its config.json: {name} is {list(stored)}, not {list(wanted)}."
        )
    missing = sorted(report["missing_keys"])
    if missing:
        raise TargetUnavailable(
            f"The weights in {path} are incomplete: {missing[0]} and {len(missing) - 1} more are missing."
        )
    return model


def _check_model(path: Path, model: PreTrainedModel) -> None:
    """Reject at once what could never run on the paged cache (the probe finds the rest)."""
    if not model._supports_attention_backend or model._is_stateful or model.config.is_encoder_decoder:
        raise TargetUnavailable(f"{_unsupported(path, model)}.")
    layers = set(getattr(model.config, "layer_types", None) or ()) - KNOWN_LAYERS
    if layers:
        raise TargetUnavailable(
            f"{_unsupported(path, model)}: it has layers of type {', '.join(sorted(layers))}."
        )


def _unsupported(path: Path, model: PreTrainedModel) -> str:
    return f"{type(model).__name__} in {path} cannot run on the paged cache"


def _max_tokens(config: Any) -> int:
    for name in ("max_position_embeddings", "n_positions", "max_seq_len", "n_ctx"):
        value = getattr(config, name, None)
        if isinstance(value, int) and value > 0:
            return value
    raise TargetUnavailable("The model's configuration does not say how many tokens it can take.")


def _vocabulary(model: PreTrainedModel) -> int:
    embedding: Any = model.get_input_embeddings()
    return int(embedding.weight.shape[0])


def _end_ids(model: PreTrainedModel, tokenizer: Any) -> frozenset[int]:
    """Every token that ends an answer: the generation configuration's, the model's and the tokenizer's."""
    ids: set[int] = set()
    for source in (model.generation_config, model.config, tokenizer):
        value = getattr(source, "eos_token_id", None)
        ids |= set(value) if isinstance(value, list | tuple) else {value} if value is not None else set()
    return frozenset(ids)


def weights_digest(files: list[Path]) -> str:
    """SHA-256 over the bytes of all weight files, in the order of their names."""
    digest = hashlib.sha256()
    for file in files:
        with file.open("rb") as stream:
            while chunk := stream.read(DIGEST_CHUNK_BYTES):
                digest.update(chunk)
    return f"sha256:{digest.hexdigest()}"


def logits_differ(plain: torch.Tensor, paged: torch.Tensor) -> float:
    """Largest difference of two logit matrices, relative to the largest logit; infinite when not finite."""
    plain, paged = plain.float(), paged.float()
    difference = float((plain - paged).abs().max() / plain.abs().max().clamp_min(1e-6))
    return difference if math.isfinite(difference) else math.inf
