"""The body of a request for an answer, checked as the OpenAI API does, and what is made of it."""

from dataclasses import dataclass, field
from typing import Any, Literal

from pocs.serving.body import Body, wrong
from pocs.serving.messages import checked_messages

Kind = Literal["chat", "text"]

STOPS_MAX = 4
TOP_LOGPROBS_MAX = 20
TEXT_LOGPROBS_MAX = 5

#: what says nothing about the answer: accepted and left aside
IGNORED = (
    "user",
    "metadata",
    "service_tier",
    "safety_identifier",
    "prompt_cache_key",
    "prompt_cache_retention",
    "prediction",
    "parallel_tool_calls",
)
#: what would change the answer and cannot be done here: (values that ask for nothing, why it is refused)
REFUSED: dict[str, tuple[tuple[Any, ...], str]] = {
    "tools": (([],), "The engine calls no tools."),
    "tool_choice": (("none", "auto"), "The engine calls no tools."),
    "functions": (([],), "The engine calls no functions."),
    "function_call": (("none", "auto"), "The engine calls no functions."),
    "response_format": (({"type": "text"},), "The engine cannot hold an answer to a format."),
    "modalities": ((["text"],), "The engine answers in text only."),
    "audio": ((), "The engine answers in text only."),
    "reasoning_effort": (("none",), "The engine has no reasoning effort to choose."),
    "verbosity": (("medium",), "The engine has no verbosity to choose."),
    "web_search_options": ((), "The engine searches nothing."),
    "logit_bias": (({},), "The engine takes no logit bias."),
    "store": ((False,), "Prompts and answers are never stored here."),
    "echo": ((False,), "The engine does not repeat the prompt."),
    "suffix": (("",), "The engine cannot fill a gap before a suffix."),
    "best_of": ((1,), "One request gets one answer here."),
    "use_beam_search": ((False,), "The engine does not search in beams."),
    "prompt_logprobs": ((), "The engine gives no log probabilities of the prompt."),
}


@dataclass(frozen=True, kw_only=True)
class Order:
    """One checked request: `fields` are those of a GenerationRequest; without `max_tokens`, what fits."""

    kind: Kind
    model: str
    fields: dict[str, Any] = field(repr=False)  # holds the prompt, which no log may show
    stream: bool = False
    include_usage: bool = False
    usage_in_every_chunk: bool = False
    metrics: bool = False
    top_logprobs: int | None = None  # None: no log probabilities at all


def parse(kind: Kind, raw: Any) -> Order:
    """The order of a decoded JSON body; raises ApiError (400) that names the parameter."""
    if not isinstance(raw, dict):
        raise wrong(None, "The request body must be a JSON object.", "invalid_type")
    body = Body(raw)
    model = body.text("model", required=True)
    fields = _prompt(kind, body) | _sampling(body)
    max_tokens = _max_tokens(kind, body)
    if max_tokens is not None:
        fields["max_tokens"] = max_tokens
        if fields["min_tokens"] > max_tokens:
            raise wrong("min_tokens", "'min_tokens' is larger than the tokens asked for.", "invalid_value")
    if body.whole("n", low=1) not in (None, 1):
        raise wrong("n", "Only n=1 is possible: one request gets one answer here.", "unsupported_value")
    stream = body.flag("stream")
    include_usage, every_chunk = _stream_options(body, stream=stream)
    top_logprobs = _logprobs(kind, body)
    if top_logprobs is not None:
        fields["logprobs"] = top_logprobs
    order = Order(
        kind=kind,
        model=model or "",
        fields=fields,
        stream=stream,
        include_usage=include_usage,
        usage_in_every_chunk=every_chunk,
        metrics=body.flag("metrics"),
        top_logprobs=top_logprobs,
    )
    for name in IGNORED:
        body.take(name)
    for name, (neutral, why) in REFUSED.items():
        body.refuse(name, neutral, why)
    body.end()
    return order


def _prompt(kind: Kind, body: Body) -> dict[str, Any]:
    if kind == "chat":
        return {"messages": checked_messages(body.take("messages"))}
    prompt = body.take("prompt")
    if prompt is None:
        raise wrong("prompt", "Missing required parameter: 'prompt'.", "missing_required_parameter")
    if isinstance(prompt, list) and len(prompt) == 1 and isinstance(prompt[0], str | list):
        prompt = prompt[0]
    if isinstance(prompt, str):
        return {"prompt": body.checked_text("prompt", prompt)}
    if isinstance(prompt, list) and prompt and all(type(token) is int for token in prompt):
        if not all(0 <= token < 2**31 for token in prompt):
            raise wrong("prompt", "A token id of 'prompt' is out of range.", "invalid_value")
        return {"prompt_token_ids": prompt}
    raise wrong(
        "prompt",
        "'prompt' must be one string, or one list of token ids: one request, one answer.",
        "invalid_type",
    )


def _max_tokens(kind: Kind, body: Body) -> int | None:
    """Output tokens asked for; a completion without the field gets 16, as the OpenAI API does."""
    old = body.whole("max_tokens", low=1)
    new = body.whole("max_completion_tokens", low=1) if kind == "chat" else None
    if old is not None and new is not None and old != new:
        text = "'max_tokens' and 'max_completion_tokens' say different things: send one of them."
        raise wrong("max_tokens", text, "invalid_value")
    asked = new if new is not None else old
    return 16 if asked is None and kind == "text" else asked


def _sampling(body: Body) -> dict[str, Any]:
    top_k = body.whole("top_k", low=-1)
    found: dict[str, Any] = {
        "temperature": body.number("temperature", 0.0, 2.0, default=1.0),
        "top_p": body.number("top_p", 0.0, 1.0, default=1.0),
        "top_k": max(0, top_k or 0),
        "min_p": body.number("min_p", 0.0, 1.0, default=0.0),
        "presence_penalty": body.number("presence_penalty", -2.0, 2.0, default=0.0),
        "frequency_penalty": body.number("frequency_penalty", -2.0, 2.0, default=0.0),
        "repetition_penalty": body.number("repetition_penalty", 0.01, 100.0, default=1.0),
        "min_tokens": body.whole("min_tokens", low=0) or 0,
        "ignore_eos": body.flag("ignore_eos"),
        "seed": body.whole("seed", low=-(2**63)),
        "stop": _stop(body),
    }
    if found["top_p"] == 0.0:  # the most probable token alone
        found |= {"top_p": 1.0, "top_k": 1}
    return found


def _stop(body: Body) -> list[str]:
    stop = body.take("stop")
    if stop is None:
        return []
    stops = [stop] if isinstance(stop, str) else stop
    if not isinstance(stops, list) or not all(isinstance(text, str) for text in stops):
        raise wrong("stop", "'stop' must be a string or a list of strings.", "invalid_type")
    if len(stops) > STOPS_MAX:
        text = f"Invalid 'stop': at most {STOPS_MAX} strings, but got {len(stops)}."
        raise wrong("stop", text, "array_above_max_length")
    if not all(stops):
        raise wrong("stop", "Invalid 'stop': a stop string is empty.", "invalid_value")
    return [body.checked_text("stop", text) for text in stops]


def _logprobs(kind: Kind, body: Body) -> int | None:
    """How many alternatives a token's log probabilities name; None where none are asked for."""
    if kind == "text":
        return body.whole("logprobs", low=0, high=TEXT_LOGPROBS_MAX)
    wanted = body.flag("logprobs")
    top = body.whole("top_logprobs", low=0, high=TOP_LOGPROBS_MAX)
    if top is not None and not wanted:
        raise wrong("top_logprobs", "'top_logprobs' needs 'logprobs' to be true.", "invalid_value")
    return (top or 0) if wanted else None


def _stream_options(body: Body, *, stream: bool) -> tuple[bool, bool]:
    options = body.take("stream_options")
    if options is None:
        return False, False
    if not isinstance(options, dict):
        raise wrong("stream_options", "'stream_options' must be an object.", "invalid_type")
    if not stream:
        text = "'stream_options' is only allowed when 'stream' is true."
        raise wrong("stream_options", text, "invalid_value")
    inner = Body(options, "stream_options.")
    include, every = inner.flag("include_usage"), inner.flag("continuous_usage_stats")
    inner.take("include_obfuscation")
    inner.end()
    return include, every
