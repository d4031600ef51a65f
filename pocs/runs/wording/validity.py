"""Why a run does not count, in words."""

from django.utils.translation import gettext_lazy

from pocs.runs.models import Run
from pocs.runs.wording.sentences import Sentence, sentence

REASONS = {
    "dispatched_late": gettext_lazy(
        "The client itself sent requests late: p99 %(p99_ms)s, limit %(limit_ms)s, so the figures cannot "
        "be trusted."
    ),
    "loop_lagged": gettext_lazy(
        "The client itself was too busy to stamp in time: p99 %(p99_ms)s, limit %(limit_ms)s, so the "
        "figures cannot be trusted."
    ),
    "nothing_measured": gettext_lazy("No request was measured."),
    "none_succeeded": gettext_lazy("None of %(attempted)s requests succeeded."),
    "first_token_not_observed": gettext_lazy(
        "The first token was not observed because the answers were not streamed: M1 and M2 are missing."
    ),
    "interrupted": gettext_lazy("The run was interrupted before its load had ended."),
    "measurement": gettext_lazy("The measurement is not valid: %(text)s"),
    "metric_set_incomplete": gettext_lazy(
        "The metric set “%(metric_set)s” is incomplete; missing: %(missing)s."
    ),
    "not_complete": gettext_lazy("The run is not complete (%(state)s), so it does not count."),
}


def validity_sentences(run: Run) -> list[Sentence]:
    """Why the run does not count, in words; empty for a valid one."""
    return [sentence(REASONS, item) for item in run.validity_reasons]


def validity_texts(run: Run) -> list[str]:
    """The same as plain sentences."""
    return [found.text for found in validity_sentences(run)]
