"""From a scenario's definition to its requests and its load plan."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from inference.errors import InputError
from inference.load.generator import LoadPlan
from inference.requests import CancelRule, GenerationRequest
from inference.workload.arrivals import parse_shape
from inference.workload.building import Rules, build_requests
from inference.workload.lengths import draw_lengths, parse_lengths
from inference.workload.prompts import Tokenize, generate_prompts
from inference.workload.reading.stored import from_text

PHASES = ("queue", "prefill", "decode")


def plan_for(
    spec: Mapping[str, Any],
    tokenize: Callable[[str], Sequence[int] | None] | None = None,
    *,
    fixed_output: bool = True,
    context_tokens: int | None = None,
) -> tuple[list[GenerationRequest], LoadPlan]:
    """The requests and the plan of one run of a scenario; the same spec gives the same requests.

    `spec` has the fields of the scenario form: `input_tokens` `output_tokens` `concurrency` `requests`
    `rate` `warmup_requests` `distinct_prompts` `shared_prefix_tokens` `language` `prompts` `temperature`
    `seed` `timeout_s` `tenants` `applications` `interruptions` (`limits` are for `summarise`), and
    optionally `arrival` (a shape of `inference.workload.arrivals`), `input_lengths` and `output_lengths`
    (distributions of `inference.workload.lengths`), `turns` and `think_time_s` of conversations,
    `distinct_prefixes` and `prefix_share`, and `workload_text` with `too_long`: the kept form of a request
    set or trace, which then gives the requests; what of it exceeds `context_tokens` is left out or clipped.
    Lengths are tokens of the user's text by `tokenize`, estimated where it is None. With `fixed_output`,
    answers to generated prompts run to their length whatever the model would end with; real prompts end
    freely. With a rate or an arrival shape the loop is open, else closed with `concurrency` slots.
    Raises InputError naming the field that is wrong.
    """
    facts: dict[str, Any] = {}
    if spec.get("workload_text"):
        requests, facts = _from_workload(spec, tokenize, fixed_output, context_tokens)
    else:
        requests = _made(spec, tokenize, fixed_output)
    tenants, applications = list(spec.get("tenants") or ()), list(spec.get("applications") or ())
    interruptions = list(spec.get("interruptions") or ())
    requests = [
        replace(
            request,
            tenant=request.tenant or (tenants[i % len(tenants)] if tenants else ""),
            application=request.application or (applications[i % len(applications)] if applications else ""),
            cancel=_cancel_rule(interruptions, i),
        )
        for i, request in enumerate(requests)
    ]
    return requests, _load(spec, facts)


def _load(spec: Mapping[str, Any], facts: dict[str, Any]) -> LoadPlan:
    """A rate counts before a shape that has its own times: a search over rates asks for its own."""
    rate, arrival = spec.get("rate"), str(spec.get("arrival") or "")
    self_timed = bool(arrival) and not rate and parse_shape(arrival).self_timed
    if arrival and not rate and not self_timed:
        raise InputError(f"scenario field arrival {arrival!r} needs a rate")
    if rate and (not arrival or parse_shape(arrival).self_timed):
        arrival = "poisson"
    return LoadPlan(
        concurrency=None if rate or self_timed else _whole(spec, "concurrency", 1),
        rate=float(rate) if rate else None,
        arrival=arrival or "poisson",
        warmup=_whole(spec, "warmup_requests", 0, default=0),
        timeout_s=float(spec["timeout_s"]) if spec.get("timeout_s") else None,
        seed=_whole(spec, "seed", 0, default=0),
        workload=facts,
    )


def _from_workload(
    spec: Mapping[str, Any], tokenize: Tokenize | None, fixed_output: bool, context_tokens: int | None
) -> tuple[list[GenerationRequest], dict[str, Any]]:
    temperature = spec.get("temperature")
    rules = Rules(
        n=_whole(spec, "requests", 1),
        output_tokens=_whole(spec, "output_tokens", 1),
        language=str(spec.get("language") or "en"),
        seed=_whole(spec, "seed", 0, default=0),
        temperature=float(temperature) if temperature else None,
        fixed_output=fixed_output,
        context_tokens=context_tokens,
        too_long=str(spec.get("too_long") or "reject"),
    )
    known = tokenize is not None and tokenize("x") is not None
    return build_requests(from_text(spec["workload_text"], "workload"), rules, tokenize if known else None)


def _made(spec: Mapping[str, Any], tokenize: Tokenize | None, fixed_output: bool) -> list[GenerationRequest]:
    """Requests with the given prompts or with generated ones, in conversations of `turns`."""
    n, seed = _whole(spec, "requests", 1), _whole(spec, "seed", 0, default=0)
    turns = _whole(spec, "turns", 1, default=1)
    real_prompts = [str(prompt) for prompt in spec.get("prompts") or ()]
    if real_prompts:
        texts = [real_prompts[i % len(real_prompts)] for i in range(n)]
    else:
        texts = _texts(spec, n, turns, tokenize)
    answers = _drawn(spec, "output", n)
    return [
        GenerationRequest(
            id=f"r{i + 1:04d}",
            messages=({"role": "user", "content": text},),
            max_tokens=answers[i],
            temperature=float(spec.get("temperature") or 0.0),
            seed=seed + i if spec.get("temperature") else None,
            ignore_eos=fixed_output and not real_prompts,
            follows=f"r{i:04d}" if i % turns else None,
            think_s=float(spec.get("think_time_s") or 0.0) if i % turns else 0.0,
        )
        for i, text in enumerate(texts)
    ]


def _texts(spec: Mapping[str, Any], n: int, turns: int, tokenize: Tokenize | None) -> list[str]:
    """Generated prompts: a shared prefix stands before first turns only, since later ones carry it."""
    lengths = _drawn(spec, "input", n)
    options: dict[str, Any] = {
        "language": str(spec.get("language") or "en"),
        "distinct": _whole(spec, "distinct_prompts", 1, default=n),
        "seed": _whole(spec, "seed", 0, default=0),
        "tokenize": tokenize,
    }
    share = spec.get("prefix_share")
    firsts = generate_prompts(
        len(range(0, n, turns)),
        lengths[::turns],
        shared_prefix_tokens=_whole(spec, "shared_prefix_tokens", 0, default=0),
        prefixes=_whole(spec, "distinct_prefixes", 1, default=1),
        prefix_share=1.0 if share is None else float(share),
        **options,
    )
    if turns == 1:
        return firsts
    followed = [i for i in range(n) if i % turns]
    later = iter(generate_prompts(len(followed), [lengths[i] for i in followed], **options))
    return [next(later) if i % turns else firsts[i // turns] for i in range(n)]


def _drawn(spec: Mapping[str, Any], which: str, n: int) -> list[int]:
    """Lengths of prompts (`input`) or answers (`output`): drawn, or all as the plain field says."""
    stated = spec.get(f"{which}_lengths")
    if not stated:
        return [_whole(spec, f"{which}_tokens", 1)] * n
    lengths = parse_lengths(str(stated))
    lowest = _whole(spec, "shared_prefix_tokens", 0, default=0) + 1 if which == "input" else 1
    lengths = replace(lengths, lowest=max(lengths.lowest, lowest))
    seed = _whole(spec, "seed", 0, default=0)
    return draw_lengths(n, lengths, seed=seed * 2 + (which == "output"))


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
