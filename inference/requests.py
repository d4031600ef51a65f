"""One generation request as a user writes it: the line of a request file, validated."""

from dataclasses import dataclass, field
from typing import Any, Literal

Phase = Literal["queue", "prefill", "decode"]


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
    seed: int | None = None
    stop: tuple[str, ...] = ()
    ignore_eos: bool = False
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    repetition_penalty: float = 1.0
    arrival_s: float | None = None
    tenant: str = ""
    application: str = ""
    cancel: CancelRule | None = None
    namespace: str = field(default="")  # prefix cache entries are shared only inside a namespace
