"""From a scenario's definition to its requests and its load plan."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from inference.errors import InputError
from inference.load.generator import LoadPlan
from inference.requests import CancelRule, GenerationRequest
from inference.workload.prompts import generate_prompts

PHASES = ("queue", "prefill", "decode")


def plan_for(
    spec: Mapping[str, Any],
    tokenize: Callable[[str], Sequence[int] | None] | None = None,
    *,
    fixed_output: bool = True,
) -> tuple[list[GenerationRequest], LoadPlan]:
    """The requests and the plan of one run of a scenario; the same spec gives the same requests.

    `spec` has the fields of the scenario form: `input_tokens` `output_tokens` `concurrency` `requests`
    `rate` `warmup_requests` `distinct_prompts` `shared_prefix_tokens` `language` `prompts` `temperature`
    `seed` `timeout_s` `tenants` `applications` `interruptions` (`limits` are for `summarise`). Lengths are
    tokens of the user's text by `tokenize`, estimated where it is None. With `fixed_output`, answers to
    generated prompts run to `output_tokens` whatever the model would end with; real prompts end freely.
    With a rate the loop is open (Poisson arrivals), else closed with `concurrency` slots.
    Raises InputError naming the field that is wrong.
    """
    n = _whole(spec, "requests", 1)
    output_tokens = _whole(spec, "output_tokens", 1)
    seed = _whole(spec, "seed", 0, default=0)
    real_prompts = [str(prompt) for prompt in spec.get("prompts") or ()]
    if real_prompts:
        texts = [real_prompts[i % len(real_prompts)] for i in range(n)]
    else:
        texts = generate_prompts(
            n,
            _whole(spec, "input_tokens", 1),
            language=str(spec.get("language") or "en"),
            distinct=_whole(spec, "distinct_prompts", 1, default=n),
            shared_prefix_tokens=_whole(spec, "shared_prefix_tokens", 0, default=0),
            seed=seed,
            tokenize=tokenize,
        )
    tenants, applications = list(spec.get("tenants") or ()), list(spec.get("applications") or ())
    interruptions = list(spec.get("interruptions") or ())
    requests = [
        GenerationRequest(
            id=f"r{i + 1:04d}",
            messages=({"role": "user", "content": text},),
            max_tokens=output_tokens,
            temperature=float(spec.get("temperature") or 0.0),
            seed=seed + i if spec.get("temperature") else None,
            ignore_eos=fixed_output and not real_prompts,
            tenant=tenants[i % len(tenants)] if tenants else "",
            application=applications[i % len(applications)] if applications else "",
            cancel=_cancel_rule(interruptions, i),
        )
        for i, text in enumerate(texts)
    ]
    rate = spec.get("rate")
    plan = LoadPlan(
        concurrency=None if rate else _whole(spec, "concurrency", 1),
        rate=float(rate) if rate else None,
        arrival="poisson",
        warmup=_whole(spec, "warmup_requests", 0, default=0),
        timeout_s=float(spec["timeout_s"]) if spec.get("timeout_s") else None,
        seed=seed,
    )
    return requests, plan


def _cancel_rule(interruptions: Sequence[Mapping[str, Any]], index: int) -> CancelRule | None:
    """The interruption due at this request; several take turns, so that none hides another."""
    for position, interruption in enumerate(interruptions):
        every = _whole(interruption, "every", 1, default=4)
        if (index + position) % every == every - 1:
            phase = interruption.get("phase")
            if phase not in PHASES:
                raise InputError(f"interruption phase must be one of {', '.join(PHASES)}, not {phase!r}")
            after_tokens = _whole(interruption, "after_tokens", 0, default=4)
            return CancelRule(phase=phase, after_tokens=after_tokens if phase == "decode" else 0)
    return None


def _whole(spec: Mapping[str, Any], name: str, minimum: int, *, default: int | None = None) -> int:
    value = spec.get(name)
    if value is None:
        value = default
    if not isinstance(value, int) or isinstance(value, bool) or value < minimum:
        raise InputError(f"scenario field {name} must be a whole number of at least {minimum}, not {value!r}")
    return value
