"""The verdict over a run's limits as one badge for lists: the worst of them, with how many there are."""

from typing import Any

from django import template
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import ngettext

from pocs.common.templatetags.phasegate import tone
from pocs.runs.wording.limits import VERDICTS, limit_counts

register = template.Library()


@register.filter
def limits_badge(summary: Any) -> SafeString | str:
    """A failed limit outweighs an inconclusive one, that one a passed one; empty where there is none."""
    counts = limit_counts(summary)
    worst = next((name for name in ("fail", "inconclusive", "pass") if counts.get(name)), None)
    if worst is None:
        return ""
    total = sum(counts.values())
    text = ngettext(
        "%(count)d of %(total)d limit: %(verdict)s", "%(count)d of %(total)d limits: %(verdict)s", total
    )
    words = text % {"count": counts[worst], "total": total, "verdict": VERDICTS[worst]}
    return format_html('<span class="badge {}" data-limits="{}">{}</span>', tone(worst), worst, words)
