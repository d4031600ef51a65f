"""The events of one request, in the order in which they happen; every interval is derived from them.

An event is a plain list `[kind, handle, ns, …]`, ready for the wire, stamped with `time.monotonic_ns()`:

- `queued`      ns, prompt tokens                 accepted; it waits for a place in the batch
- `rejected`    ns, reason, busy                  never accepted: it can never be served, or not now
- `admitted`    ns, cached tokens                 in the batch; again after each preemption
- `chunk`       ns (end), start ns, tokens, again prompt or output tokens computed; `again` after a preemption
- `token`       ns, start ns, id, text            one output token; the step it came from began at start ns;
                                                where asked for, then its log probability and those of the
                                                alternatives: `[[id, logprob, bytes], …]`, its own first
- `step`        ns (end), start ns, prefill sequences, prefill tokens, decode sequences, decode tokens
                                                all that was computed in the step of the events after it,
                                                where that was both; never where steps are phase-pure
- `preempted`   ns, tokens dropped                out of the batch, to be computed again
- `finished`    ns, finish reason, text           text that was held back until now
- `aborted`     ns                                the client left
- `failed`      ns, reason
- `freed`       ns                                all its cache blocks are back
"""

from typing import Any

Event = list[Any]

#: after one of these, nothing of the request follows but `freed`
ENDS = frozenset({"finished", "aborted", "failed"})


def queued(handle: int, ns: int, prompt_tokens: int) -> Event:
    return ["queued", handle, ns, prompt_tokens]


def rejected(handle: int, ns: int, reason: str, *, busy: bool = False) -> Event:
    return ["rejected", handle, ns, reason, busy]


def admitted(handle: int, ns: int, cached_tokens: int) -> Event:
    return ["admitted", handle, ns, cached_tokens]


def chunk(handle: int, start_ns: int, end_ns: int, tokens: int, *, again: bool) -> Event:
    return ["chunk", handle, end_ns, start_ns, tokens, again]


def token(handle: int, start_ns: int, ns: int, token_id: int, text: str) -> Event:
    return ["token", handle, ns, start_ns, token_id, text]


def step(handle: int, start_ns: int, end_ns: int, prefill: tuple[int, int], decode: tuple[int, int]) -> Event:
    """`prefill` and `decode` are (sequences, tokens) of the whole step."""
    return ["step", handle, end_ns, start_ns, *prefill, *decode]


def preempted(handle: int, ns: int, tokens: int) -> Event:
    return ["preempted", handle, ns, tokens]


def finished(handle: int, ns: int, reason: str, text: str) -> Event:
    return ["finished", handle, ns, reason, text]


def aborted(handle: int, ns: int) -> Event:
    return ["aborted", handle, ns]


def failed(handle: int, ns: int, reason: str) -> Event:
    return ["failed", handle, ns, reason]


def freed(handle: int, ns: int) -> Event:
    return ["freed", handle, ns]
