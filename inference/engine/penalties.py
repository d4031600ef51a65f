"""Penalties on tokens a request has already: repetition, presence and frequency."""

import numpy

from inference.requests import GenerationRequest

Scores = numpy.ndarray[tuple[int], numpy.dtype[numpy.float32]]


class History:
    """Which tokens a request has, and how often its output has them; kept up to date token by token.

    Counting a long answer again at every token would cost more than sampling it.
    """

    @classmethod
    def of(cls, request: GenerationRequest, tokens: list[int]) -> "History | None":
        """The history of a prompt; None where no penalty asks for one."""
        if (
            request.repetition_penalty == 1.0
            and not request.presence_penalty
            and not request.frequency_penalty
        ):
            return None
        return cls(request, tokens)

    def __init__(self, request: GenerationRequest, prompt: list[int]) -> None:
        self._repetition = request.repetition_penalty
        self._presence, self._frequency = request.presence_penalty, request.frequency_penalty
        seen = list(dict.fromkeys(prompt)) if self._repetition != 1.0 else []
        self._place = {token_id: place for place, token_id in enumerate(seen)}
        self._ids = numpy.zeros(len(seen) + request.max_tokens, dtype=numpy.int64)
        self._ids[: len(seen)] = seen
        self._counts = numpy.zeros(len(self._ids), dtype=numpy.float32)  # in the output

    def add(self, token_id: int) -> None:
        """Count one token of the output."""
        place = self._place.setdefault(token_id, len(self._place))
        self._ids[place] = token_id
        self._counts[place] += 1

    def penalise(self, scores: Scores) -> Scores:
        """A changed copy: repetition as in CTRL (all tokens), the rest as in the OpenAI API (the output)."""
        ids, counts = self._ids[: len(self._place)], self._counts[: len(self._place)]
        values = scores[ids]
        if self._repetition != 1.0:
            penalty = numpy.float32(self._repetition)
            values = numpy.where(values < 0, values * penalty, values / penalty)
        values = values - self._presence * (counts > 0) - self._frequency * counts
        changed = scores.copy()
        changed[ids] = values
        return changed
