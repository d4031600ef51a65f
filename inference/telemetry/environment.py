"""Where something was measured: the machine and the versions that could change a figure."""

import os
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import psutil

PACKAGES = ("phasegate", "torch", "transformers", "numpy")


def environment() -> dict[str, Any]:
    """What stays the same between runs here: processor, cores, memory in bytes, system, versions."""
    return {
        "host": platform.node(),
        "system": platform.platform(),
        "machine": platform.machine(),
        "processor": _processor(),
        "cpu_count": psutil.cpu_count() or 1,
        "cpu_count_usable": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None,
        "memory_bytes": psutil.virtual_memory().total,
        "python": platform.python_version(),
        "versions": {name: found for name in PACKAGES if (found := _version(name)) is not None},
    }


def machine_load() -> dict[str, Any]:
    """How busy the machine is now: load averages and available memory in bytes."""
    one, five, fifteen = os.getloadavg()
    return {
        "load_1m": one,
        "load_5m": five,
        "load_15m": fifteen,
        "memory_available_bytes": psutil.virtual_memory().available,
    }


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _processor() -> str | None:
    """The processor's model name as Linux tells it, else what Python knows."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or None
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.processor() or None)
