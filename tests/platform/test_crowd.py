"""Fifty signers and fifty submitters at once: nothing lost, nothing twice, no failure."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from django.db import OperationalError, connection
from django.test import RequestFactory

from phasegate.middleware import BusyDatabaseMiddleware
from tests.platform.crowd import CROWD, crowd

ROOT = Path(__file__).resolve().parents[2]


def assert_nothing_lost(found: dict[str, Any]) -> None:
    counted = {
        name: {int(key): n for key, n in found[name].items()} for name in ("signed", "submitted", "equal")
    }
    assert counted["signed"].get(201) == 1, found
    assert set(counted["signed"]) <= {201, 403, 409}, found
    assert counted["submitted"] == {201: CROWD}, found
    # copies that came while the first was answered are told to wait, the others get its answer
    assert set(counted["equal"]) <= {200, 201, 409}, found
    assert [sum(counts.values()) for counts in counted.values()] == [CROWD] * 3, found
    assert found["approvals"] == ["business", "platform", "security"]
    assert (found["state"], found["transitions"]) == ("approved", 1)
    assert (found["runs"], found["numbers"]) == (CROWD + 1, True)
    assert found["audit"] == []


def test_on_a_file_of_sqlite(tmp_path: Path) -> None:
    settings = {"DJANGO_SETTINGS_MODULE": "phasegate.settings.embedded", "PHASEGATE_VAR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-m", "tests.platform.crowd"],
        cwd=ROOT,
        env={name: value for name, value in os.environ.items() if name != "DATABASE_URL"} | settings,
        capture_output=True,
        text=True,
        timeout=400,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert_nothing_lost(json.loads(done.stdout.splitlines()[-1]))


@pytest.mark.server
@pytest.mark.django_db(transaction=True)
def test_on_postgresql() -> None:
    assert connection.vendor == "postgresql"
    assert_nothing_lost(crowd())


@pytest.mark.parametrize("path", ["/api/v1/projects/", "/projects/"])
def test_a_busy_database_is_told_apart_from_a_broken_one(path: str) -> None:
    middleware = BusyDatabaseMiddleware(lambda request: None)  # type: ignore[arg-type,return-value]
    request = RequestFactory().post(path)
    response = middleware.process_exception(request, OperationalError("database is locked"))
    assert response is not None
    assert (response.status_code, response["Retry-After"]) == (503, "1")
    assert middleware.process_exception(request, OperationalError("no such table")) is None
