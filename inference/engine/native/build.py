"""Compiles the C step for this machine's processor, once, and keeps the result in the user's cache folder.

A compiler of the machine is used where there is one, else the one that comes with the `ziglang` package.
Nothing is downloaded, and nothing is built without being asked for by a load.
"""

import functools
import hashlib
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

from inference.engine.caching import cache_folder

SOURCE = Path(__file__).parent
FLAGS = (
    "-std=gnu11",
    "-O3",
    "-march=native",
    "-ffp-contract=fast",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-fPIC",
    "-shared",
    "-pthread",
)
COMPILE_LIMIT_S = 180


class NoLibrary(Exception):
    """The C step cannot be had here; the text is one sentence saying why."""


@functools.cache
def library_path() -> Path:
    """The compiled library, built if need be; raises NoLibrary."""
    if platform.system() not in ("Linux", "Darwin"):
        raise NoLibrary(f"The C step is not built on {platform.system()}.")
    tried: list[str] = []
    for command in _compilers():
        target = cache_folder("native") / f"step-{_key(command)}.so"
        if target.is_file():
            return target
        problem = _compile(command, target)
        if problem is None:
            return target
        tried.append(f"{' '.join(command)}: {problem}")
    raise NoLibrary(
        "The C step could not be compiled ("
        + ("; ".join(tried) or "no C compiler was found, and the package ziglang is not installed")
        + ")."
    )


def _compilers() -> list[list[str]]:
    names = [os.environ.get("CC", ""), "cc", "gcc", "clang"]
    found = [[path] for name in names if name and (path := shutil.which(name))]
    if find_spec("ziglang") is not None:
        found.append([sys.executable, "-m", "ziglang", "cc", "-fno-sanitize=all"])
    unique: dict[str, list[str]] = {
        os.path.realpath(one[0]) if len(one) == 1 else "zig": one for one in found
    }
    return list(unique.values())


def _key(command: list[str]) -> str:
    """Of the sources, the flags, the compiler and the processor: another of these is another library."""
    digest = hashlib.sha256(" ".join([*command, *FLAGS, platform.machine(), _processor()]).encode())
    for file in sorted([*SOURCE.glob("*.c"), *SOURCE.glob("*.h")]):
        digest.update(file.name.encode() + file.read_bytes())
    return digest.hexdigest()[:20]


def _processor() -> str:
    """What `-march=native` depends on."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    return next((line for line in lines if line.startswith(("flags", "Features"))), "")


def _compile(command: list[str], target: Path) -> str | None:
    """Build into a folder of its own and move the result in place; what went wrong, or None."""
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=target.parent) as folder:
            made = Path(folder) / "step.so"
            done = subprocess.run(  # noqa: S603  a compiler that was found, our own sources
                [*command, *FLAGS, "-o", str(made), str(SOURCE / "step.c"), "-lm"],
                capture_output=True,
                text=True,
                errors="replace",
                timeout=COMPILE_LIMIT_S,
                check=False,
            )
            if done.returncode != 0:
                lines = [
                    line for line in done.stderr.splitlines() if "error" in line
                ] or done.stderr.splitlines()
                return lines[0].strip() if lines else f"ended with code {done.returncode}"
            made.replace(target)
    except subprocess.TimeoutExpired:
        return f"took longer than {COMPILE_LIMIT_S} s"
    except OSError as error:
        return f"{error.strerror or error} ({error.filename or target})"
    return None
