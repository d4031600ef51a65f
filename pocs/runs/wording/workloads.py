"""The sentences of the measuring core about request sets and traces, in the language of the reader."""

import re

from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

#: a place before a sentence, then the sentence; names in the pattern are those of the message
_PLACES = (
    (r"(?P<file>.+?), line (?P<line>\d+), column (?P<column>[^:]+): (?P<rest>.+)",
     gettext_noop("%(file)s, line %(line)s, column %(column)s: %(rest)s")),
    (r"(?P<file>.+?), line (?P<line>\d+): (?P<rest>.+)", gettext_noop("%(file)s, line %(line)s: %(rest)s")),
    (r"column (?P<column>[^:']+): (?P<rest>.+)", gettext_noop("column %(column)s: %(rest)s")),
)  # fmt: skip
_SENTENCES = (
    (r"is missing", gettext_noop("is missing")),
    (r"is empty", gettext_noop("is empty")),
    (r"(?P<value>.+) is negative", gettext_noop("%(value)s is negative")),
    (r"(?P<value>.+) is no number", gettext_noop("%(value)s is no number")),
    (r"(?P<value>.+) is no whole number of tokens", gettext_noop("%(value)s is no whole number of tokens")),
    (r"(?P<value>.+) is no moment of time", gettext_noop("%(value)s is no moment of time")),
    (r"(?P<value>.+) is earlier than in line (?P<line>\d+)",
     gettext_noop("%(value)s is earlier than in line %(line)s")),
    (r"(?P<value>.+) is earlier than the line before",
     gettext_noop("%(value)s is earlier than the line before")),
    (r"column (?P<value>'[^']+') is missing \(there are (?P<there>.+)\)",
     gettext_noop("column %(value)s is missing (there are %(there)s)")),
    (r"column (?P<value>'.+') is there twice", gettext_noop("column %(value)s is there twice")),
    (r"no column holds the prompt \(there are (?P<there>.+)\); name it, as in (?P<example>.+)",
     gettext_noop("no column holds the prompt (there are %(there)s); name it, as in %(example)s")),
    (r"has (?P<n>\d+) columns, the header has (?P<m>\d+)",
     gettext_noop("has %(n)s columns, the header has %(m)s")),
    (r"(?P<value>'.+') was already used in line (?P<line>\d+)",
     gettext_noop("%(value)s was already used in line %(line)s")),
    (r"not JSON \((?P<why>.+)\)", gettext_noop("not JSON (%(why)s)")),
    (r"(?P<file>[^:]+): the file is empty", gettext_noop("%(file)s: the file is empty")),
    (r"(?P<file>.+): this is an (?:old )?Excel workbook.*",
     gettext_noop("%(file)s: this is an Excel workbook or an archive; save the sheet as CSV (UTF-8)")),
    (r"(?P<file>.+): the file has no request that could be sent.*",
     gettext_noop("%(file)s: the file has no request that could be sent")),
    (r"(?P<file>.+), line (?P<line>\d+), byte (?P<byte>\d+): neither UTF-8 nor GBK text",
     gettext_noop("%(file)s, line %(line)s, byte %(byte)s: neither UTF-8 nor GBK text")),
    (r"no known format has the fields (?P<there>.+); known are (?P<known>.+)",
     gettext_noop("no known format has the fields %(there)s; known are %(known)s")),
    (r"no input and no output tokens \(.+\)",
     gettext_noop("no input and no output tokens (nothing was asked or it failed at the source)")),
    (r"no (?:input|output) tokens \(.+\)",
     gettext_noop("a length is 0 (nothing was asked or it failed at the source)")),
    (r"(?P<url>\S+) is no generation request", gettext_noop("%(url)s is no generation request")),
    (r"field (?P<value>'.+') was not used \((?P<n>\d+) lines\)",
     gettext_noop("field %(value)s was not used (%(n)s lines)")),
    (r"columns not used: (?P<there>.+)", gettext_noop("columns not used: %(there)s")),
    (r"columns: (?P<there>.+)", gettext_noop("columns: %(there)s")),
    (r"times are read as seconds.*",
     gettext_noop("times are read as seconds; a file in milliseconds is named as format mooncake")),
    (r"(?P<n>\d+) lines were out of order in time \(first: (?P<line>\d+)\); sorted",
     gettext_noop("%(n)s lines were out of order in time (first: %(line)s); sorted")),
    (r"(?P<n>\d+) blocks of (?P<size>\d+) tokens do not fit (?P<asked>\d+) input tokens.*",
     gettext_noop("%(n)s blocks of %(size)s tokens do not fit %(asked)s input tokens")),
    (r"turn (?P<n>\d+) has no text", gettext_noop("turn %(n)s has no text")),
)  # fmt: skip


def in_words(text: str) -> str:
    """The sentence translated with its place; a sentence that is not known here stays as it is."""
    for pattern, message in _PLACES:
        if match := re.fullmatch(pattern, text):
            return _(message) % (match.groupdict() | {"rest": in_words(match["rest"])})
    for pattern, message in _SENTENCES:
        if match := re.fullmatch(pattern, text):
            return _(message) % match.groupdict()
    return text
