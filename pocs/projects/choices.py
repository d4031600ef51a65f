"""Choice sets of projects and scenarios."""

from django.db import models
from django.utils.translation import gettext_lazy as _


class ProjectState(models.TextChoices):
    DRAFT = "draft", _("Draft")
    PLANNED = "planned", _("Planned")
    RUNNING = "running", _("Running")
    EVIDENCE_COMPLETE = "evidence_complete", _("Evidence complete")
    IN_REVIEW = "in_review", _("In review")
    DECIDED = "decided", _("Decided")
    FOLLOW_THROUGH = "follow_through", _("Follow-through")
    OBSERVING = "observing", _("Observing")
    CLOSED = "closed", _("Closed")
    CANCELLED = "cancelled", _("Cancelled")


#: the way of a project; each step is guarded by the gates registered for its target
PROJECT_ORDER = [
    ProjectState.DRAFT,
    ProjectState.PLANNED,
    ProjectState.RUNNING,
    ProjectState.EVIDENCE_COMPLETE,
    ProjectState.IN_REVIEW,
    ProjectState.DECIDED,
    ProjectState.FOLLOW_THROUGH,
    ProjectState.OBSERVING,
    ProjectState.CLOSED,
]


class AffectedKind(models.TextChoices):
    APPLICATION = "application", _("Application")
    TEAM = "team", _("Team")
    DATA = "data", _("Data")


class ReadinessKind(models.TextChoices):
    PERMISSIONS = "permissions", _("Permissions")
    MONITORING = "monitoring", _("Monitoring")
    LOGS = "logs", _("Logs")
    CAPACITY = "capacity", _("Capacity")
    ROLLBACK = "rollback", _("Rollback plan")


class DeclarationKind(models.TextChoices):
    REAL_REQUESTS = "real_requests", _("Real business requests (S13)")
    REAL_ROLES = "real_roles", _("Real permission roles (S14)")
    OPERATING_METRICS = "operating_metrics", _("Real operating metrics (S15)")


class ScenarioKind(models.TextChoices):
    SHORT_REQUEST = "short_request", _("Short request (S1)")
    LONG_CONTEXT = "long_context", _("Long context (S2)")
    HIGH_CONCURRENCY = "high_concurrency", _("High concurrency (S3)")
    STREAMING = "streaming", _("Streaming output (S4)")
    INTERRUPTION = "interruption", _("Interruption (S5)")
    MODEL_SWITCH = "model_switch", _("Model switch (S6)")
    RESOURCE_RECLAIM = "resource_reclaim", _("Resource reclaim (S7)")
    LONG_ANSWER = "long_answer", _("Long answer (S12)")
    PRODUCTION_REPLAY = "production_replay", _("Production replay (S13)")
    CAPACITY_SEARCH = "capacity_search", _("Capacity search (M27)")
    SOAK = "soak", _("Soak (M28)")
    THROTTLING = "throttling", _("Throttling (M24)")


class OptimisationGoal(models.TextChoices):
    """What an optimisation of the service is to serve: it decides which advice comes first (T7–T9)."""

    COST = "cost", _("Lower cost (T7)")
    LATENCY = "latency", _("Lower latency (T8)")
    LONG_CONTEXT = "long_context", _("Long contexts (T9)")
    STABILITY = "stability", _("Stability")


class ScenarioState(models.TextChoices):
    DRAFT = "draft", _("Draft")
    APPROVED = "approved", _("Approved")
    RETIRED = "retired", _("Retired")
