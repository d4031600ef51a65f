"""GGUF files are unpacked once: what is kept is whole, checked, bounded, and made by one at a time."""

import fcntl
import json
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from inference.engine import child, gguf, gguf_cache
from inference.engine.gguf_cache import unpacked
from inference.engine.options import EngineOptions
from inference.errors import TargetUnavailable
from tests.inference.engine.conftest import VOCABULARY, tiny_config, tiny_model
from tests.inference.engine.test_gguf import write_gguf

DIGEST = "sha256:" + "ab" * 32


@pytest.fixture(autouse=True)
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PHASEGATE_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("PHASEGATE_CACHE_MAX_BYTES", raising=False)
    return tmp_path / "cache" / "gguf"


@pytest.fixture
def conversions(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Folders that were made, by a converter that writes one small file."""
    made: list[Path] = []

    def convert(path: Path, folder: Path, *, progress: Any, dtype: torch.dtype) -> None:
        if path.name == "broken.gguf":
            raise TargetUnavailable("It is broken.")
        made.append(folder)
        folder.mkdir(parents=True)
        (folder / "model.safetensors").write_text(f"weights of {path.name} in {dtype}")

    monkeypatch.setattr(gguf, "convert", convert)
    return made


def entry(name: str = "m.gguf", digest: str = DIGEST, dtype: torch.dtype = torch.bfloat16) -> Path:
    with unpacked(Path(name), digest, dtype) as folder:
        assert (folder / "model.safetensors").exists()
    return folder


def test_the_second_load_converts_nothing(conversions: list[Path], root: Path) -> None:
    folder = entry()
    assert entry() == folder
    assert folder.parent == root
    assert conversions == [folder]
    assert entry(dtype=torch.float32) != folder  # another data type is another entry
    assert entry(digest="sha256:" + "cd" * 32) != folder  # and so are other bytes
    assert len(conversions) == 3


def _cut(file: Path) -> None:
    file.write_text("weights")


def _overwrite(file: Path) -> None:
    text = file.read_text()
    file.write_text("W" + text[1:])
    os.utime(file, ns=(0, 12345))


def _forget(file: Path) -> None:
    (file.parent / gguf_cache.CONTENTS).unlink()


def _garble(file: Path) -> None:
    (file.parent / gguf_cache.CONTENTS).write_text(json.dumps({"model.safetensors": 5}))


@pytest.mark.parametrize("spoil", [_cut, _overwrite, _forget, _garble, Path.unlink])
def test_an_entry_that_is_not_what_was_written_is_made_again(
    conversions: list[Path], spoil: Callable[[Path], None]
) -> None:
    file = entry() / "model.safetensors"
    whole = file.read_text()
    spoil(file)
    assert entry() == file.parent
    assert file.read_text() == whole
    assert len(conversions) == 2


def test_a_file_that_was_only_touched_is_still_whole(conversions: list[Path]) -> None:
    file = entry() / "model.safetensors"
    os.utime(file, ns=(0, 12345))
    entry()
    assert len(conversions) == 1


def test_converters_of_one_file_wait_for_each_other(
    conversions: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    inside, go_on, plain = threading.Event(), threading.Event(), gguf.convert

    def slow(*arguments: Any, **named: Any) -> None:
        inside.set()
        assert go_on.wait(20)
        plain(*arguments, **named)

    monkeypatch.setattr(gguf, "convert", slow)
    threads = [threading.Thread(target=entry) for _ in range(3)]
    for thread in threads:
        thread.start()
    assert inside.wait(20)
    go_on.set()
    for thread in threads:
        thread.join(20)
        assert not thread.is_alive()
    assert len(conversions) == 1


def test_what_was_unused_for_longest_goes_and_what_is_in_use_stays(
    conversions: list[Path], root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    oldest, older, newer = [entry(digest=f"sha256:{number}" + "0" * 63) for number in range(3)]
    for age, folder in enumerate((newer, older, oldest)):
        os.utime(folder, ns=(0, 10**18 - age))
    (root / ".gone.partial").mkdir()
    monkeypatch.setenv("PHASEGATE_CACHE_MAX_BYTES", str(_size(newer) * 2 + 1))
    with oldest.with_suffix(".lock").open() as lock:
        fcntl.flock(lock, fcntl.LOCK_SH)  # somebody loads it
        latest = entry(digest="sha256:9" + "0" * 63)
    left = {path.name for path in root.iterdir() if path.is_dir()}
    assert left == {oldest.name, latest.name}


def _size(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.iterdir())


def test_where_nothing_can_be_kept_the_file_itself_is_loaded(
    conversions: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("PHASEGATE_CACHE", str(tmp_path / "file"))
    with unpacked(tmp_path / "m.gguf", DIGEST, torch.bfloat16) as path:
        assert path == tmp_path / "m.gguf"


def test_a_file_that_cannot_be_converted_leaves_nothing(conversions: list[Path], root: Path) -> None:
    with (
        pytest.raises(TargetUnavailable, match="It is broken"),
        unpacked(Path("broken.gguf"), DIGEST, torch.bfloat16),
    ):
        pass
    assert [path for path in root.iterdir() if path.is_dir()] == []


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({"PHASEGATE_CACHE": "/c", "PHASEGATE_VAR": "/v"}, "/c/gguf"),
        ({"PHASEGATE_VAR": "/v", "XDG_CACHE_HOME": "/x"}, "/v/cache/gguf"),
        ({"XDG_CACHE_HOME": "/x"}, "/x/phasegate/gguf"),
    ],
)
def test_where_entries_are_kept(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], expected: str
) -> None:
    for name in ("PHASEGATE_CACHE", "PHASEGATE_VAR", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert gguf_cache.root() == Path(expected)


def test_an_engine_reads_the_unpacked_folder_and_keeps_the_name_and_digest_of_the_file(
    tmp_path: Path, root: Path
) -> None:
    path = tmp_path / "tiny.gguf"
    model = tiny_model(tiny_config(tie_word_embeddings=False, vocab_size=VOCABULARY + 1))
    write_gguf(path, model)
    first: dict[str, float] = {}
    second: dict[str, float] = {}
    found = child._read(EngineOptions(path=str(path), dtype="float32"), None, first)
    again = child._read(EngineOptions(path=str(path), dtype="float32"), None, second)
    assert found.name == "tiny.gguf"
    assert found.digest == again.digest == gguf_cache.file_digest(path)
    assert first.keys() == {"digest", "convert", "read"}
    assert second["convert"] < first["convert"]
    torch.testing.assert_close(  # float32 stays float32: nothing is rounded on the way
        found.model.get_input_embeddings().weight, model.get_input_embeddings().weight
    )
    assert len([entry for entry in root.iterdir() if entry.is_dir()]) == 1
