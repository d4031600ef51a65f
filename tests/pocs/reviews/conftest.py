"""Projects of the reviews' tests at the points where most tests begin."""

import pytest

from pocs.evidence.choices import EvidenceType
from pocs.evidence.models import Evidence
from pocs.reviews.models import Decision, Package
from tests.factories import Cast
from tests.pocs.reviews import walk


@pytest.fixture
def evidence(cast: Cast) -> dict[EvidenceType, Evidence]:
    """The project with its evidence complete; the evidence by type."""
    return walk.to_evidence_complete(cast)


@pytest.fixture
def package(cast: Cast, evidence: dict[EvidenceType, Evidence]) -> Package:
    """A frozen package that waits for its signatures."""
    return walk.freeze(cast)


@pytest.fixture
def decision(cast: Cast, evidence: dict[EvidenceType, Evidence]) -> Decision:
    """A confirmed decision; the project is decided."""
    return walk.to_decided(cast)
