"""Warm-up requests: like the measured ones in length, but unable to fill the prefix cache for them."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from inference.requests import GenerationRequest

NAMESPACE = "warmup"


def warmup_requests(requests: Sequence[GenerationRequest], n: int) -> list[GenerationRequest]:
    """`n` variants of the first requests, in turn; ids `warmup-1` …

    Their text starts differently (a server's prefix cache matches from the start) and the embedded
    engine keeps their cache entries in a namespace of their own, so the measured window starts cold.
    """
    if not requests:
        return []
    return [_variant(requests[i % len(requests)], i + 1) for i in range(n)]


def _variant(request: GenerationRequest, number: int) -> GenerationRequest:
    mark = f"({number}) "
    changes: dict[str, Any] = {"id": f"warmup-{number}", "cancel": None, "arrival_s": None, "follows": None}
    changes["namespace"] = NAMESPACE + request.namespace
    if request.prompt is not None:
        changes["prompt"] = mark + request.prompt
    elif request.prompt_token_ids is not None:
        ids = request.prompt_token_ids
        changes["prompt_token_ids"] = ids[1:] + ids[:1]
    elif request.messages and isinstance(request.messages[0].get("content"), str):
        first = {**request.messages[0], "content": mark + request.messages[0]["content"]}
        changes["messages"] = (first, *request.messages[1:])
    return replace(request, **changes)
