"""Which action fits what was found and what the business wants (D6, D7, T1–T9), and what it risks (T10).

Capacity is advised only where the device was seen to be busy and memory was not what was short (X7):
without that evidence the advice is to measure it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from inference.diagnosis.confidence import Confidence
from inference.diagnosis.goals import ACTIONS, Goal
from inference.diagnosis.judgement import NOTABLE_SHARE
from inference.diagnosis.resources import Resources
from inference.diagnosis.shares import TimeSplit

#: with fewer requests than this in the batch there is room to compute guesses
ROOM_TO_GUESS = 4.0
#: below this share of prompt tokens from the cache, sharing prefixes is worth a word
LOW_HIT_RATE = 0.5
#: share of slots in held blocks without a token from which blocks are called wasted
FRAGMENTED = 0.2


@dataclass(frozen=True, kw_only=True)
class Setting:
    """What figures cannot say: what is wanted, and how much of their beginning the prompts share."""

    goal: Goal | None = None
    shared_prefix_tokens: int | None = None
    block_tokens: int | None = None


@dataclass(frozen=True, kw_only=True)
class Situation:
    """Everything that advice rests on."""

    where: str
    split: TimeSplit
    summary: Mapping[str, Any]
    resources: Resources
    setting: Setting
    codes: frozenset[str]  # of the findings
    confidence: Confidence

    def in_stage(self, stage: str, part: str) -> bool:
        return self.where in (stage, "mixed") and self.split.share(part) >= NOTABLE_SHARE


def advise(at: Situation) -> list[dict[str, Any]]:
    """The actions that fit, those that serve the goal first; each with area, technique, risks and figures."""
    found = [
        *_throttling(at),
        *_memory(at),
        *_queue(at),
        *_prefill(at),
        *_decode(at),
        *_elsewhere(at),
    ]
    advice = [_as_json(code, figures, at) for code, figures in found]
    order = {True: 0, None: 1, False: 2}
    urgent = ("raise_limits_or_slow_down", "free_memory_first")
    return sorted(advice, key=lambda item: (item["code"] not in urgent, order[item["serves_goal"]]))


Found = list[tuple[str, dict[str, Any]]]


def _throttling(at: Situation) -> Found:
    refused = (at.summary.get("requests") or {}).get("rate_limited")
    return [("raise_limits_or_slow_down", {"n": refused})] if refused else []


def _memory(at: Situation) -> Found:
    """Short memory first: a larger batch would only queue more."""
    if not at.resources.memory_short:
        return []
    figures = {"kv_usage_peak": at.resources.kv_usage_peak, "preemptions": at.resources.preemptions}
    found: Found = [("free_memory_first", figures)]
    fragmentation = at.resources.kv_fragmentation_peak
    if fragmentation is not None and fragmentation >= FRAGMENTED:
        found.append(("page_the_cache", {"kv_fragmentation_peak": fragmentation}))
    found.append(("quantise_the_cache_or_weights", figures))
    return found


def _queue(at: Situation) -> Found:
    if not at.in_stage("queue", "queue_wait"):
        return []
    share = {"queue_share": at.split.shares["queue_wait"]}
    loading = at.split.of("model_load", "queue_wait")
    if loading is not None and loading >= NOTABLE_SHARE:
        return [("keep_the_model_loaded", {"load_share": loading})]
    found: Found = []
    if not at.resources.memory_short and at.resources.device_busy is not True:
        found.append(("change_batching", share | {"running_peak": at.resources.running_peak}))
    found.append(("route_load", share))
    if at.resources.device_busy and not at.resources.memory_short:
        utilisation = {"utilisation": at.resources.device_utilisation}
        found.append(("add_capacity", share | utilisation | {"waiting_peak": at.resources.waiting_peak}))
    elif at.resources.device_busy is None:
        found.append(("measure_the_device_first", share))
    return found


def _prefill(at: Situation) -> Found:
    if not at.in_stage("prefill", "prefill"):
        return []
    found: Found = [("shorten_prompt", {"prefill_share": at.split.shares["prefill"]})]
    hit_rate = at.resources.cache_hit_rate
    if hit_rate is not None and hit_rate < LOW_HIT_RATE and "prefix_shorter_than_block" not in at.codes:
        found.append(("share_prefixes", {"cache_hit_rate": hit_rate}))
    return found + _prefix(at)


def _prefix(at: Situation) -> Found:
    """Blocks are cached whole: a shared beginning shorter than one can never be found (case 10)."""
    if "prefix_shorter_than_block" not in at.codes:
        return []
    return [
        (
            "prefix_shorter_than_block",
            {
                "shared_prefix_tokens": at.setting.shared_prefix_tokens,
                "block_tokens": at.resources.block_tokens,
            },
        )
    ]


def _decode(at: Situation) -> Found:
    if not at.in_stage("decode", "decode"):
        return []
    share = {"decode_share": at.split.shares["decode"]}
    found: Found = []
    stall = at.split.of("decode_stall", "decode")
    if stall is not None and stall >= NOTABLE_SHARE:
        found.append(("smaller_prefill_chunks", {"stall_share": stall}))
    if "decode_with_output_length" in at.codes:
        output = (at.summary.get("output_tokens_per_request") or {}).get("p50")
        found.append(("shorten_answers", share | {"output_tokens_p50": output}))
    running = at.resources.running_mean
    if running is not None and running <= ROOM_TO_GUESS and at.resources.device_busy is not True:
        found.append(("guess_tokens", {"running_mean": running}))
    found.append(("quantise_weights", share))
    found.append(("give_decode_more", share | {"utilisation": at.resources.device_utilisation}))
    return found


def _elsewhere(at: Situation) -> Found:
    found: Found = []
    if at.split.share("network") >= NOTABLE_SHARE:
        found.append(("look_at_the_network", {"network_share": at.split.shares["network"]}))
    if not at.in_stage("prefill", "prefill"):
        found += _prefix(at)
    # a server can tell nothing of what did not succeed
    if at.where == "unknown" and at.summary.get("succeeded"):
        found.append(("observe_the_server", {}))
    return found


def _as_json(code: str, figures: dict[str, Any], at: Situation) -> dict[str, Any]:
    action = ACTIONS[code]
    return {
        "code": code,
        "stage": action.stage,
        "area": action.area,
        "technique": action.technique,
        "risks": list(action.risks),
        "serves_goal": action.serves(at.setting.goal),
        "confidence": at.confidence.of_action(measures=not action.technique),
        "settle": "one_change_against_baseline" if action.technique else "",
        "figures": figures,
    }
