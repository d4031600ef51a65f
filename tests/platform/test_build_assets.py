"""The chart library comes from the installed package, is built once, and again when its version changes."""

from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from phasegate.management.commands import build_assets


@pytest.fixture
def folder(tmp_path: Path, settings: Any, monkeypatch: pytest.MonkeyPatch) -> Path:
    settings.PHASEGATE_ASSETS = tmp_path / "assets"
    monkeypatch.setattr(build_assets.vl_convert, "javascript_bundle", lambda: "window.vegaEmbed = 1;")
    return tmp_path / "assets"


def test_the_bundle_is_written_once(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    call_command("build_assets")
    bundle = folder / "vendor" / "vega.js"
    assert bundle.read_text() == "window.vegaEmbed = 1;"
    bundle.write_text("untouched")
    call_command("build_assets")
    assert bundle.read_text() == "untouched"
    assert "built already" in capsys.readouterr().out


def test_another_version_builds_it_again(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    call_command("build_assets")
    bundle = folder / "vendor" / "vega.js"
    bundle.write_text("old")
    monkeypatch.setattr(build_assets, "bundle_version", lambda: "another\n")
    call_command("build_assets")
    assert bundle.read_text() == "window.vegaEmbed = 1;"


def test_a_folder_that_cannot_be_written_is_said_in_one_sentence(folder: Path) -> None:
    folder.parent.joinpath("assets").write_text("a file is in the way")
    with pytest.raises(CommandError, match="cannot be written"):
        call_command("build_assets")
