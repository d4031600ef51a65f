"""One generation request as a user writes it: the line of a request file, validated."""

from dataclasses import dataclass, field
from typing import Any, Literal, get_args

Phase = Literal["queue", "prefill", "decode"]
Priority = Literal["measured", "live"]

#: who goes first where both wait
PRIORITIES: tuple[Priority, ...] = get_args(Priority)
MAX_LOGPROBS = 20  # alternatives for each token, as in the OpenAI API


@dataclass(frozen=True, kw_only=True)
class CancelRule:
    """Leave on purpose: in this phase, in decode after `after_tokens` output tokens."""

    phase: Phase
    after_tokens: int = 0


@dataclass(frozen=True, kw_only=True)
class GenerationRequest:
    """What is asked of a target; exactly one of messages, prompt and prompt_token_ids is set.

    Lengths are tokens, `arrival_s` seconds since the start of the load.
    """

    id: str
    messages: tuple[dict[str, Any], ...] | None = None
    prompt: str | None = None
    prompt_token_ids: tuple[int, ...] | None = None
    max_tokens: int = 128
    min_tokens: int = 0
    temperature: float = 0.0
    top_p: float = 1.0
    top_k: int = 0  # 0: all
    min_p: float = 0.0  # of the most probable token's probability
    seed: int | None = None
    stop: tuple[str, ...] = ()
    stop_token_ids: tuple[int, ...] = ()
    ignore_eos: bool = False
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    repetition_penalty: float = 1.0
    logprobs: int | None = None  # log probabilities of each token and of so many alternatives; None: none
    priority: Priority = "measured"  # inside one engine
    arrival_s: float | None = None
    tenant: str = ""
    application: str = ""
    cancel: CancelRule | None = None
    follows: str | None = None  # id of the turn before: sent after its answer, with the conversation so far
    think_s: float = 0.0  # and so many seconds after it
    namespace: str = field(default="")  # prefix cache entries are shared only inside a namespace
