"""From a workload as it was read to the requests that are sent, and what became of its rows."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from inference.errors import InputError
from inference.requests import GenerationRequest
from inference.workload.blocks import BlockTexts
from inference.workload.prompts import Tokenize, counter, longest_start
from inference.workload.reading import Item, Workload
from inference.workload.requests_file import parse_request

TOO_LONG = ("reject", "clip")
TEMPLATE_TOKENS = 64  # kept free for what a chat template adds
DEFAULT_OUTPUT_TOKENS = 128


@dataclass(kw_only=True)
class Rules:
    """How requests are made: lengths are tokens.

    `n` requests, all of the file where it is None; a file with fewer is gone through again, later rounds
    after the end of the one before. `output_tokens` is the most an item without a length of its own may
    answer. With `fixed_output` answers to built prompts run to the length of the trace. What does not
    fit `context_tokens` is left out or clipped, as `too_long` says.
    """

    n: int | None = None
    output_tokens: int = DEFAULT_OUTPUT_TOKENS
    language: str = "en"
    seed: int = 0
    temperature: float | None = None
    fixed_output: bool = True
    context_tokens: int | None = None
    too_long: str = "reject"


@dataclass
class _Build:
    workload: Workload
    rules: Rules
    tokenize: Tokenize | None
    used: dict[str, int] = field(default_factory=dict)  # tokens of each conversation so far, by its last turn
    left_out: int = 0
    clipped: int = 0

    def __post_init__(self) -> None:
        self.texts = BlockTexts(self.rules.language, seed=self.rules.seed, tokenize=self.tokenize)
        self.count: Callable[[str], int] = counter(self.tokenize)
        self.dropped: set[str] = set()

    def request(self, item: Item, round_number: int, shift_s: float) -> GenerationRequest | None:
        """The request of an item in this round; None where it does not fit, or what it follows did not."""
        suffix = f"~{round_number + 1}" if round_number else ""
        identity = item.id + suffix
        follows = item.follows + suffix if item.follows is not None else None
        if follows in self.dropped:
            self.left_out += 1
            self.dropped.add(identity)
            return None
        made = self._built(item) if not item.request else self._taken(item)
        fitting = self._fit(made, item, follows)
        if fitting is None:
            self.left_out += 1
            self.dropped.add(identity)
            return None
        arrival_s = None if item.arrival_s is None else item.arrival_s + shift_s
        self.used[identity] = (
            self.used.get(follows or "", 0) + self._asked(fitting, item) + fitting.max_tokens
        )
        return replace(fitting, id=identity, follows=follows, think_s=item.think_s, arrival_s=arrival_s)

    def _built(self, item: Item) -> GenerationRequest:
        tokens, output_tokens = item.input_tokens or 1, item.output_tokens or self.rules.output_tokens
        context = self.rules.context_tokens
        if context and self.rules.too_long == "clip" and not item.follows:
            room = context - TEMPLATE_TOKENS
            if tokens + output_tokens > room:
                output_tokens = min(output_tokens, max(1, room // 2))
                tokens = max(1, room - output_tokens)
                self.clipped += 1
        elif context and tokens + output_tokens > context:
            tokens = 1  # it will be left out: do not spend time on its text
        ids = item.hash_ids
        if ids and self.workload.block_tokens:
            ids = ids[: -(-tokens // self.workload.block_tokens)]
        text = self.texts.prompt(tokens, ids, block_tokens=self.workload.block_tokens, own=item.id)
        return GenerationRequest(
            id=item.id,
            messages=({"role": "user", "content": text},),
            max_tokens=output_tokens,
            ignore_eos=self.rules.fixed_output,
        )

    def _taken(self, item: Item) -> GenerationRequest:
        row: dict[str, Any] = {"id": item.id, **item.request}
        row.setdefault("max_tokens", item.output_tokens or self.rules.output_tokens)
        if self.rules.temperature is not None:
            row.setdefault("temperature", self.rules.temperature)
        return parse_request(row, where=f"line {item.line}")

    def _fit(self, request: GenerationRequest, item: Item, follows: str | None) -> GenerationRequest | None:
        """The request if it fits the context with what was said before, clipped if that is wanted."""
        context = self.rules.context_tokens
        if context is None:
            return request
        before = self.used.get(follows or "", 0)
        asked = self._asked(request, item)
        if before + asked + request.max_tokens + TEMPLATE_TOKENS <= context:
            return request
        if not item.request:
            fits = before + (item.input_tokens or 0) + request.max_tokens <= context
            clipped = self.rules.too_long == "clip" and not follows
            return request if fits or clipped else None
        if self.rules.too_long != "clip" or before:
            return None
        clipped_request = self._clip(request, asked, context)
        self.clipped += clipped_request is not None
        return clipped_request

    def _clip(self, request: GenerationRequest, asked: int, context: int) -> GenerationRequest | None:
        """The last text shortened; None where even that does not help."""
        max_tokens = min(request.max_tokens, context // 2)
        spare = asked - (context - max_tokens - TEMPLATE_TOKENS)
        if spare <= 0:
            return replace(request, max_tokens=max_tokens)
        if request.prompt_token_ids is not None:
            return replace(request, prompt_token_ids=request.prompt_token_ids[:-spare], max_tokens=max_tokens)
        text = (
            request.prompt if request.prompt is not None else (request.messages or ({},))[-1].get("content")
        )
        if not isinstance(text, str) or (wanted := self.count(text) - spare) < 1:
            return None
        text = text[: longest_start(text, wanted, self.count)]
        if request.prompt is not None:
            return replace(request, prompt=text, max_tokens=max_tokens)
        messages = request.messages or ()
        last = {**messages[-1], "content": text}
        return replace(request, messages=(*messages[:-1], last), max_tokens=max_tokens)

    def _asked(self, request: GenerationRequest, item: Item) -> int:
        if not item.request:
            return item.input_tokens or 0
        if request.prompt_token_ids is not None:
            return len(request.prompt_token_ids)
        return sum(self.count(text) for text in texts_of(item.request))


def texts_of(request: Mapping[str, Any]) -> list[str]:
    """The texts in a request's messages or prompt, in their order."""
    texts = [request["prompt"]] if isinstance(request.get("prompt"), str) else []
    for message in request.get("messages") or ():
        content = message.get("content")
        parts = content if isinstance(content, list) else [{"text": content}]
        texts += [
            part["text"] for part in parts if isinstance(part, dict) and isinstance(part.get("text"), str)
        ]
    return texts


def build_requests(
    workload: Workload, rules: Rules, tokenize: Tokenize | None = None
) -> tuple[list[GenerationRequest], dict[str, Any]]:
    """The requests of a workload in its order, and the facts for the run's summary.

    Facts: `format` `rows` `skipped` `redactions` `requests` `rounds` `too_long` (`left_out`, `clipped`).
    Raises InputError where nothing is left to send.
    """
    if rules.too_long not in TOO_LONG:
        raise InputError(f"too long requests are one of {', '.join(TOO_LONG)}, not {rules.too_long!r}")
    build = _Build(workload, rules, tokenize)
    items = workload.items
    n = rules.n or len(items)
    span_s = _span_s(items)
    requests = []
    for i in range(n):
        made = build.request(items[i % len(items)], i // len(items), (i // len(items)) * span_s)
        if made is not None:
            requests.append(made)
    if not requests:
        raise InputError(f"no request of the workload fits the context of {rules.context_tokens} tokens")
    facts = {
        "format": workload.format,
        "rows": len(items),
        "skipped": len(workload.skipped),
        "redactions": dict(workload.redactions),
        "requests": len(requests),
        "rounds": -(-n // len(items)),
        "too_long": {"left_out": build.left_out, "clipped": build.clipped},
    }
    return requests, facts


def _span_s(items: Sequence[Item]) -> float:
    """How long one round of the trace lasts, with a mean gap after it."""
    times = [item.arrival_s for item in items if item.arrival_s is not None]
    return max(times) * len(times) / (len(times) - 1) if len(times) > 1 else 0.0
