"""What differs between two revisions, field by field, and word by word inside longer texts."""

import re
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any, Literal

from pocs.evidence.choices import EvidenceType
from pocs.evidence.lines import Line, Lines, body_lines, lines_of
from pocs.evidence.models import EvidenceRevision
from pocs.evidence.presentation import Names

#: a Latin word or number, one character of any other script, white space, or a mark
_WORD = re.compile(r"[A-Za-z0-9_]+|\s+|.", re.DOTALL)
_SENTENCE = re.compile(r"[^\n。！？；.!?;]+[\n。！？；.!?;]*|[\n。！？；.!?;]+")
#: texts below are short enough to be read side by side
WORDS_FROM_CHARACTERS = 24
#: with less in common, two texts are easier read beside each other
KEPT_SHARE = 0.4
#: product of the numbers of parts up to which two texts are compared; it bounds the time
COMPARED_UP_TO = 2_000_000

Kind = Literal["added", "changed", "removed"]


@dataclass(frozen=True)
class Piece:
    """A stretch of text that both sides have (`same`), or only one of them."""

    kind: Literal["same", "added", "removed"]
    text: str


@dataclass(frozen=True)
class Change:
    """One line that was added, changed or removed; values as text."""

    kind: Kind
    label: str
    before: str
    after: str

    def as_json(self) -> dict[str, str]:
        return {"kind": self.kind, "label": self.label, "before": self.before, "after": self.after}

    @property
    def pieces(self) -> list[Piece]:
        """The text with what was taken out and put in; empty for short values and for quite another text."""
        longest = max(len(self.before), len(self.after))
        if self.kind != "changed" or longest < WORDS_FROM_CHARACTERS:
            return []
        pieces = text_difference(self.before, self.after)
        kept = sum(len(piece.text.strip()) for piece in pieces if piece.kind == "same")
        return pieces if kept >= KEPT_SHARE * longest else []


def changes_between(older: EvidenceRevision, newer: EvidenceRevision) -> list[Change]:
    """From one revision to another of the same evidence, in the order of the fields."""
    names = Names.of(older, newer)
    return compare(lines_of(older, names), lines_of(newer, names))


def changes_of_body(
    type: EvidenceType | str, before: dict[str, Any], after: dict[str, Any], names: Names
) -> list[Change]:
    """From one body to another, where the second one is not stored (the text of a refused form)."""
    return compare(_by_path(body_lines(type, before, names)), _by_path(body_lines(type, after, names)))


def compare(before: Lines, after: Lines) -> list[Change]:
    """Differences of two sets of lines; an empty value counts as none."""
    found = []
    for path in [*before, *(path for path in after if path not in before)]:
        old = before[path].text if path in before else ""
        new = after[path].text if path in after else ""
        if old == new:
            continue
        label = (after.get(path) or before[path]).label
        kind: Kind = "changed" if old and new else "added" if new else "removed"
        found.append(Change(kind, label, old, new))
    return found


def text_difference(before: str, after: str) -> list[Piece]:
    """Both texts in one, cut where they differ: by words, and by characters of Chinese.

    What both begin and end with is set aside first. Where too much is left for words, sentences are
    compared, and words within the sentences that differ; what is too long even for that is replaced.
    """
    old, new = _WORD.findall(before), _WORD.findall(after)
    head = _common(old, new)
    tail = _common(old[head:][::-1], new[head:][::-1])
    middle = _middle(old[head : len(old) - tail], new[head : len(new) - tail])
    return _joined(
        [Piece("same", "".join(old[:head])), *middle, Piece("same", "".join(old[len(old) - tail :]))]
    )


def _common(old: list[str], new: list[str]) -> int:
    """How many parts both begin with."""
    count = 0
    while count < min(len(old), len(new)) and old[count] == new[count]:
        count += 1
    return count


def _middle(old: list[str], new: list[str]) -> list[Piece]:
    if len(old) * len(new) <= COMPARED_UP_TO:
        return _matched(old, new)
    before, after = "".join(old), "".join(new)
    sentences = _SENTENCE.findall(before), _SENTENCE.findall(after)
    if len(sentences[0]) * len(sentences[1]) > COMPARED_UP_TO:
        return [Piece("removed", before), Piece("added", after)]
    pieces: list[Piece] = []
    for piece in _matched(*sentences):
        last = pieces[-1] if pieces else None
        if piece.kind == "added" and last is not None and last.kind == "removed" and last.text != before:
            pieces[-1:] = text_difference(last.text, piece.text)
        else:
            pieces.append(piece)
    return pieces


def _matched(old: list[str], new: list[str]) -> list[Piece]:
    pieces = []
    for tag, old_from, old_to, new_from, new_to in SequenceMatcher(None, old, new, False).get_opcodes():
        taken, put = "".join(old[old_from:old_to]), "".join(new[new_from:new_to])
        pieces += [Piece("same" if tag == "equal" else "removed", taken)]
        pieces += [] if tag == "equal" else [Piece("added", put)]
    return _joined(pieces)


def _joined(pieces: list[Piece]) -> list[Piece]:
    return [piece for piece in pieces if piece.text]


def _by_path(lines: list[Line]) -> Lines:
    return {line.path: line for line in lines}
