"""What the benchmark may be asked, checked before anything is loaded."""

import argparse
import json
import os
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks import workloads
from benchmarks.worker import ROOT, RUN_LIMIT_S

MODULES = {
    "vllm": "vllm_cpu",
    "transformers": "transformers_generate",
    "llama.cpp": "llama_cpp_batch",
}
DTYPES = ("bfloat16", "float32", "int8", "int4")
PARTS = ("overhead", "queue", "timing", "switches")
VARIANT = "variant"  # the product itself with other options


@dataclass(kw_only=True)
class PeerArguments:
    """One peer: the interpreter of its environment, its own settings, and its type where that is not ours."""

    name: str
    python: str
    options: dict[str, Any] = field(default_factory=dict)
    dtype: str | None = None

    @property
    def module(self) -> str:
        return "product" if self.name == VARIANT else MODULES[self.name]


def setting(text: str) -> tuple[str, Any]:
    """`key=value`, the value as JSON where it is JSON (16, true, null) and as it stands otherwise."""
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise argparse.ArgumentTypeError(f"{text!r} is not KEY=VALUE")
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value


def of_peer(text: str) -> tuple[str, str]:
    """`peer=value` with a known peer."""
    name, equals, value = text.partition("=")
    if name not in MODULES or not equals or not value:
        raise argparse.ArgumentTypeError(f"{text!r} is not PEER=VALUE with a peer of {', '.join(MODULES)}")
    return name, value


def peer_setting(text: str) -> tuple[str, tuple[str, Any]]:
    name, rest = of_peer(text.replace(":", "=", 1))
    return name, setting(rest)


def names(allowed: tuple[str, ...]) -> Any:
    """A parser of comma-separated names out of `allowed`."""

    def parse(text: str) -> list[str]:
        found = [name.strip() for name in text.split(",") if name.strip()]
        for name in found:
            if name not in allowed:
                raise argparse.ArgumentTypeError(f"{name!r} is not one of {', '.join(allowed)}")
        return found

    return parse


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        prog="benchmarks/engine.py",
        description="Measure the engine beside its peers and the machine's limits, in one run.",
        epilog="A peer that is not there, or cannot do a workload, is left out with a line that says why.",
    )
    loads = (*workloads.NAMES, workloads.POISSON)
    made.add_argument("--model", type=Path, default=ROOT / "var" / "models" / "SmolLM2-135M-Instruct")
    made.add_argument("--dtype", type=names(DTYPES), default=["bfloat16"], help="one or more, by comma")
    made.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    made.add_argument("--scale", type=float, default=1.0, help="multiply all lengths by this")
    made.add_argument("--repetitions", type=int, default=3, help="pairs of each workload and peer")
    made.add_argument("--only", type=names(loads), default=list(loads), help="these workloads, by comma")
    made.add_argument(
        "--limit-s", type=float, default=RUN_LIMIT_S, help="a run that takes longer is given up"
    )
    made.add_argument("--poisson-requests", type=int, default=64)
    made.add_argument(
        "--peer", type=of_peer, action="append", default=[], help="PEER=PYTHON of its environment; repeatable"
    )
    made.add_argument("--without", type=names(tuple(MODULES)), default=[], help="peers to leave out")
    made.add_argument("--peer-dtype", type=of_peer, action="append", default=[], help="PEER=DTYPE, not ours")
    made.add_argument("--peer-option", type=peer_setting, action="append", default=[], help="PEER:KEY=VALUE")
    made.add_argument("--gguf", type=Path, help="folder of GGUF files; made there from the default model")
    made.add_argument(
        "--engine", type=setting, action="append", default=[], help="KEY=VALUE of EngineOptions"
    )
    made.add_argument(
        "--versus", type=setting, action="append", default=[], help="KEY=VALUE of a second engine, as a peer"
    )
    for part in PARTS:
        made.add_argument(f"--{part}", action="store_true", help=f"only this part: {PART_HELP[part]}")
    made.add_argument("--draft", type=Path, help="a draft model, for --switches")
    made.add_argument("--json", type=Path, help="write everything here")
    made.add_argument("--markdown", action="store_true", help="print tables of Markdown")
    return made


PART_HELP = {
    "overhead": "what a step costs beside the model's forward",
    "queue": "what 1,000 queued requests cost the running ones",
    "timing": "what the stamps cost",
    "switches": "each technique against the baseline",
}


def peers(arguments: argparse.Namespace) -> list[PeerArguments]:
    """The peers in the order of `MODULES`; transformers are in the product's own environment."""
    pythons = {"transformers": sys.executable} | dict(arguments.peer)
    dtypes = dict(arguments.peer_dtype)
    found = [
        PeerArguments(
            name=name,
            python=pythons[name],
            options=dict(pair for owner, pair in arguments.peer_option if owner == name),
            dtype=dtypes.get(name),
        )
        for name in MODULES
        if name in pythons and name not in arguments.without
    ]
    if arguments.versus:
        both = dict(arguments.engine) | dict(arguments.versus)
        dtype = both.pop("dtype", None)
        found.append(PeerArguments(name=VARIANT, python=sys.executable, options=both, dtype=dtype))
    return found


def absent(arguments: argparse.Namespace) -> list[str]:
    """Peers that no environment was named for."""
    there = {name for name, _ in arguments.peer} | {"transformers"}
    return [name for name in MODULES if name not in there and name not in arguments.without]


def check(arguments: argparse.Namespace, made: argparse.ArgumentParser) -> None:
    """Leave with a usage message where the arguments make no sense together."""
    if not 0 < arguments.scale <= 4:
        made.error("--scale must be above 0 and at most 4")
    if arguments.repetitions < 1 or arguments.threads < 1 or arguments.poisson_requests < 1:
        made.error("--repetitions, --threads and --poisson-requests must be at least 1")
    for name, dtype in arguments.peer_dtype:
        if dtype not in DTYPES:
            made.error(f"--peer-dtype {name}={dtype}: choose one of {', '.join(DTYPES)}")
    if not (arguments.model / "config.json").is_file():
        made.error(f"there is no model folder {arguments.model}; `make model` fetches the default one")
