"""From token ids to text while it streams: whole characters only, and never a part of a stop string."""

from collections.abc import Callable

REPLACEMENT = "\ufffd"  # how decoders show bytes that are no character (yet)


class Detokeniser:
    """Turns ids into text that can be shown at once; the pieces joined are the text of all ids.

    A character split over tokens is held until it is whole. Text that may be the beginning of a stop
    string is held until it is clear; from a stop string on, nothing is given out. `byte_ids` are the
    tokens of single bytes (`<0x41>`) of tokenizers that decode a run of them as a whole: one byte more can
    change all of the run's text, so it is held until the run ends.
    """

    def __init__(
        self,
        decode: Callable[[list[int]], str],
        stop: tuple[str, ...] = (),
        byte_ids: frozenset[int] = frozenset(),
    ) -> None:
        self._decode = decode
        self._stop = stop
        self._byte_ids = byte_ids
        self._in_bytes = False
        self._window: list[int] = []  # ids shown, as context, then ids not shown yet
        self._shown = 0  # how many ids of the window are context
        self._context = ""  # the text of that context
        self._held = ""
        self.stopped = False

    def add(self, token_id: int, *, may_stop: bool = True) -> str:
        """The text that is now certain. Sets `stopped` when a stop string is complete."""
        self._held += self._advance(token_id)
        if self._stop and may_stop:
            starts = [start for stop in self._stop if (start := self._held.find(stop)) >= 0]
            if starts:
                self.stopped = True
                return self._give(min(starts))
            return self._give(len(self._held) - self._possible_stop())
        return self._give(len(self._held))

    def flush(self) -> str:
        """What is still held when the output ends without a stop string."""
        if self.stopped:
            return ""
        rest = self._held + self._decode(self._window)[len(self._context) :]
        self._held = ""
        self._window, self._shown, self._context = [], 0, ""
        return rest

    def _advance(self, token_id: int) -> str:
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
