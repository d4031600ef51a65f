"""Live inference keeps no requests and no answers: only what happened to the engine itself."""

from django.db import models

from pocs.runs.models import Run, Target
from pocs.serving.choices import SwitchOutcome


class ModelSwitch(models.Model):
    """One change of the model that the engine has loaded, with its times, memory and outcome."""

    source = models.ForeignKey(
        Target, models.SET_NULL, related_name="+", null=True
    )  # null: nothing was loaded
    target = models.ForeignKey(Target, models.SET_NULL, related_name="+", null=True)
    run = models.ForeignKey(Run, models.SET_NULL, related_name="+", null=True)  # null: for live requests
    outcome = models.CharField(max_length=12, choices=SwitchOutcome.choices)
    reason = models.TextField(blank=True)  # why the new model does not serve
    report = models.JSONField()  # inference.targets.switch_report
    hostname = models.CharField(max_length=120)
    started_at = models.DateTimeField()

    class Meta:
        ordering = ["-started_at", "-id"]
        indexes = [
            # the engine page of a project: the newest switches to and from its targets
            models.Index(fields=["target", "-started_at"], name="switch_to_target"),
            models.Index(fields=["source", "-started_at"], name="switch_from_target"),
        ]

    def __str__(self) -> str:
        return f"{self.source or '—'} → {self.target or '—'}"

    @property
    def load_s(self) -> float | None:
        """Until the new model was loaded, or had failed to."""
        return _seconds(self.report["stages_ms"].get("load"))

    @property
    def first_good_token_s(self) -> float | None:
        """From the start of the switch; None where it came to nothing."""
        return _seconds(self.report["first_good_token_ms"])

    @property
    def total_s(self) -> float | None:
        return _seconds(self.report["total_ms"])


def _seconds(ms: float | None) -> float | None:
    return None if ms is None else ms / 1e3
