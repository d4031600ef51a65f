"""One planned load divided among several generators, so that together they send exactly what was planned.

The plan is made once: every conversation has its instant (open loop) or its slot (closed loop) before it is
dealt to a generator, and the same plan is always divided the same way.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import msgpack
import zstandard

from inference.errors import InputError
from inference.load.generator import LoadPlan
from inference.requests import CancelRule, GenerationRequest
from inference.workload.arrivals import arrival_offsets_s
from inference.workload.conversations import conversations
from inference.workload.warmup import warmup_requests

PART_FILE = "part"
_LEVEL = 3


@dataclass(frozen=True, kw_only=True)
class Part:
    """What one of several generators sends.

    `indices` are the places of `requests` in the whole input, `warming_indices` those of `warming` among all
    warm-up requests. In open loop each conversation's first request has its planned instant as `arrival_s`.
    """

    number: int  # from 1
    of: int
    plan: LoadPlan
    requests: tuple[GenerationRequest, ...]
    indices: tuple[int, ...]
    warming: tuple[GenerationRequest, ...] = ()
    warming_indices: tuple[int, ...] = ()

    @property
    def name(self) -> str:
        return f"generator {self.number} of {self.of}"

    def packed(self) -> bytes:
        """The part as compressed MessagePack; `part_of` is its inverse."""
        plan = {name: getattr(self.plan, name) for name in LoadPlan.__dataclass_fields__}
        content = {
            "number": self.number,
            "of": self.of,
            "plan": plan,
            "requests": [_request_item(request) for request in self.requests],
            "indices": self.indices,
            "warming": [_request_item(request) for request in self.warming],
            "warming_indices": self.warming_indices,
        }
        packed: bytes = msgpack.packb(content, use_bin_type=True, default=str, unicode_errors="surrogatepass")
        return zstandard.ZstdCompressor(level=_LEVEL).compress(packed)


def part_of(packed: bytes) -> Part:
    """The part that `Part.packed` wrote."""
    content = msgpack.unpackb(
        zstandard.ZstdDecompressor().decompress(packed), raw=False, unicode_errors="surrogatepass"
    )
    return Part(
        number=content["number"],
        of=content["of"],
        plan=LoadPlan(**content["plan"]),
        requests=tuple(_request_of(item) for item in content["requests"]),
        indices=tuple(content["indices"]),
        warming=tuple(_request_of(item) for item in content["warming"]),
        warming_indices=tuple(content["warming_indices"]),
    )


def check_divisible(n: int, *, concurrency: int | None, conversations: int | None) -> None:
    """Raise InputError where a load cannot be divided among `n` generators."""
    if n < 1:
        raise InputError(f"the number of generators must be at least 1, not {n}")
    if concurrency is not None and n > concurrency:
        raise InputError(f"{n} generators cannot share a concurrency of {concurrency}")
    if conversations is not None and n > conversations:
        raise InputError(f"{n} generators cannot share {conversations} requests or conversations")


def divide(requests: Sequence[GenerationRequest], plan: LoadPlan, n: int) -> list[Part]:
    """The load as `n` parts that send each request once.

    Open loop: conversations are dealt in turn in the order in which they are due, each with its planned
    instant. Closed loop: the slots are dealt in turn, and conversation `k` goes where slot `k` modulo their
    number went. Slots and warm-up requests are dealt in turn too. InputError where there is too little.
    """
    talks = conversations(requests)
    check_divisible(n, concurrency=plan.concurrency, conversations=len(talks))
    due = list(requests)
    if plan.open_loop:
        firsts = [turns[0][1] for turns in talks]
        offsets = arrival_offsets_s(firsts, rate=plan.rate, arrival=plan.arrival, seed=plan.seed)
        for turns, offset in zip(talks, offsets, strict=True):
            due[turns[0][0]] = replace(turns[0][1], arrival_s=offset)
        order = sorted(range(len(talks)), key=lambda talk: offsets[talk])
        place = {talk: turn % n for turn, talk in enumerate(order)}
    else:
        slots = plan.concurrency or 1
        place = {talk: talk % slots % n for talk in range(len(talks))}
    held: list[list[int]] = [[] for _ in range(n)]
    for talk, turns in enumerate(talks):
        held[place[talk]] += [index for index, _request in turns]
    warming = warmup_requests(requests, plan.warmup)
    return [_part(plan, n, number, due, sorted(held[number]), warming) for number in range(n)]


def _part(  # noqa: PLR0917 one call, all of it plain
    plan: LoadPlan,
    n: int,
    number: int,
    due: Sequence[GenerationRequest],
    indices: Sequence[int],
    warming: Sequence[GenerationRequest],
) -> Part:
    mine = range(number, len(warming), n)
    slots = plan.concurrency
    changes: dict[str, Any] = {"warmup": len(mine)}
    if slots is not None:
        changes["concurrency"] = slots // n + (number < slots % n)
    if plan.open_loop:
        changes |= {"rate": None, "arrival": "trace"}  # by the planned instants
    return Part(
        number=number + 1,
        of=n,
        plan=replace(plan, **changes),
        requests=tuple(due[index] for index in indices),
        indices=tuple(indices),
        warming=tuple(warming[index] for index in mine),
        warming_indices=tuple(mine),
    )


_TUPLES = ("messages", "prompt_token_ids", "stop", "stop_token_ids")


def _request_item(request: GenerationRequest) -> dict[str, Any]:
    fields = GenerationRequest.__dataclass_fields__
    item = {
        name: value
        for name, field in fields.items()
        if (value := getattr(request, name)) != field.default and name != "cancel"
    }
    if request.cancel is not None:
        item["cancel"] = [request.cancel.phase, request.cancel.after_tokens]
    return item


def _request_of(item: dict[str, Any]) -> GenerationRequest:
    changes: dict[str, Any] = {name: tuple(item[name]) for name in _TUPLES if item.get(name) is not None}
    if "cancel" in item:
        phase, after_tokens = item["cancel"]
        changes["cancel"] = CancelRule(phase=phase, after_tokens=after_tokens)
    return GenerationRequest(**item | changes)
