"""The fixed words of the sheet in the current language, for the page and the PDF alike."""

from django.utils.translation import gettext as _


def sheet_labels() -> dict[str, str]:
    """Every heading and column of the sheet."""
    return {
        "title": _("Review sheet"),
        "goal": _("To be decided"),
        "applies": _("Where it applies"),
        "applies_not": _("Where it does not apply"),
        "verification": _("What verifies it"),
        "figures": _("Figures by phase"),
        "figures_note": _("p50 / p95 in ms over successful requests; n beside each run"),
        "run": _("Run"),
        "n": "n",
        "queue_wait_ms": _("Queue wait"),
        "prefill_ms": _("Prefill"),
        "ttft_ms": "TTFT",
        "tpot_ms": "TPOT",
        "e2e_ms": _("End to end"),
        "error_rate": _("Error rate"),
        "chart": _("Share of the request time by phase"),
        "verdict": _("Where the time goes"),
        "signatures": _("Signatures"),
        "unsigned": _("Nobody has signed: signatures are given to a frozen package."),
        "decision": _("Decision"),
        "confirmed_by": _("Confirmed by"),
        "unconfirmed": _("not confirmed yet"),
        "next_step": _("Next step"),
        "conditions": _("Conditions"),
        "follow_through": _("Follow-through"),
        "observers": _("Observed by"),
        "digest": _("Package digest (SHA-256)"),
        "state": _("State"),
        "generated": _("Printed"),
        "clipped": _("Long texts are shortened here; the package holds them in full."),
        "left_out": _("further runs are in the package"),
        "no_score": _("This sheet is no score: each line is judged by itself."),
    }
