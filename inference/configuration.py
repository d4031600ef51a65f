"""What a run was made with: versions, machine and settings, and one digest that names them."""

import hashlib
import json
import os
import platform
import socket
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

import psutil

from inference.targets.base import TargetInfo

PACKAGES = ("phasegate", "torch", "transformers", "tokenizers", "safetensors", "numpy", "h11")
#: facts of the moment: stored with a run, no part of what it was configured with
VOLATILE = ("load_average", "memory_available_bytes")


def environment() -> dict[str, Any]:
    """Versions and machine of this process; holds no secret, and the host only as a digest of its name."""
    memory = psutil.virtual_memory()
    return {
        "python": platform.python_version(),
        "platform": f"{platform.system()} {platform.release()} {platform.machine()}",
        "packages": {name: found for name in PACKAGES if (found := _version(name)) is not None},
        "cpu_model": _cpu_model(),
        "cpu_cores": psutil.cpu_count(logical=False) or os.cpu_count(),
        "cpu_threads": os.cpu_count(),
        "memory_bytes": memory.total,
        "memory_available_bytes": memory.available,
        "load_average": list(os.getloadavg()),
        "host_digest": hashlib.sha256(socket.gethostname().encode()).hexdigest()[:16],
    }


def configuration(
    target: TargetInfo, load: Mapping[str, Any], found: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """The configuration record of a run: target, load plan and environment, ready to be stored."""
    return {
        "target": {
            "kind": target.kind,
            "model": target.model,
            "max_model_tokens": target.max_model_tokens,
            **target.configuration,
        },
        "load": dict(load),
        "environment": dict(found if found is not None else environment()),
    }


def configuration_digest(record: Mapping[str, Any]) -> str:
    """SHA-256 over the canonical JSON of a configuration record without what belongs to the moment."""
    steady = {name: value for name, value in record.items() if name != "environment"}
    steady["environment"] = {
        name: value for name, value in record.get("environment", {}).items() if name not in VOLATILE
    }
    text = json.dumps(steady, sort_keys=True, separators=(",", ":"), ensure_ascii=False, default=str)
    return hashlib.sha256(text.encode()).hexdigest()


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _cpu_model() -> str | None:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return platform.processor() or None
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.processor() or None)
