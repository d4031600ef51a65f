"""How the engine's events become the trace of a request."""

from typing import Any

from inference.engine import events
from inference.phases import derive
from inference.records import Trace
from inference.requests import GenerationRequest
from inference.targets.follower import Follower

REQUEST = GenerationRequest(id="r", prompt_token_ids=(1, 2, 3), logprobs=1)


def follow(*told: list[Any]) -> Trace:
    trace = Trace("r", sent_ns=0)
    host: Any = None
    follower = Follower(host, 1, REQUEST, trace, None)
    for event in told:
        follower._enter(event[2], event)
    return trace


def token(start_ns: int, ns: int, token_id: int, logprobs: list[Any] | None = None) -> list[Any]:
    event = events.token(1, start_ns, ns, token_id, "x")
    return event if logprobs is None else [*event, logprobs]


def test_tokens_of_one_step_are_one_step() -> None:
    """A step with right guesses gives several tokens at once."""
    trace = follow(
        events.queued(1, 10, 3),
        events.admitted(1, 20, 0),
        events.chunk(1, 20, 30, 3, again=False),
        token(20, 30, 5),
        token(31, 40, 6),
        token(31, 40, 7),
        token(31, 40, 8),
        token(41, 50, 9),
        events.finished(1, 51, "length", ""),
    )
    assert trace.decode_steps == [(31, 40), (41, 50)]
    assert trace.token_ids == [5, 6, 7, 8, 9]
    record = derive(trace, REQUEST, open_loop=False)
    assert record.output_tokens == 5


def test_log_probabilities_reach_the_trace_and_the_record() -> None:
    trace = follow(
        events.queued(1, 10, 3),
        events.admitted(1, 20, 0),
        events.chunk(1, 20, 30, 3, again=False),
        token(20, 30, 5, [[5, -0.5, b"\xe4"], [5, -0.5, b"\xe4"]]),
        token(31, 40, 6, [[6, -1.5, b"b"], [7, -0.3, b"c"]]),
        events.finished(1, 41, "length", ""),
    )
    assert trace.logprobs == [[(5, -0.5, b"\xe4"), (5, -0.5, b"\xe4")], [(6, -1.5, b"b"), (7, -0.3, b"c")]]
    assert derive(trace, REQUEST, open_loop=False).detail["logprobs"] == [
        [[5, -0.5], [5, -0.5]],
        [[6, -1.5], [7, -0.3]],
    ]


def test_a_mixed_step_is_told_with_what_it_was_made_of() -> None:
    trace = follow(
        events.queued(1, 10, 3),
        events.admitted(1, 20, 0),
        events.step(1, 20, 30, (1, 3), (4, 4)),
        events.chunk(1, 20, 30, 3, again=False),
        token(20, 30, 5),
    )
    assert trace.mixed_steps == [(20, 30, 3, 4)]
    assert trace.chunks == [(20, 30, 3)]
