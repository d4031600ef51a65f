"""Server dialects, one file each: `CONTRIBUTING.md` says how to add one."""

from collections.abc import Mapping
from typing import Any

from inference.targets.dialects.base import Dialect, Evidence, Phases
from inference.targets.dialects.generic import GENERIC
from inference.targets.dialects.llama_cpp import LLAMA_CPP
from inference.targets.dialects.ollama import OLLAMA
from inference.targets.dialects.sglang import SGLANG
from inference.targets.dialects.tgi import TGI
from inference.targets.dialects.vllm import VLLM

#: in the order in which they are asked; the first one with the most facts wins
DIALECTS: tuple[Dialect, ...] = (VLLM, SGLANG, TGI, LLAMA_CPP, OLLAMA)

__all__ = ["DIALECTS", "GENERIC", "Dialect", "Evidence", "named", "phases_of_answer", "recognise"]


def named(name: str) -> Dialect:
    """The dialect of that name; the generic one where there is none."""
    return next((dialect for dialect in DIALECTS if dialect.name == name), GENERIC)


def recognise(evidence: Evidence) -> tuple[Dialect, dict[str, Any]]:
    """The server's dialect, and a label `{"name", "title", "version", "found_from"}` to show."""
    found = [(dialect, dialect.signs(evidence)) for dialect in DIALECTS]
    sure = [(dialect, signs) for dialect, signs in found if signs.sure]
    dialect, signs = max(sure, key=lambda one: len(one[1].facts), default=(GENERIC, GENERIC.signs(evidence)))
    label = {
        "name": dialect.name,
        "title": dialect.title,
        "version": signs.version or None,
        "found_from": list(signs.facts),
    }
    return dialect, label


def phases_of_answer(server: Mapping[str, Any]) -> Phases:
    """What came with one answer, whichever server sent it: gateways hide the server, not its fields."""
    for dialect in DIALECTS:
        told = dialect.phases(server)
        if told is not None:
            return told
    return Phases()
