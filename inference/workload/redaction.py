"""Takes personal numbers and addresses out of texts before anything is kept.

E-mail addresses, telephone numbers (Chinese mobile and fixed lines, international), Chinese identity
cards (GB 11643, with their check digit) and bank cards (ISO/IEC 7812, Luhn) become words like `[phone]`.
Full-width digits and separators are read like plain ones. Digits inside longer words, as in hexadecimal
ids, are left alone, and so are numbers whose check digit is wrong: these are order numbers.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import Any

KINDS = ("email", "id_card", "bank_card", "phone")
MARKS = {"email": "[email]", "id_card": "[id-card]", "bank_card": "[bank-card]", "phone": "[phone]"}

_HYPHENS = "－‐‑‒–—―−﹣"
_PLAIN = {
    **{0xFF01 + i: chr(0x21 + i) for i in range(94)},  # ！ to ～, one character for one
    **{ord(char): "-" for char in _HYPHENS},
    **{ord(char): " " for char in "\u3000\u00a0\u2002\u2003\u2009\u202f"},
}
_BEFORE = r"(?<![0-9A-Za-z_])(?<![0-9A-Za-z]-)(?<!\d\.)"  # no part of a word, an id, a decimal fraction
_AFTER = r"(?![0-9A-Za-z_])(?!-[0-9A-Za-z])(?!\.\d)"
_GAP = "[ -]?"

_EMAIL = re.compile(
    r"(?<![A-Za-z0-9._%+-])[A-Za-z0-9_][A-Za-z0-9._%+-]{0,63}@"
    r"(?:[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?\.){1,8}[A-Za-z]{2,24}(?![A-Za-z0-9])"
)
_ID_CARD = re.compile(rf"{_BEFORE}[1-9](?:{_GAP}\d){{16}}{_GAP}[\dXx]{_AFTER}")
_BANK_CARD = re.compile(rf"{_BEFORE}\d(?:{_GAP}\d){{13,18}}{_AFTER}")
_LINE_END = rf"\d{{3,4}}{_GAP}\d{{4}}(?:-\d{{1,6}})?{_AFTER}"
_AREA = r"0(?:10|2\d|[3-9]\d\d)"
#: telephone numbers by their form; where two begin at one place, the first one counts
_PHONES = (
    rf"{_BEFORE}(?:\(?\+?(?:00)?86\)?{_GAP})?1[3-9]\d{_GAP}\d{{4}}{_GAP}\d{{4}}{_AFTER}",  # mobile
    rf"(?<![0-9A-Za-z_+])\+[1-9](?:[ .()-]{{0,2}}\d){{7,14}}{_AFTER}",  # international
    rf"{_BEFORE}00[1-9](?:[ .()-]{{0,2}}\d){{7,14}}{_AFTER}",
    rf"{_BEFORE}\({_AREA}\) ?{_LINE_END}",  # (010) 6512 3456
    rf"{_BEFORE}{_AREA}{_GAP}{_LINE_END}",  # 0512-65123456-801
    rf"{_BEFORE}[48]00-?\d{{3,4}}-\d{{3,4}}{_AFTER}",  # service lines
    rf"{_BEFORE}(?:\([2-9]\d\d\) ?|[2-9]\d\d-)[2-9]\d\d-\d{{4}}{_AFTER}",  # North America
)
_PHONE = re.compile("|".join(_PHONES))

#: issuers by first digits and the lengths of their numbers
_ISSUERS = (
    (re.compile(r"62|81|9558"), range(16, 20)),  # UnionPay, and older debit cards
    (re.compile(r"4"), (16, 19)),  # Visa
    (re.compile(r"5[1-5]|2(?:22[1-9]|2[3-9]|[3-6]|7[01]|720)"), (16,)),  # Mastercard
    (re.compile(r"3[47]"), (15,)),  # American Express
    (re.compile(r"35(?:2[89]|[3-8])"), range(16, 20)),  # JCB
    (re.compile(r"6011|64[4-9]|65"), range(16, 20)),  # Discover
    (re.compile(r"3(?:0[0-5]|[689])"), (14,)),  # Diners
)
_ID_WEIGHTS = (7, 9, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2)
_ID_CHECKS = "10X98765432"


@dataclass
class Redactor:
    """Redacts texts and counts by kind what it took out."""

    counts: Counter[str] = field(default_factory=Counter)

    def text(self, text: str) -> str:
        """`text` with every number and address replaced by its mark."""
        found = _found(text)
        if not found:
            return text
        parts, end = [], 0
        for start, stop, kind in found:
            parts += [text[end:start], MARKS[kind]]
            end = stop
            self.counts[kind] += 1
        return "".join([*parts, text[end:]])

    def value(self, value: Any) -> Any:
        """The same for every text inside a JSON value; names of fields stay."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, Mapping):
            return {name: self.value(item) for name, item in value.items()}
        return [self.value(item) for item in value] if isinstance(value, list | tuple) else value


def redact(text: str) -> str:
    """`text` without personal numbers and addresses."""
    return Redactor().text(text)


def _found(text: str) -> list[tuple[int, int, str]]:
    """Where something is to be taken out: (start, end, kind), in order, never overlapping."""
    if not any(char.isdigit() or char in "@＠" for char in text):
        return []
    plain = text.translate(_PLAIN)  # as long as the text, so that places agree
    taken: list[tuple[int, int, str]] = []
    for kind, matches in _FINDERS.items():
        for start, stop in matches(plain):
            if all(stop <= other or start >= other_stop for other, other_stop, _ in taken):
                taken.append((start, stop, kind))
    return sorted(taken)


def _emails(text: str) -> Iterator[tuple[int, int]]:
    if "@" in text:
        yield from (match.span() for match in _EMAIL.finditer(text))


def _id_cards(text: str) -> Iterator[tuple[int, int]]:
    yield from (match.span() for match in _ID_CARD.finditer(text) if is_id_card(match[0]))


def _bank_cards(text: str) -> Iterator[tuple[int, int]]:
    yield from (match.span() for match in _BANK_CARD.finditer(text) if is_bank_card(match[0]))


def _phones(text: str) -> Iterator[tuple[int, int]]:
    yield from (match.span() for match in _PHONE.finditer(text))


_FINDERS: dict[str, Callable[[str], Iterator[tuple[int, int]]]] = {
    "email": _emails,
    "id_card": _id_cards,
    "bank_card": _bank_cards,
    "phone": _phones,
}


def is_id_card(number: str) -> bool:
    """Whether 18 digits are an identity card: with a date of birth and their check digit."""
    signs = number.replace(" ", "").replace("-", "").upper()
    if len(signs) != 18:
        return False
    try:
        born = date(int(signs[6:10]), int(signs[10:12]), int(signs[12:14]))
    except ValueError:
        return False
    total = sum(int(digit) * weight for digit, weight in zip(signs[:17], _ID_WEIGHTS, strict=True))
    return born.year >= 1900 and signs[17] == _ID_CHECKS[total % 11]


def is_bank_card(number: str) -> bool:
    """Whether a number is a bank card's: digits of an issuer, its length, and the Luhn check digit."""
    digits = "".join(char for char in number if char.isdigit())
    if not any(first.match(digits) and len(digits) in lengths for first, lengths in _ISSUERS):
        return False
    doubled = (int(digit) * (1 + place % 2) for place, digit in enumerate(reversed(digits)))
    return sum(value - 9 if value > 9 else value for value in doubled) % 10 == 0 and len(set(digits)) > 1
