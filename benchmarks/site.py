"""The site against its targets: how long the demo matrix takes, and how long the server takes for each page.

`python -P -m benchmarks.site --run` first walks through a whole POC in a browser (some minutes, needs
Chromium); without `--run` the figures of the last walk are judged. Status 1 when a target is missed.
"""

import argparse
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks import tables

ROOT = Path(__file__).resolve().parent.parent
FIGURES = ROOT / "var" / "screenshots" / "figures.json"
WALK = ("tests/e2e/test_whole_poc.py", "-m", "browser", "-q")
MATRIX_S, PAGE_MS = 240.0, 150.0
HEAD = ("measured", "took", "target", "met")


class NoFigures(Exception):
    """There is nothing to judge; the text says what to do."""


@dataclass(frozen=True)
class Target:
    """One figure beside the most that it may be; both in `unit`."""

    name: str
    took: float
    most: float
    unit: str

    @property
    def met(self) -> bool:
        return self.took <= self.most

    @property
    def row(self) -> tuple[str, str, str, str]:
        return (
            self.name,
            f"{self.took:.1f} {self.unit}",
            f"≤ {self.most:.0f} {self.unit}",
            "yes" if self.met else "NO",
        )


def judge(figures: dict[str, Any]) -> list[Target]:
    """Every figure of a walk with its target; raises NoFigures when the walk did not come to its end."""
    pages: dict[str, float] = figures.get("server_ms") or {}
    if "matrix_s" not in figures or not pages:
        raise NoFigures("The walk did not come to its end, so that figures are missing; run it again: --run.")
    slowest_first = sorted(pages.items(), key=lambda page: -page[1])
    return [
        Target("the demo matrix", figures["matrix_s"], MATRIX_S, "s"),
        *(Target(f"page: {name}", took, PAGE_MS, "ms") for name, took in slowest_first),
    ]


def walk() -> bool:
    """Walk through a POC in a browser; False when it failed."""
    command = [sys.executable, "-P", "-m", "pytest", *WALK]
    return subprocess.run(command, cwd=ROOT, check=False).returncode == 0


def read(path: Path) -> tuple[dict[str, Any], datetime]:
    """The figures and when they were written; raises NoFigures when there are none."""
    try:
        return json.loads(path.read_text()), datetime.fromtimestamp(path.stat().st_mtime, UTC)
    except (OSError, ValueError) as error:
        raise NoFigures(f"{path} cannot be read ({error}); make it with --run.") from error


def main(arguments: list[str] | None = None) -> int:
    """0 when every target is met, 1 when not or when there is nothing to judge."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--run", action="store_true", help="walk first, on this machine as it is now")
    parser.add_argument("--figures", type=Path, default=FIGURES, help="figures.json of a walk")
    parser.add_argument("--markdown", action="store_true", help="the table as Markdown")
    asked = parser.parse_args(arguments)
    if asked.run and not walk():
        print("The walk failed; see above.", file=sys.stderr)
        return 1
    try:
        figures, at = read(FIGURES if asked.run else asked.figures)
        targets = judge(figures)
    except NoFigures as error:
        print(error, file=sys.stderr)
        return 1
    load = ", ".join(map(str, figures.get("load_average", []))) or "not noted"
    print(f"Walk of {at:%Y-%m-%d %H:%M} UTC; {os.cpu_count()} processors, load average {load}")
    print(tables.text(HEAD, [target.row for target in targets], markdown=asked.markdown))
    missed = [target.name for target in targets if not target.met]
    print(f"Missed: {', '.join(missed)}." if missed else "Every target is met.")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
