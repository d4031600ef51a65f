"""What must stay true of the whole tree: imports, migrations, schema, commands, files, translations."""

import io
import platform
import re
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
from django.core.management import call_command, get_commands

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))

import messages  # noqa: E402 a script, not a package

#: a file longer than this asks whether it is two things
LINES_MAX = 420


def tracked(*patterns: str) -> list[Path]:
    """Files of the repository, by git or, in an export without it, by looking."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "--", *patterns],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if listed.returncode:
        return [path for pattern in patterns for path in ROOT.rglob(pattern) if ".venv" not in path.parts]
    return [ROOT / line for line in listed.stdout.splitlines() if (ROOT / line).is_file()]


def test_platform_is_the_standard_library() -> None:
    assert not (ROOT / "platform" / "__init__.py").exists()
    assert platform.__file__ == str(Path(sysconfig.get_path("stdlib")) / "platform.py")
    assert platform.python_version().startswith("3.11")


def test_manage_py_keeps_the_standard_library_in_front() -> None:
    line = "import runpy, sys; sys.argv = ['manage.py']; m = runpy.run_path('manage.py', run_name='m'); "
    line += "import platform; print(platform.python_version())"
    done = subprocess.run([sys.executable, "-c", line], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("3.11")


def test_imports_keep_their_direction() -> None:
    lint = Path(sys.executable).with_name("lint-imports")
    done = subprocess.run([lint, "--no-cache"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_no_migration_is_missing(db: None) -> None:
    call_command("makemigrations", check=True, dry_run=True, verbosity=0)


def test_the_schema_generates_without_warnings(db: None) -> None:
    out = io.StringIO()
    call_command("spectacular", fail_on_warn=True, validate=True, stdout=out)
    for route in (
        "/api/v1/projects/{id}/runs/",
        "/api/v1/runs/{id}/requests/",
        "/api/v1/projects/{id}/scenarios/",
    ):
        assert any(_shape(line) == _shape(route) for line in out.getvalue().splitlines()), route


def _shape(route: str) -> str:
    """The route with the names of its parameters left out."""
    return re.sub(r"\{\w+\}", "{}", route.strip().rstrip(":"))


def test_every_command_has_a_test() -> None:
    ours = [name for name, app in get_commands().items() if app == "phasegate" or app.startswith("pocs")]
    text = "".join(path.read_text() for path in tracked("tests/*.py"))
    assert [name for name in ours if f'"{name}"' not in text] == []
    assert {"up", "reap", "seed_demo", "build_assets", "verify_audit"} <= set(ours)


def test_no_file_has_grown_too_long() -> None:
    python = [
        path for path in tracked("*.py") if "tests" not in path.parts and "migrations" not in path.parts
    ]
    long = {str(path.relative_to(ROOT)): len(path.read_text().splitlines()) for path in python}
    assert {
        name: lines for name, lines in long.items() if lines > LINES_MAX and "/migrations/" not in name
    } == {}


#: assembled so that this file does not hold what it looks for
FORBIDDEN = {
    "a path of one machine": re.compile(r"(?<![\w.])/(?:" + "work" + r"|home/\w+|Users/\w+)/\w"),
    "a package registry": re.compile(
        "|".join(
            [
                "pypi" + r"\.org",
                "pythonhosted" + r"\.org",
                "npmjs" + r"\.",
                "registry" + r"\.npm",
                "deb" + r"\.debian",
            ]
        )
    ),
}


@pytest.mark.parametrize("what", FORBIDDEN)
def test_no_file_names(what: str) -> None:
    found = []
    for path in tracked("*"):
        try:
            text = path.read_text()
        except UnicodeDecodeError:
            continue
        found += [f"{path.relative_to(ROOT)}: {hit.group()}" for hit in FORBIDDEN[what].finditer(text)]
    assert found == []


@pytest.mark.parametrize("path", messages.catalogue_files(ROOT), ids=lambda path: path.parts[-5])
def test_every_message_is_translated(path: Path) -> None:
    assert messages.problems_of(path) == []


def test_templates_carry_nothing_inline() -> None:
    """The content security policy refuses inline code and styles, so that a page would break silently.

    The report of a run is a file to keep, which is opened without this site and its policy.
    """
    inline = re.compile(
        r"<script(?![^>]*\bsrc=)(?![^>]*application/json)[^>]*>|\sstyle=\"|\son\w+=\"|<style|javascript:"
    )
    found = []
    for path in tracked("templates/*.html", "pocs/*.html"):
        if "pdf" in path.name or path == ROOT / "templates/runs/report.html":
            continue
        found += [f"{path.relative_to(ROOT)}: {hit.group()}" for hit in inline.finditer(path.read_text())]
    assert found == []
