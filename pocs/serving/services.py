"""What live inference writes down: switches of the model. No request and no answer is ever stored."""

import socket
from datetime import datetime

from pocs.runs.models import Run, Target
from pocs.runs.seat import Switched
from pocs.serving.models import ModelSwitch


def switch_record(switched: Switched) -> ModelSwitch:
    """Keep one switch of the loaded model; the seat of this process reports it once."""
    report = switched.report
    return ModelSwitch.objects.create(
        source=Target.objects.filter(pk=switched.source_id).first(),
        target=Target.objects.filter(pk=switched.target_id).first(),
        run=Run.objects.filter(pk=switched.run_id).first(),
        outcome=report.outcome,
        reason=" ".join(filter(None, [report.reason, report.rollback_reason])),
        report=report.to_dict(),
        hostname=socket.gethostname(),
        started_at=datetime.fromisoformat(report.started_at),
    )
