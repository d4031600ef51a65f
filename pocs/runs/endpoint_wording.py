"""Endpoints in words: the check before a run, stream habits, and what a server tells beside the client."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from pocs.common.errors import Text


@dataclass(frozen=True)
class Line:
    """One line of a report: what was looked at, how it stands (`good`, `lacks`, `bad`), and a sentence."""

    code: str
    title: str
    verdict: str
    text: str


#: in the order of the report
CHECK_TITLES: dict[str, Text] = {
    "reachable": gettext_lazy("Reachable"),
    "tls": gettext_lazy("Encryption (TLS)"),
    "auth": gettext_lazy("Credential"),
    "model": gettext_lazy("Model known"),
    "answers": gettext_lazy("Answers"),
    "streams": gettext_lazy("Streams"),
    "usage": gettext_lazy("Counts its tokens"),
    "first_token": gettext_lazy("First token"),
    "dialect": gettext_lazy("Server"),
    "metrics": gettext_lazy("Server's own figures"),
}
#: (code, verdict) → the sentence; figures are filled in
CHECK_TEXTS: dict[tuple[str, str], Text] = {
    ("reachable", "good"): gettext_lazy(
        "Reached, listed its models and told what it is within %(took_ms).0f ms."
    ),
    ("reachable", "bad"): gettext_lazy("It cannot be reached: %(text)s"),
    ("tls", "good"): gettext_lazy("%(version)s; the certificate ends %(expires)s."),
    ("tls", "lacks"): gettext_lazy(
        "The connection is not encrypted: prompts and the credential travel in clear."
    ),
    ("tls", "bad"): gettext_lazy("The certificate is not trusted here: %(text)s"),
    ("auth", "good"): gettext_lazy("Accepted."),
    ("auth", "bad"): gettext_lazy("Refused: %(text)s"),
    ("model", "good"): gettext_lazy("The endpoint serves “%(model)s”."),
    ("model", "lacks"): gettext_lazy(
        "“%(model)s” is not among the listed models, and yet it answers: check that it is the right model."
    ),
    ("model", "bad"): gettext_lazy("“%(model)s” is unknown there; listed are: %(listed)s."),
    ("answers", "good"): gettext_lazy(
        "A short answer of %(output_tokens)s tokens was complete after %(e2e_ms).0f ms."
    ),
    ("answers", "bad"): gettext_lazy("No complete answer (%(outcome)s): %(text)s"),
    ("streams", "good"): gettext_lazy("The answer came in %(reads)s reads."),
    ("streams", "lacks"): gettext_lazy(
        "The answer came in one piece: first token and generation (M1, M2) cannot be measured."
    ),
    ("usage", "good"): gettext_lazy("It sends usage: output tokens are the server's own count."),
    ("usage", "lacks"): gettext_lazy(
        "It sends no usage: tokens are counted by %(source)s, and every figure says so."
    ),
    ("first_token", "good"): gettext_lazy("After %(ttft_ms).0f ms; all stamps follow one another."),
    ("first_token", "lacks"): gettext_lazy("Not observed."),
    ("first_token", "bad"): gettext_lazy(
        "Its time (%(ttft_ms).0f ms) contradicts the order of the stamps or the server's own times."
    ),
    ("dialect", "good"): gettext_lazy("%(title)s %(version)s, found from: %(found)s."),
    ("dialect", "lacks"): gettext_lazy(
        "No known server: only what the client itself sees is measured; queue and prefill are one part."
    ),
    ("metrics", "good"): gettext_lazy("%(url)s tells %(n)s figures; reading it took %(took_ms).0f ms."),
    ("metrics", "lacks"): gettext_lazy(
        "None could be read (%(text)s): memory (M6), queue wait (M7) and cache hits (M8) may stay empty."
    ),
}


def check_lines(report: Mapping[str, Any]) -> list[Line]:
    """The lines of a check in the reader's language."""
    return [
        Line(item["code"], str(CHECK_TITLES[item["code"]]), item["verdict"], _check_text(item))
        for item in report.get("items") or []
        if item["code"] in CHECK_TITLES
    ]


def _check_text(item: Mapping[str, Any]) -> str:
    figures = {name: _("unknown") if value is None else value for name, value in item["figures"].items()}
    code, verdict = item["code"], item["verdict"]
    if code == "model" and isinstance(figures.get("listed"), list):
        figures["listed"] = ", ".join(str(name) for name in figures["listed"])
    if code == "reachable" and isinstance(figures.get("text"), str):
        figures["text"] = figures["text"].removeprefix("cannot reach ")  # the sentence says it translated
    if code == "dialect":
        figures |= {"found": "; ".join(item["figures"].get("found_from") or ())}
        figures["version"] = item["figures"].get("version") or ""
    if code == "metrics":
        figures |= {"n": len(item["figures"].get("told") or ())}
        figures["text"] = item["figures"].get("text") or _("this server has none that are known here")
    if code == "auth" and verdict == "good":
        return _auth_text(figures)
    try:
        return str(CHECK_TEXTS[code, verdict]) % figures
    except (KeyError, TypeError, ValueError):  # figures of an older report
        return str(item["figures"].get("text") or verdict)


def _auth_text(figures: Mapping[str, Any]) -> str:
    if not figures.get("has_key"):
        return _("None is stored and none is asked for.")
    if figures.get("open_without"):
        return _("Accepted; but the model list is answered without it, too.")
    return _("Accepted.")


def check_headline(report: Mapping[str, Any]) -> str:
    """One sentence: that it can be measured, or the first thing that is wrong."""
    lines = check_lines(report)
    wrong = next((line for line in lines if line.verdict == "bad"), None)
    if wrong is not None:
        return f"{wrong.title}: {wrong.text}"
    missing = [line.title for line in lines if line.verdict == "lacks"]
    if missing:
        return _("It can be measured, with limits: %(missing)s.") % {"missing": ", ".join(missing)}
    return _("It can be measured.")


#: state of the check when a run was started → what the run page says; `passed` says nothing
RUN_CHECK_TEXTS: dict[str, Text] = {
    "unchecked": gettext_lazy("The endpoint had not been checked when this run was started."),
    "failed": gettext_lazy("The last check of the endpoint had failed when this run was started."),
    "changed": gettext_lazy("The endpoint had been changed since its last check when this run was started."),
}


def run_check_text(state: Mapping[str, Any] | None) -> str:
    """What a run must say of its target's check; empty where there is nothing to say."""
    return str(RUN_CHECK_TEXTS.get((state or {}).get("state") or "", ""))


SOURCES: dict[str, Text] = {
    "client": gettext_lazy("client"),
    "engine": gettext_lazy("engine"),
    "server per request": gettext_lazy("server, per request"),
    "server aggregate": gettext_lazy("server, all requests together"),
}


def source_name(source: str | None) -> str:
    """Who says a figure."""
    return "" if source is None else str(SOURCES.get(source, source))


def bounds_text(told: Mapping[str, Any]) -> str:
    """Between which bounds of the server's buckets p50 and p95 lie; empty where it has no buckets."""
    parts = []
    for p in (50, 95):
        above, at_most = told.get(f"p{p}_above"), told.get(f"p{p}_at_most")
        if at_most is not None:
            parts.append(_("p%(p)s ≤ %(ms).0f ms") % {"p": p, "ms": at_most})
        elif above is not None:
            parts.append(_("p%(p)s > %(ms).0f ms") % {"p": p, "ms": above})
    return ", ".join(parts)
