"""The tables of reviews: the review itself, and what follows its decision."""

from pocs.reviews.models.following import (
    Condition,
    Escalation,
    FollowThroughTask,
    Observation,
    ObservationReading,
    ObservationSchedule,
    is_past,
)
from pocs.reviews.models.review import (
    BusinessResult,
    Conclusion,
    Decision,
    Objection,
    Package,
    ReviewPolicy,
    SignOff,
    Waiver,
)

__all__ = [
    "BusinessResult",
    "Conclusion",
    "Condition",
    "Decision",
    "Escalation",
    "FollowThroughTask",
    "Objection",
    "Observation",
    "ObservationReading",
    "ObservationSchedule",
    "Package",
    "ReviewPolicy",
    "SignOff",
    "Waiver",
    "is_past",
]
