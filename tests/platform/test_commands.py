"""The small commands: catalogues, reaper, audit verification."""

from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from django.db import connection

from phasegate import catalogues
from pocs.common.models import AuditEntry
from pocs.projects import services
from pocs.reviews import database_guards
from pocs.runs.services import leases
from tests.factories import Cast

PO = """msgid ""
msgstr ""
"Content-Type: text/plain; charset=UTF-8\\n"
"Plural-Forms: nplurals=1; plural=0;\\n"

msgid "Run"
msgstr "运行"
"""


@pytest.fixture
def catalogue(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "django.po"
    path.write_text(PO)
    monkeypatch.setattr(catalogues, "catalogue_files", lambda: [path])
    return path


def test_a_catalogue_is_compiled_once(catalogue: Path) -> None:
    call_command("compile_catalogues", verbosity=0)
    target = catalogue.with_suffix(".mo")
    assert "运行".encode() in target.read_bytes()
    target.write_bytes(b"kept")
    call_command("compile_catalogues", verbosity=0)
    assert target.read_bytes() == b"kept"
    call_command("compile_catalogues", force=True, verbosity=0)
    assert target.read_bytes() != b"kept"


def test_a_broken_catalogue_is_named(catalogue: Path) -> None:
    catalogue.write_text("this is no catalogue")
    with pytest.raises(CommandError, match=r"django\.po cannot be compiled"):
        call_command("compile_catalogues", verbosity=0)


def test_every_catalogue_of_the_project_is_found() -> None:
    names = {folder.parent.name for folder in catalogues.locale_folders()}
    assert "templates" in names


def test_reap_reports_what_it_did(
    db: None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(leases, "reap_expired_leases", lambda: [1, 2])
    monkeypatch.setattr(leases, "requeue_lost_runs", lambda: [3])
    call_command("reap")
    assert "2 runs interrupted, 1 sent again" in capsys.readouterr().out


def test_a_whole_chain_is_good(cast: Cast, capsys: pytest.CaptureFixture[str]) -> None:
    services.project_update(actor=cast.lead.as_actor(), project=cast.project, version=1, goal="known")
    call_command("verify_audit", organisation=cast.organisation.slug)
    assert f"{cast.organisation.slug}: 1 entries, good" in capsys.readouterr().out


def test_a_changed_entry_is_found(cast: Cast, capsys: pytest.CaptureFixture[str]) -> None:
    services.project_update(actor=cast.lead.as_actor(), project=cast.project, version=1, goal="known")
    database_guards.remove()
    with connection.cursor() as cursor:
        cursor.execute(f"UPDATE {AuditEntry._meta.db_table} SET verb = 'project.viewed'")
    with pytest.raises(SystemExit) as ended:
        call_command("verify_audit")
    assert ended.value.code == 1
    assert "at entry 1" in capsys.readouterr().out


def test_an_unknown_organisation_is_told(db: None, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        call_command("verify_audit", organisation="nobody")
    assert ended.value.code == 2
    assert "nobody" in capsys.readouterr().err
