"""What the database itself refuses, whoever writes: by the ORM past the services, or by SQL."""

import pytest
from django.db import IntegrityError, connection, transaction

from pocs.common.models import AuditEntry
from pocs.evidence.models import EvidenceRevision
from pocs.reviews import database_guards
from pocs.reviews.choices import Slot
from pocs.reviews.models import Package, SignOff
from pocs.runs.models import Run
from tests.factories import Cast
from tests.pocs.reviews import walk


def refused(statement: str) -> bool:
    """Whether the database refuses the statement, which is then undone."""
    try:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(statement)
    except IntegrityError:
        return True
    return False


@pytest.mark.parametrize(
    "change",
    [
        "title = 'Other'", "body = '{}'", "content_sha256 = ''", "number = 9",
        "created_by_id = submitted_by_id + 1",
        "reviewed_by_id = created_by_id", "state = 'draft'", "state = 'reviewed'",
    ],
)  # fmt: skip
def test_frozen_evidence_does_not_change(package: Package, change: str) -> None:
    assert refused(f"UPDATE evidence_evidencerevision SET {change} WHERE state = 'frozen'")


def test_what_belongs_to_frozen_evidence_stays(cast: Cast, package: Package) -> None:
    revision = EvidenceRevision.objects.filter(state="frozen", runs__isnull=False).first()
    assert revision is not None
    run = Run.objects.first()
    with pytest.raises(IntegrityError), transaction.atomic():
        revision.runs.clear()
    with pytest.raises(IntegrityError), transaction.atomic():
        EvidenceRevision.objects.exclude(runs=run).first().runs.add(run)
    with pytest.raises(IntegrityError), transaction.atomic():
        revision.delete()
    with pytest.raises(IntegrityError), transaction.atomic():
        revision.attachments.create(
            name="late.txt", content_type="text/plain", size_bytes=1, sha256="0" * 64, file="late.txt",
            uploaded_by=cast.contributor,
        )  # fmt: skip


def test_it_is_still_superseded_by_the_services(cast: Cast, package: Package) -> None:
    evidence = EvidenceRevision.objects.filter(evidence__type="retrospective").get().evidence
    walk.edit(cast, evidence, degradation="Seen later.")
    walk.review(cast, evidence)
    assert evidence.revisions.get(number=1).state == "superseded"


@pytest.mark.parametrize(
    "change", ["manifest = '{}'", "digest = ''", "number = 7", "frozen_by_id = frozen_by_id + 1"]
)
def test_a_package_does_not_change(package: Package, change: str) -> None:
    assert refused(f"UPDATE reviews_package SET {change}")
    Package.objects.update(stale_reason="its state may move on")


@pytest.mark.parametrize(
    "change", ["comment = 'Other'", "signer_id = signer_id + 1", "digest = ''", "slot = 'legal'"]
)
def test_a_signature_does_not_change(cast: Cast, package: Package, change: str) -> None:
    walk.sign(cast, package, Slot.BUSINESS)
    assert refused(f"UPDATE reviews_signoff SET {change} WHERE signed_at IS NOT NULL")
    SignOff.objects.update(expires_at=None)


def test_audit_entries_are_written_once(package: Package) -> None:
    assert AuditEntry.objects.exists()
    for change in ("verb = 'x'", "after = NULL", "hash = ''", "actor = '{}'", "sequence = sequence + 1000"):
        assert refused(f"UPDATE common_auditentry SET {change}")


def test_they_come_back_after_they_were_taken_away(package: Package) -> None:
    database_guards.remove()
    assert not refused("UPDATE reviews_package SET number = number + 0")
    database_guards.install()
    database_guards.install()
    assert refused("UPDATE reviews_package SET digest = ''")
