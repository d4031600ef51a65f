"""Cutting long texts to the room they have, so that one page stays one page."""

import unicodedata
from dataclasses import dataclass


@dataclass
class Clipper:
    """Cuts texts to `factor` of their room and remembers whether it had to.

    Room is counted in half-width columns: a Chinese character takes two.
    """

    factor: float = 1.0
    clipped: bool = False

    def __call__(self, text: str, columns: int) -> str:
        """The text in one paragraph, at most `columns` × factor wide, ending in an ellipsis when cut."""
        flat = " ".join(text.split())
        room = max(8, int(columns * self.factor))
        if width(flat) <= room:
            return flat
        self.clipped = True
        used, kept = 0, []
        for character in flat:
            used += width(character)
            if used > room - 1:
                break
            kept.append(character)
        return "".join(kept).rstrip() + "…"


def width(text: str) -> int:
    """Half-width columns that the text takes."""
    return sum(2 if unicodedata.east_asian_width(character) in "WF" else 1 for character in text)
