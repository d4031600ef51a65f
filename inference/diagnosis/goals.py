"""Business goals and the techniques that serve them (T1–T9), and what stacking a technique risks (T10)."""

from dataclasses import dataclass
from typing import Literal, get_args

Goal = Literal["cost", "latency", "long_context", "stability"]
GOALS: tuple[Goal, ...] = get_args(Goal)

#: goal -> techniques that serve it: cost T7, latency T8, long context T9; stability is room, not speed
SERVED_BY: dict[Goal, tuple[str, ...]] = {
    "cost": ("T1", "T4", "T6"),
    "latency": ("T2", "T4", "T6", "T8"),
    "long_context": ("T1", "T3", "T5", "T9"),
    "stability": ("T3", "T6", "T9"),
}


@dataclass(frozen=True)
class Action:
    """One action: the stage it acts on, its area (D7), its technique (T1–T9), and what it may spoil (T10)."""

    code: str
    stage: str
    area: str  # context, cache, routing, capacity
    technique: str = ""  # empty: no technique is stacked, something is set or measured
    risks: tuple[str, ...] = ()

    def serves(self, goal: Goal | None) -> bool | None:
        """Whether it serves the goal; None without a goal, or where the action is no technique."""
        if goal is None or not self.technique:
            return None
        return self.technique in SERVED_BY[goal]


ACTIONS: dict[str, Action] = {
    action.code: action
    for action in (
        Action("raise_limits_or_slow_down", "queue", "capacity"),
        Action("free_memory_first", "queue", "cache", "T9", ("fragmentation",)),
        Action("page_the_cache", "queue", "cache", "T3", ("fragmentation", "scheduling")),
        Action("quantise_the_cache_or_weights", "queue", "cache", "T1", ("accuracy", "rollback")),
        Action("change_batching", "queue", "capacity", "T4", ("tail", "scheduling")),
        Action("route_load", "queue", "routing", "T6", ("scheduling", "rollback")),
        Action("add_capacity", "queue", "capacity", "T8", ("rollback",)),
        Action("measure_the_device_first", "queue", "capacity"),
        Action("keep_the_model_loaded", "queue", "routing", "T6", ("memory",)),
        Action("shorten_prompt", "prefill", "context"),
        Action("share_prefixes", "prefill", "cache", "T5", ("fragmentation",)),
        Action("prefix_shorter_than_block", "prefill", "cache", "T5", ("scheduling",)),
        Action("smaller_prefill_chunks", "decode", "capacity", "T4", ("tail",)),
        Action("give_decode_more", "decode", "capacity", "T8", ("scheduling",)),
        Action("guess_tokens", "decode", "capacity", "T2", ("scheduling", "memory")),
        Action("quantise_weights", "decode", "capacity", "T1", ("accuracy", "rollback")),
        Action("shorten_answers", "decode", "context"),
        Action("look_at_the_network", "network", "routing"),
        Action("observe_the_server", "unknown", "capacity"),
    )
}
