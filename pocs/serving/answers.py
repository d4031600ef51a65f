"""Answers as the OpenAI API gives them: whole ones, and the chunks of streamed ones."""

import time
from dataclasses import dataclass, field
from typing import Any

from pocs.serving.orders import Order


@dataclass
class Answer:
    """One answer as it grows; `prompt_tokens` and what follows is known only as it comes in."""

    order: Order
    model: str
    id: str
    created: int = field(default_factory=lambda: int(time.time()))
    prompt_tokens: int = 0
    completion_tokens: int = 0
    text: str = ""
    logprobs: list[dict[str, Any]] = field(default_factory=list)
    facts: dict[str, Any] = field(default_factory=dict)

    def add(self, piece: str, tokens: int, logprobs: list[dict[str, Any]] | None) -> None:
        self.text += piece
        self.completion_tokens = tokens
        self.logprobs += logprobs or []

    def end(self, facts: dict[str, Any]) -> None:
        self.facts = facts
        self.prompt_tokens, self.completion_tokens = facts["prompt_tokens"], facts["completion_tokens"]

    # -- whole ----------------------------------------------------------------------------------------

    def whole(self, metrics: dict[str, Any] | None) -> dict[str, Any]:
        """The object of an answer that is not streamed."""
        choice: dict[str, Any] = {"index": 0}
        if self.order.kind == "chat":
            choice["message"] = {"role": "assistant", "content": self.text, "refusal": None}
        else:
            choice["text"] = self.text
        choice["logprobs"] = self._logprobs(self.logprobs, 0)
        choice["finish_reason"] = self.facts["finish_reason"]
        return self._body("chat.completion", [choice]) | self._close(metrics, usage=True)

    # -- streamed -------------------------------------------------------------------------------------

    def first_chunk(self) -> list[dict[str, Any]]:
        """The chunk that names the role; a text completion has none."""
        if self.order.kind == "text":
            return []
        return [self._chunk({"role": "assistant", "content": "", "refusal": None}, None)]

    def piece_chunk(self, piece: str, logprobs: list[dict[str, Any]] | None, at: int) -> dict[str, Any]:
        """A chunk of text; `at` is where it begins in the answer, in characters."""
        delta = {"content": piece} if self.order.kind == "chat" else piece
        return self._chunk(delta, None, self._logprobs(logprobs, at))

    def last_chunks(self, metrics: dict[str, Any] | None) -> list[dict[str, Any]]:
        """The chunk with the finish reason and, where asked for, the one with the usage."""
        last = self._chunk({} if self.order.kind == "chat" else "", self.facts["finish_reason"])
        if not self.order.include_usage:
            return [last | self._close(metrics, usage=False)]
        usage = self._body("chat.completion.chunk", []) | self._close(metrics, usage=True)
        return [last, usage]

    def _chunk(
        self, delta: dict[str, Any] | str, finish_reason: str | None, logprobs: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        name = "delta" if self.order.kind == "chat" else "text"
        choice = {"index": 0, name: delta, "logprobs": logprobs, "finish_reason": finish_reason}
        chunk = self._body("chat.completion.chunk", [choice])
        if self.order.usage_in_every_chunk:
            chunk["usage"] = self._usage()
        elif self.order.include_usage:
            chunk["usage"] = None
        return chunk

    # -- parts ----------------------------------------------------------------------------------------

    def _body(self, kind: str, choices: list[dict[str, Any]]) -> dict[str, Any]:
        return {
            "id": self.id,
            "object": kind if self.order.kind == "chat" else "text_completion",
            "created": self.created,
            "model": self.model,
            "choices": choices,
        }

    def _close(self, metrics: dict[str, Any] | None, *, usage: bool) -> dict[str, Any]:
        parts: dict[str, Any] = {"system_fingerprint": self.facts["fingerprint"]}
        if usage:
            parts["usage"] = self._usage()
        if metrics is not None:
            parts["metrics"] = metrics
        return parts

    def _usage(self) -> dict[str, Any]:
        usage: dict[str, Any] = {
            "prompt_tokens": self.prompt_tokens,
            "completion_tokens": self.completion_tokens,
            "total_tokens": self.prompt_tokens + self.completion_tokens,
        }
        if self.facts:
            usage["prompt_tokens_details"] = {"cached_tokens": self.facts["cached_tokens"]}
        return usage

    def _logprobs(self, tokens: list[dict[str, Any]] | None, at: int) -> dict[str, Any] | None:
        """Log probabilities in the form of the kind: objects for chats, parallel lists for completions."""
        if self.order.top_logprobs is None or not tokens:
            return None
        if self.order.kind == "chat":
            return {"content": tokens, "refusal": None}
        offsets = []
        for token in tokens:
            offsets.append(at)
            at += len(token["token"])
        return {
            "tokens": [token["token"] for token in tokens],
            "token_logprobs": [token["logprob"] for token in tokens],
            "top_logprobs": [
                {top["token"]: top["logprob"] for top in token["top_logprobs"]} for token in tokens
            ],
            "text_offset": offsets,
        }
