"""Production refuses unsafe settings, each with its reason."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from phasegate.settings.safety import production_problems

SAFE = {
    "secret_key": "k" * 64,
    "database_url": "postgres://u@h/d",
    "redis_url": "redis://h:6379/0",
    "allowed_hosts": ["phasegate.example"],
    "debug": False,
}


def test_safe_settings_have_no_problem() -> None:
    assert production_problems(**SAFE) == []


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"debug": True}, "DEBUG"),
        ({"secret_key": ""}, "SECRET_KEY"),
        ({"secret_key": "short"}, "SECRET_KEY"),
        ({"secret_key": "django-insecure-" + "k" * 64}, "SECRET_KEY"),
        ({"allowed_hosts": []}, "ALLOWED_HOSTS"),
        ({"allowed_hosts": ["*"]}, "ALLOWED_HOSTS"),
        ({"database_url": ""}, "DATABASE_URL"),
        ({"database_url": "sqlite:////tmp/x.sqlite3"}, "SQLite"),
        ({"redis_url": ""}, "REDIS_URL"),
        ({"redis_url": "amqp://h"}, "REDIS_URL"),
    ],
)
def test_each_unsafe_setting_is_named(change: dict[str, object], word: str) -> None:
    (problem,) = production_problems(**(SAFE | change))
    assert word in problem


def manage(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    clean = {"PATH": os.environ["PATH"], "HOME": os.environ.get("HOME", "/")}
    return subprocess.run(
        [sys.executable, "-P", "-m", "phasegate.management_entry", *arguments],
        env=clean | environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_production_without_settings_says_all_reasons_and_no_traceback() -> None:
    done = manage("check", DJANGO_SETTINGS_MODULE="phasegate.settings.production")
    assert done.returncode != 0
    for name in ("SECRET_KEY", "ALLOWED_HOSTS", "DATABASE_URL", "REDIS_URL"):
        assert name in done.stderr
    assert "Traceback" not in done.stderr


def test_production_starts_with_secrets_from_files(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("k" * 64 + "\n")
    done = manage(
        "check",
        "--deploy",
        "--fail-level",
        "WARNING",
        DJANGO_SETTINGS_MODULE="phasegate.settings.production",
        PHASEGATE_VAR=str(tmp_path),
        SECRET_KEY_FILE=str(tmp_path / "key"),
        DATABASE_URL="postgres://u@h/d",
        REDIS_URL="redis://h:6379/0",
        ALLOWED_HOSTS="phasegate.example",
        HSTS_INCLUDE_SUBDOMAINS="1",
    )
    # the key of this test is not random, and the preload list is the operator's own decision
    lines = [line for line in done.stderr.splitlines() if "security.W" in line]
    assert [line for line in lines if "W009" not in line and "W021" not in line] == [], done.stderr


def test_a_secret_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    done = manage(
        "check",
        DJANGO_SETTINGS_MODULE="phasegate.settings.production",
        SECRET_KEY_FILE=str(tmp_path / "absent"),
    )
    assert done.returncode != 0
    assert "SECRET_KEY_FILE" in done.stderr
    assert "absent" in done.stderr


def test_embedded_with_an_unusable_folder_says_so_in_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    done = manage("check", PHASEGATE_VAR=str(tmp_path / "file" / "var"))
    assert done.returncode != 0
    assert str(tmp_path / "file") in done.stderr
    assert "PHASEGATE_VAR" in done.stderr
    assert "Traceback" not in done.stderr
