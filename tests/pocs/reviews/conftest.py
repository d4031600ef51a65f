"""Projects of the reviews' tests at the points where most tests begin."""

import pytest

from pocs.evidence.choices import EvidenceType
from pocs.evidence.models import Evidence
from pocs.reviews.models import Decision, Package
from tests.factories import Cast
from tests.pocs.reviews import walk
from tests.stages import Stages


@pytest.fixture
def evidence(cast: Cast, stages: Stages) -> dict[EvidenceType, Evidence]:
    """The project with its evidence complete; the evidence by type."""
    return stages.reach("evidence", lambda: walk.to_evidence_complete(cast))


@pytest.fixture
def package(cast: Cast, evidence: dict[EvidenceType, Evidence], stages: Stages) -> Package:
    """A frozen package that waits for its signatures."""
    return stages.reach("package", lambda: walk.freeze(cast))


@pytest.fixture
def decision(cast: Cast, evidence: dict[EvidenceType, Evidence], stages: Stages) -> Decision:
    """A confirmed decision; the project is decided."""
    return stages.reach("decision", lambda: walk.to_decided(cast))
