"""Requests that follow each other: a turn leaves after the answer to the one before, and carries it."""

from collections.abc import Sequence
from dataclasses import replace

from inference.records import Trace
from inference.requests import GenerationRequest

Turn = tuple[int, GenerationRequest]  # position in the input, request


def conversations(requests: Sequence[GenerationRequest]) -> list[list[Turn]]:
    """The requests as conversations, each in the order of its turns; most have one turn.

    They stand in the order of their first turns. Whoever splits a load splits it here, never inside one.
    A request that follows none of these stands for itself.
    """
    found: list[list[Turn]] = []
    of_request: dict[str, list[Turn]] = {}
    for index, request in enumerate(requests):
        turns = of_request.get(request.follows) if request.follows is not None else None
        if turns is None:
            turns = []
            found.append(turns)
        turns.append((index, request))
        of_request[request.id] = turns
    return found


def next_turn(request: GenerationRequest, said: GenerationRequest, answer: Trace) -> GenerationRequest:
    """`request` with the history it follows: what `said` asked, and what the target really answered."""
    history = (*(said.messages or ()), {"role": "assistant", "content": answer.text})
    return replace(request, messages=(*history, *(request.messages or ())))


def is_answered(answer: Trace) -> bool:
    """Whether a conversation can go on: the turn ended by itself and said something."""
    return answer.finish_reason is not None and answer.error is None and bool(answer.text)
