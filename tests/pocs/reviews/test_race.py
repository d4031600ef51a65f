"""The last two signatures at the same moment: both are stored, the package moves once."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from django.db import connection

from tests.pocs.reviews.race import race

ROOT = Path(__file__).resolve().parents[3]
BOTH_STORED = {
    "told": ["signed", "signed"],
    "state": "approved",
    "signoffs": ["approved", "approved", "approved"],
    "transitions": 1,
}


def test_on_a_file_of_sqlite(tmp_path: Path) -> None:
    settings = {"DJANGO_SETTINGS_MODULE": "phasegate.settings.embedded", "PHASEGATE_VAR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-m", "tests.pocs.reviews.race"],
        cwd=ROOT,
        env={name: value for name, value in os.environ.items() if name != "DATABASE_URL"} | settings,
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert json.loads(done.stdout.splitlines()[-1]) == BOTH_STORED


@pytest.mark.server
@pytest.mark.django_db(transaction=True)
def test_on_postgresql() -> None:
    assert connection.vendor == "postgresql"
    assert race() == BOTH_STORED
