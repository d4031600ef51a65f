"""What the history calls the verbs of this app."""

from django.utils.translation import gettext_lazy

#: what the history calls the verbs of this app
VERBS = {
    "run.queued": gettext_lazy("queued the run"),
    "run.preparing": gettext_lazy("prepares the run"),
    "run.warming": gettext_lazy("warms up"),
    "run.measuring": gettext_lazy("measures"),
    "run.finalising": gettext_lazy("finalises the run"),
    "run.complete": gettext_lazy("completed the run"),
    "run.failed": gettext_lazy("ended the run as failed"),
    "run.cancelled": gettext_lazy("cancelled the run"),
    "run.interrupted": gettext_lazy("ended the run as interrupted"),
    "run.cancel_requested": gettext_lazy("asked to cancel the run"),
    "run.superseded": gettext_lazy("superseded the run"),
    "run.ingested": gettext_lazy("submitted a result"),
    "run.artifact_verified": gettext_lazy("delivered a file of the result"),
    "matrix.started": gettext_lazy("started the matrix"),
    "experiment.started": gettext_lazy("started the experiment"),
    "experiment.complete": gettext_lazy("concluded the experiment"),
    "experiment.cancelled": gettext_lazy("cancelled the experiment"),
    "experiment.rollback_linked": gettext_lazy("named the rehearsed way back"),
    "baseline.created": gettext_lazy("kept runs as a baseline"),
    "answers.drawn": gettext_lazy("drew a sample of answers"),
    "answer.accepted": gettext_lazy("accepted the answer"),
    "answer.refused": gettext_lazy("refused the answer"),
    "target.created": gettext_lazy("added the target"),
    "target.updated": gettext_lazy("changed the target"),
    "target.checked": gettext_lazy("checked the target"),
    "target.conformance_started": gettext_lazy("had the stream habits of the target looked at"),
}
