"""Prompts for the rows of a trace: of their length, sharing exactly the blocks that it says they share."""

import random
import string
from collections.abc import Callable, Sequence

from inference.workload.prompts import Tokenize, counter, longest_start, sentence

OWN_BLOCK_TOKENS = 8192  # of rows without ids: no more than a part of the work
_POOL = 1024  # sentences that are counted once
_ROUNDS = 6  # of fitting the last block to the whole


class BlockTexts:
    """Texts by block id; equal ids are the same text, and two texts differ from their first word on.

    A sentence ends where tokenizers part words, so the tokens of a text are those of its sentences: each
    is counted once, and a whole prompt once more.
    """

    def __init__(self, language: str, *, seed: int = 0, tokenize: Tokenize | None = None) -> None:
        self.seed = seed
        self.count: Callable[[str], int] = counter(tokenize)
        source = random.Random(f"{seed}-pool")  # noqa: S311 reproducible texts, not a secret
        spoken = ("zh" if language == "zh" else "en",) if language != "mixed" else ("en", "zh")
        texts = [sentence(spoken[i % len(spoken)], source) for i in range(_POOL)]
        self._pool = [text + "\n" * (text[-1] == "。") for text in texts]
        self._tokens = [self.count(text) for text in self._pool]

    def prompt(self, tokens: int, ids: Sequence[int] = (), *, block_tokens: int | None, own: str) -> str:
        """A prompt of `tokens` tokens made of the blocks `ids`, the last one partly filled.

        Without ids it shares nothing with any other: its blocks are made for `own`, the id of its row.
        """
        size = block_tokens if ids and block_tokens else OWN_BLOCK_TOKENS
        names = [str(name) for name in ids] or [f"{own}/{part}" for part in range(-(-tokens // size))]
        head = "".join(self._block(name, size) for name in names[:-1])
        wanted = tokens - size * (len(names) - 1)
        best, best_over = "", tokens
        for _ in range(_ROUNDS):
            text = head + self._block(names[-1], wanted)
            over = self.count(text) - tokens
            if abs(over) < abs(best_over):
                best, best_over = text, over
            if not over or wanted - over < 1:
                break
            wanted -= over
        return best or head

    def _block(self, name: str, tokens: int) -> str:
        """A block's text: of one name, a shorter one is the start of a longer one."""
        source = random.Random(f"{self.seed}-block-{name}")  # noqa: S311 reproducible texts, not a secret
        opening = "\n" + "".join(source.choices(string.ascii_lowercase, k=6)) + ":"
        parts, left = [], tokens
        text, size = opening, self.count(opening)
        while size < left:
            parts.append(text)
            left -= size
            chosen = source.randrange(_POOL)
            text, size = self._pool[chosen], self._tokens[chosen]
        parts.append(text if size == left else text[: longest_start(text, left, self.count)])
        return "".join(parts)
