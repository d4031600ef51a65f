"""The codes of verdicts and validity in words, in the reader's language.

`inference.diagnosis` and `pocs.runs.judgement` state codes with figures; each code has one sentence
here. A code without a sentence is shown as it is, so that nothing found is ever hidden.
"""

from pocs.runs.wording.advice import ADVICE
from pocs.runs.wording.findings import FINDINGS
from pocs.runs.wording.history import VERBS
from pocs.runs.wording.limits import limit_counts, limit_lines
from pocs.runs.wording.requests import request_sentences
from pocs.runs.wording.sentences import Sentence, shown
from pocs.runs.wording.validity import REASONS, validity_sentences, validity_texts
from pocs.runs.wording.verdicts import Share, Verdict, verdict_of

__all__ = [
    "ADVICE",
    "FINDINGS",
    "REASONS",
    "VERBS",
    "Sentence",
    "Share",
    "Verdict",
    "limit_counts",
    "limit_lines",
    "request_sentences",
    "shown",
    "validity_sentences",
    "validity_texts",
    "verdict_of",
]
