"""docs/checklist.md: every code of the checklist is there once, and every test it names exists."""

import re
from pathlib import Path

from tests.contract.test_house import ROOT

PAGE = ROOT / "docs" / "checklist.md"
LAST = {"M": 34, "C": 11, "D": 7, "T": 10, "S": 15, "E": 12, "R": 13, "Q": 28, "X": 20, "O": 3}
NAMED = re.compile(r"`([\w/]+)::(\w+)`")


def test_every_code_has_its_place_and_its_test() -> None:
    rows = re.findall(r"^\| ([A-Z]\d+) \| (.+) \| (.+) \|$", PAGE.read_text(), re.MULTILINE)
    wanted = [f"{letter}{number}" for letter, last in LAST.items() for number in range(1, last + 1)]
    assert [code for code, _where, _test in rows] == wanted
    assert [code for code, where, test in rows if not where.strip() or not NAMED.fullmatch(test)] == []


def test_every_named_test_exists() -> None:
    named = sorted(set(NAMED.findall(PAGE.read_text())))
    texts = {path: (ROOT / "tests" / f"{path}.py").read_text() for path, _test in named if _exists(path)}
    absent = [
        f"{path}::{test}" for path, test in named if not re.search(rf"def {test}\(", texts.get(path, ""))
    ]
    assert absent == []


def _exists(path: str) -> bool:
    return Path(ROOT / "tests" / f"{path}.py").exists()
