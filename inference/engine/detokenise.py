"""From token ids to text while it streams: whole characters only, and never a part of a stop string."""

import codecs
from collections.abc import Callable
from typing import Protocol

from inference.engine.token_bytes import TokenBytes

REPLACEMENT = "\ufffd"  # how decoders show bytes that are no character (yet)


class Joiner(Protocol):
    """Joins the text of ids one after another; what it gave out and its rest are the text of all ids."""

    def add(self, token_id: int) -> str:
        """The text that is now certain."""

    def rest(self) -> str:
        """What is still held when no more ids come."""


class ByteJoiner:
    """For tokenizers whose tokens are bytes: a character is given out with its last byte."""

    def __init__(self, tokens: TokenBytes) -> None:
        self._tokens = tokens
        self._ascii = tokens.ascii  # most tokens: no character begins in them
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._is_open = False  # whether a character has begun

    def add(self, token_id: int) -> str:
        if not self._is_open and (text := self._ascii.get(token_id)) is not None:
            return text
        text = self._decoder.decode(self._tokens.shown(token_id))
        self._is_open = bool(self._decoder.getstate()[0])
        return text

    def rest(self) -> str:
        return self._decoder.decode(b"", final=True)


class WindowJoiner:
    """For any other tokenizer: decodes a short window again and again and gives out what has become more.

    `byte_ids` are the tokens of single bytes (`<0x41>`) of tokenizers that decode a run of them as a whole:
    one byte more can change all of the run's text, so it is held until the run ends.
    """

    def __init__(self, decode: Callable[[list[int]], str], byte_ids: frozenset[int] = frozenset()) -> None:
        self._decode = decode
        self._byte_ids = byte_ids
        self._in_bytes = False
        self._window: list[int] = []  # ids shown, as context, then ids not shown yet
        self._shown = 0  # how many ids of the window are context
        self._context = ""  # the text of that context

    def add(self, token_id: int) -> str:
        self._window.append(token_id)
        if self._byte_ids:
            invisible = self._in_bytes and not self._decode([token_id])  # special tokens do not end a run
            self._in_bytes = token_id in self._byte_ids or invisible
            if self._in_bytes:
                return ""
        text = self._decode(self._window)
        if len(text) <= len(self._context) or text.endswith(REPLACEMENT):
            return ""
        piece = text[len(self._context) :]
        # The ids just shown stay as context: decoders strip or join at the start of what they are given.
        self._window = self._window[self._shown :]
        self._shown = len(self._window)
        self._context = self._decode(self._window)
        return piece

    def rest(self) -> str:
        text = self._decode(self._window)[len(self._context) :]
        self._window, self._shown, self._context = [], 0, ""
        return text


class Detokeniser:
    """Turns ids into text that can be shown at once; the pieces joined are the text of all ids.

    A character split over tokens is held until it is whole. Text that may be the beginning of a stop
    string is held until it is clear; from a stop string on, nothing is given out.
    """

    def __init__(self, joiner: Joiner, stop: tuple[str, ...] = ()) -> None:
        self._joiner = joiner
        self._stop = stop
        self._held = ""
        self.stopped = False

    def add(self, token_id: int, may_stop: bool = True) -> str:
        """The text that is now certain. Sets `stopped` when a stop string is complete."""
        piece = self._joiner.add(token_id)
        if not self._stop:
            return piece
        self._held += piece
        if not may_stop:
            return self._give(len(self._held))
        starts = [start for stop in self._stop if (start := self._held.find(stop)) >= 0]
        if starts:
            self.stopped = True
            return self._give(min(starts))
        return self._give(len(self._held) - self._possible_stop())

    def flush(self) -> str:
        """What is still held when the output ends, up to a stop string that is only complete now."""
        if self.stopped:
            return ""
        rest, self._held = self._held + self._joiner.rest(), ""
        starts = [start for stop in self._stop if (start := rest.find(stop)) >= 0]
        self.stopped = bool(starts)
        return rest[: min(starts)] if starts else rest

    def _possible_stop(self) -> int:
        """Length of the longest end of the held text with which a stop string begins."""
        longest = 0
        for stop in self._stop:
            for length in range(min(len(stop) - 1, len(self._held)), longest, -1):
                if self._held.endswith(stop[:length]):
                    longest = length
                    break
        return longest

    def _give(self, length: int) -> str:
        piece, self._held = self._held[:length], self._held[length:]
        return piece
