"""What the figures of a run mean, one sentence each (docs/metrics.md has the whole)."""

from django.utils.translation import gettext as _


def definitions() -> list[tuple[str, str]]:
    """Terms with their meaning, for the foot of a report."""
    return [
        (
            "TTFT",
            _(
                "From the start to the first read that proves a generated token; a chunk that only names the "
                "role never counts."
            ),
        ),
        (
            _("Start"),
            _(
                "The moment at which the plan wanted the request where the loop is open, and at which it was "
                "sent where it is closed."
            ),
        ),
        (
            "TPOT",
            _(
                "Time from the first to the last token ÷ the tokens after the first read; not defined for a "
                "single token."
            ),
        ),
        (
            "ITL",
            _("Gaps between consecutive reads that carry tokens, pooled over all successful requests."),
        ),
        (
            _("Success"),
            _(
                "A finish reason, no error, an output that is not empty, and an orderly end; everything else "
                "is a population of its own."
            ),
        ),
        (
            _("Error rate"),
            _("Unsuccessful requests that were not cancelled on purpose ÷ all attempted."),
        ),
        (
            _("Throughput"),
            _(
                "Tokens or requests of the successes ÷ the time from the first request sent to the last "
                "event of the window."
            ),
        ),
        (
            _("Percentiles"),
            _(
                "Over successes, interpolated between ranks; below 100 samples a p99 is thin (*). A mean is "
                "never shown alone."
            ),
        ),
        (_("Window"), _("Requests that overlap the warm-up are left out and counted.")),
        (
            _("Digest"),
            _(
                "SHA-256 over the canonical JSON of the run's manifest, which holds the digests of every "
                "stored request and of every segment of raw reads."
            ),
        ),
    ]
