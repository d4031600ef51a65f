"""The audit chain: appended with the change, closed to edits, and every tampering found."""

from collections.abc import Callable
from pathlib import Path

import pytest
from django.db import connection, transaction
from pytest_django import DjangoCaptureOnCommitCallbacks, Settings

from pocs.common import audit, checkpoints
from pocs.common.models import AuditEntry, AuditHead
from pocs.projects import services
from pocs.projects.models import Project
from pocs.reviews import database_guards
from tests.factories import Cast


@pytest.fixture(autouse=True)
def _checkpoints(tmp_path: Path, settings: Settings) -> None:
    settings.PHASEGATE_AUDIT_CHECKPOINTS = tmp_path / "checkpoints"


@pytest.fixture
def chain(cast: Cast, django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks) -> Cast:
    """Five entries, each with its checkpoint."""
    for number in range(5):
        with django_capture_on_commit_callbacks(execute=True):
            services.affected_add(
                actor=cast.lead.as_actor(),
                project=cast.project,
                kind="application",
                name=f"Application {number}",
            )
    return cast


def codes(cast: Cast) -> list[str]:
    return [problem.code for problem in audit.verify(cast.organisation.pk)]


def sql(statement: str, *values: str) -> None:
    """As somebody with the rights of the database's owner would do it, who takes its guards away first."""
    database_guards.remove()
    with connection.cursor() as cursor:
        cursor.execute(statement, values)


def test_an_untouched_chain_holds(chain: Cast) -> None:
    assert codes(chain) == []
    assert AuditHead.objects.get(organisation_id=chain.organisation.pk).length == 5


def test_an_entry_needs_the_transaction_of_its_change(cast: Cast, transactional_db: None) -> None:
    with pytest.raises(transaction.TransactionManagementError):
        audit.record(actor=cast.lead.as_actor(), verb="project.changed", obj=cast.project)


@pytest.mark.parametrize(
    "attempt",
    [
        lambda rows: rows.update(verb="other"),
        lambda rows: rows.delete(),
        lambda rows: rows.first().delete(),
        lambda rows: rows.first().save(),
        lambda rows: rows.bulk_update([rows.first()], ["verb"]),
    ],
)
def test_the_orm_neither_changes_nor_deletes_entries(
    chain: Cast, attempt: Callable[[object], object]
) -> None:
    with pytest.raises(TypeError):
        attempt(AuditEntry.objects.all())
    assert codes(chain) == []


def test_a_changed_entry_is_named(chain: Cast) -> None:
    sql("UPDATE common_auditentry SET verb = 'affected.removed' WHERE sequence = 3")
    problems = audit.verify(chain.organisation.pk)
    assert [(problem.code, problem.sequence) for problem in problems] == [("hash", 3)]
    assert "3" in problems[0].text


def test_a_changed_and_rehashed_entry_breaks_link_and_checkpoint(chain: Cast) -> None:
    entry = AuditEntry.objects.get(organisation_id=chain.organisation.pk, sequence=3)
    entry.verb = "affected.removed"
    forged = audit.digest(audit.entry_payload(entry))
    sql("UPDATE common_auditentry SET verb = %s, hash = %s WHERE sequence = 3", entry.verb, forged)
    assert set(codes(chain)) == {"link", "checkpoint"}


def test_an_entry_cut_out_leaves_a_gap(chain: Cast) -> None:
    sql("DELETE FROM common_auditentry WHERE sequence = 2")
    assert "gap" in codes(chain)


def test_a_cut_tail_is_found_by_the_checkpoint_even_with_the_head_moved_back(chain: Cast) -> None:
    kept = AuditEntry.objects.get(organisation_id=chain.organisation.pk, sequence=3)
    sql("DELETE FROM common_auditentry WHERE sequence > 3")
    sql("UPDATE common_audithead SET length = 3, hash = %s", kept.hash)
    assert codes(chain) == ["cut"]


def test_a_forged_checkpoint_line_is_not_believed(chain: Cast) -> None:
    path = checkpoints.checkpoint_file(chain.organisation.pk)
    path.write_text(path.read_text().replace('"length":5', '"length":9') + "not json\n")
    assert codes(chain) == ["checkpoint_signature"]


def test_a_checkpoint_of_an_older_secret_still_counts(chain: Cast, settings: Settings) -> None:
    settings.SECRET_KEY_FALLBACKS = [settings.SECRET_KEY]
    settings.SECRET_KEY = "another secret"
    assert codes(chain) == []


def test_a_state_changed_past_the_chain_is_reported(cast: Cast) -> None:
    project = services.project_create(actor=cast.lead.as_actor(), name="Watched")
    assert codes(cast) == []
    Project.objects.filter(pk=project.pk).update(state="decided")
    problems = audit.verify(cast.organisation.pk)
    assert [problem.code for problem in problems] == ["state"]
    assert "decided" in problems[0].text
    assert "draft" in problems[0].text


def test_the_organisations_have_chains_of_their_own(chain: Cast) -> None:
    foreign = chain.outsider.as_actor()
    services.project_create(actor=foreign, name="Elsewhere")
    assert audit.verify(foreign.organisation_id) == []
    entry = AuditEntry.objects.get(organisation_id=foreign.organisation_id)
    assert entry.sequence == 1
    assert entry.previous_hash == audit.GENESIS


def test_a_checkpoint_on_demand_and_one_that_cannot_be_written(
    chain: Cast, settings: Settings, tmp_path: Path
) -> None:
    assert audit.checkpoint_now(chain.organisation.pk)
    assert not audit.checkpoint_now(10**9)
    (tmp_path / "file").write_text("in the way")
    settings.PHASEGATE_AUDIT_CHECKPOINTS = tmp_path / "file"
    assert not audit.checkpoint_now(chain.organisation.pk)


def test_a_transaction_leaves_one_checkpoint(
    cast: Cast, django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks
) -> None:
    with django_capture_on_commit_callbacks(execute=True):
        for number in range(3):
            services.affected_add(
                actor=cast.lead.as_actor(), project=cast.project, kind="data", name=f"Data {number}"
            )
    assert [point.length for point in checkpoints.read_checkpoints(cast.organisation.pk)] == [3]
