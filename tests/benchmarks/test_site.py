"""The benchmark of the site: what is missed is named and ends with status 1, as does a broken walk."""

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks import site

GOOD: dict[str, Any] = {
    "matrix_s": 200.7,
    "load_average": [1.2, 1.0, 0.9],
    "server_ms": {"inbox": 90.0, "project": 149.9},
}


def judged(tmp_path: Path, figures: Any) -> int:
    path = tmp_path / "figures.json"
    path.write_text(json.dumps(figures))
    return site.main(["--figures", str(path)])


def test_targets_that_are_met(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert judged(tmp_path, GOOD) == 0
    said = capsys.readouterr().out
    assert "load average 1.2, 1.0, 0.9" in said
    assert said.index("the demo matrix") < said.index("page: project") < said.index("page: inbox")
    assert said.rstrip().endswith("Every target is met.")


@pytest.mark.parametrize(
    ("changes", "missed"),
    [
        ({"matrix_s": 240.1}, "Missed: the demo matrix."),
        ({"server_ms": {"inbox": 90.0, "project": 150.1}}, "Missed: page: project."),
        ({"matrix_s": 999, "server_ms": {"inbox": 151}}, "Missed: the demo matrix, page: inbox."),
    ],
)
def test_what_is_missed_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], changes: dict[str, Any], missed: str
) -> None:
    assert judged(tmp_path, GOOD | changes) == 1
    assert missed in capsys.readouterr().out


@pytest.mark.parametrize("figures", [{}, {"matrix_s": 100.0}, {"matrix_s": 100.0, "server_ms": {}}])
def test_a_walk_that_broke_off(tmp_path: Path, capsys: pytest.CaptureFixture[str], figures: Any) -> None:
    assert judged(tmp_path, figures) == 1
    assert "did not come to its end" in capsys.readouterr().err


def test_no_walk_yet(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert site.main(["--figures", str(tmp_path / "none.json")]) == 1
    assert "--run" in capsys.readouterr().err


def test_a_walk_that_fails_is_not_judged(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(site, "walk", lambda: False)
    assert site.main(["--run"]) == 1
    assert "The walk failed" in capsys.readouterr().err
