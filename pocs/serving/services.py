"""What live inference writes down: switches of the model. No request and no answer is ever stored."""

import socket
from datetime import datetime

from pocs.runs.models import Run, Target
from pocs.runs.seat import Switched
from pocs.serving.models import ModelSwitch


def switch_record(switched: Switched) -> None:
    """Keep one switch of the loaded model; the seat of this process reports it once."""
    report = switched.report
    ModelSwitch.objects.create(
        source=Target.objects.filter(pk=switched.source_id or 0).first(),
        target=Target.objects.filter(pk=switched.target_id).first(),
        run=Run.objects.filter(pk=switched.run_id or 0).first(),
        outcome=report.outcome,
        reason=" ".join(filter(None, [report.reason, report.rollback_reason])),
        report=report.to_dict(),
        hostname=socket.gethostname(),
        started_at=datetime.fromisoformat(report.started_at),
    )
