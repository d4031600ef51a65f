"""The diagnosis of one request in a sentence or a few."""

from collections.abc import Mapping
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from pocs.runs.wording.sentences import Sentence, sentence

#: use of the KV cache that may have had a part in it
KV_WORTH_NAMING = 0.9

REQUESTS = {
    "request_dispatch": gettext_lazy("%(share)s of its %(total_ms)s passed in the client before it was sent"),
    "request_throttling": gettext_lazy("%(share)s of its %(total_ms)s was back-off after a refusal"),
    "request_network": gettext_lazy("%(share)s of its %(total_ms)s was network"),
    "request_queue": gettext_lazy("%(share)s of its %(total_ms)s waited in the queue"),
    "request_model_load": gettext_lazy("%(share)s of its %(total_ms)s waited for the model to load"),
    "request_prefill": gettext_lazy(
        "%(share)s of its %(total_ms)s was prefill of %(input_tokens)s tokens (%(cached_tokens)s from the "
        "cache)"
    ),
    "request_decode": gettext_lazy(
        "%(share)s of its %(total_ms)s was decode of %(output_tokens)s tokens at %(tpot_ms)s each"
    ),
    "request_stalls": gettext_lazy("%(share)s of its %(total_ms)s stood still for other requests' steps"),
    "request_preemption": gettext_lazy(
        "%(share)s of its %(total_ms)s waited outside the batch after a preemption (%(preemptions)s times, "
        "%(recomputed_tokens)s tokens computed again)"
    ),
    "request_unexplained": gettext_lazy(
        "%(share)s of its %(total_ms)s is unexplained: the server does not tell how it divides"
    ),
    "request_not_observed": gettext_lazy("None of its phases was observed"),
}


def request_sentences(diagnosis: Mapping[str, Any]) -> list[Sentence]:
    """The place of most of its time, then further ones; each with who else was there, where that is known."""
    items = [diagnosis.get("main"), *(diagnosis.get("also") or ())]
    return [_said(item) for item in items if item]


def _said(item: Mapping[str, Any]) -> Sentence:
    found, figures = sentence(REQUESTS, item), item.get("figures") or {}
    parts = [found.text]
    running = figures.get("running")
    if running is not None:
        others = (
            _("while %(n)d others ran")
            if figures.get("admission_told")
            else _("while %(n)d others were open")
        )
        parts.append(others % {"n": running})
    if (figures.get("kv_usage_peak") or 0.0) >= KV_WORTH_NAMING:
        parts.append(_("with the KV cache used to %(share)d %%") % {"share": figures["kv_usage_peak"] * 100})
    text = parts[0]
    for then in parts[1:]:
        text = _("%(first)s, %(then)s") % {"first": text, "then": then}
    text = _("%(sentence)s.") % {"sentence": text}
    return Sentence(code=found.code, text=text, figures=figures)
