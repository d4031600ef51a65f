"""What is refused at the door: requests that can never be served, and those for which there is no room."""

import math
import threading

from inference.engine.loading import LoadedModel
from inference.errors import RequestRejected
from inference.requests import MAX_LOGPROBS, PRIORITIES, GenerationRequest, Priority


class Busy(RequestRejected):
    """The waiting list is full; the same request may be served later."""


class Admission:
    """Checks requests against the engine's limits and keeps the list of the open ones. Thread-safe.

    `max_open` counts for each priority by itself: live requests cannot use up the room of measured ones.
    """

    def __init__(self, *, vocabulary: int, max_model_tokens: int, pool_tokens: int, max_open: int) -> None:
        self._vocabulary = vocabulary
        self._max_model_tokens = max_model_tokens
        self._pool_tokens = pool_tokens
        self._max_open = max_open
        self._open: dict[str, Priority] = {}  # by id
        self._count = dict.fromkeys(PRIORITIES, 0)
        self._lock = threading.Lock()

    def enter(self, request: GenerationRequest, prompt_tokens: int, tokens: list[int]) -> None:
        """Note the request as open; raises RequestRejected, or Busy where the list is full."""
        self._check_values(request)
        self._check_lengths(request, prompt_tokens)
        ids = (*request.stop_token_ids,)
        if ids and not 0 <= min(ids) <= max(ids) < self._vocabulary:
            raise RequestRejected(f"A stop token id is outside the vocabulary of {self._vocabulary}.")
        if tokens and not 0 <= min(tokens) <= max(tokens) < self._vocabulary:
            raise RequestRejected(f"A prompt token id is outside the vocabulary of {self._vocabulary}.")
        with self._lock:
            if request.id in self._open:
                raise RequestRejected(f"A request with the id {request.id!r} is already open.")
            if self._count[request.priority] >= self._max_open:
                raise Busy(f"The engine is busy: {self._count[request.priority]} requests are open already.")
            self._open[request.id] = request.priority
            self._count[request.priority] += 1

    def leave(self, request: GenerationRequest) -> None:
        with self._lock:
            priority = self._open.pop(request.id, None)
            if priority is not None:
                self._count[priority] -= 1

    @staticmethod
    def is_busy(error: RequestRejected) -> bool:
        return isinstance(error, Busy)

    def _check_lengths(self, request: GenerationRequest, prompt_tokens: int) -> None:
        if prompt_tokens == 0:
            raise RequestRejected("The prompt has no tokens.")
        if request.max_tokens < 1:
            raise RequestRejected(f"max_tokens must be at least 1, not {request.max_tokens}.")
        if not 0 <= request.min_tokens <= request.max_tokens:
            raise RequestRejected(
                f"min_tokens must be from 0 to max_tokens = {request.max_tokens}, not {request.min_tokens}."
            )
        wanted = prompt_tokens + request.max_tokens
        asked = f"The prompt has {prompt_tokens} tokens and max_tokens is {request.max_tokens}"
        if wanted > self._max_model_tokens:
            raise RequestRejected(f"{asked}, but the model takes {self._max_model_tokens} in all.")
        if wanted - 1 > self._pool_tokens:  # the last token is never computed itself
            raise RequestRejected(f"{asked}, but the KV cache has room for {self._pool_tokens}.")

    @staticmethod
    def _check_values(request: GenerationRequest) -> None:
        limits = (
            ("temperature", request.temperature, 0.0, math.inf),
            ("top_p", request.top_p, 0.0, 1.0),
            ("top_k", request.top_k, 0, math.inf),
            ("presence_penalty", request.presence_penalty, -2.0, 2.0),
            ("frequency_penalty", request.frequency_penalty, -2.0, 2.0),
            ("repetition_penalty", request.repetition_penalty, 0.0, math.inf),
            ("min_p", request.min_p, 0.0, 1.0),
            ("logprobs", request.logprobs or 0, 0, MAX_LOGPROBS),
        )
        for name, value, low, high in limits:
            if not (low <= value <= high) or math.isinf(value):
                raise RequestRejected(f"{name} must be between {low:g} and {high:g}, not {value}.")
        if request.top_p == 0 or request.repetition_penalty == 0:
            raise RequestRejected("top_p and repetition_penalty must be greater than 0.")
        if request.priority not in PRIORITIES:
            raise RequestRejected(
                f"priority must be one of {', '.join(PRIORITIES)}, not {request.priority!r}."
            )
        if any(not stop for stop in request.stop):
            raise RequestRejected("A stop string is empty.")


def encode(loaded: LoadedModel, request: GenerationRequest) -> list[int]:
    """The prompt's ids: messages by the chat template, text with special tokens, ids as they are."""
    if request.prompt_token_ids is not None:
        return list(request.prompt_token_ids)
    if request.prompt is not None:
        return list(loaded.tokenizer(request.prompt).input_ids)
    if not loaded.tokenizer.chat_template:
        raise RequestRejected("The model has no chat template: send a prompt instead of messages.")
    try:
        ids = loaded.tokenizer.apply_chat_template(
            list(request.messages or ()), add_generation_prompt=True, tokenize=True, return_dict=False
        )
    except Exception as error:  # a template may raise anything, with the reason in its text
        raise RequestRejected(f"The chat template refuses the messages: {error}.") from error
    return list(ids)
