"""A tokenizer from a model folder, to count what a server does not tell."""

from collections.abc import Callable
from pathlib import Path

from tokenizers import Tokenizer

from inference.errors import InputError


def load_tokenize(folder: Path) -> Callable[[str], list[int]]:
    """Text → ids without special tokens, from `tokenizer.json` in a folder (or that file itself)."""
    path = folder / "tokenizer.json" if folder.is_dir() else folder
    try:
        tokenizer = Tokenizer.from_file(str(path))
    except Exception as fault:  # the library raises bare Exception
        raise InputError(f"cannot read tokenizer {path}: {fault}") from fault

    def tokenize(text: str) -> list[int]:
        return list(tokenizer.encode(text, add_special_tokens=False).ids)

    return tokenize
