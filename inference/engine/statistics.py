"""Counters of the steps; read by telemetry from another thread, each value by itself."""

from inference.engine.scheduler import KINDS, Step


class Statistics:
    """What the steps of one engine add up to since it began."""

    def __init__(self) -> None:
        self.aborted = 0
        self.steps = dict.fromkeys(KINDS, 0)
        self.tokens = dict.fromkeys(KINDS, 0)  # computed, drafts included
        self.busy_ns = dict.fromkeys(KINDS, 0)
        self.device_ns = dict.fromkeys(KINDS, 0)  # of the busy time, what the device says it took (on a GPU)
        self.mixed_tokens = {"prefill": 0, "decode": 0}  # computed in mixed steps
        self.drafted = 0  # tokens that were guessed
        self.accepted = 0  # of these, right ones
        self.current: Step | None = None
        self.running_since_ns: int | None = None

    def started(self, step: Step, start_ns: int) -> None:
        self.current, self.running_since_ns = step, start_ns

    def computed(self, step: Step, device_ns: int | None) -> None:
        """A step was computed; called before its sequences move on."""
        self.device_ns[step.kind] += device_ns or 0
        if step.kind == "mixed":
            (_, prefill), (_, decode) = step.composition
            self.mixed_tokens["prefill"] += prefill
            self.mixed_tokens["decode"] += decode

    def ended(self, step: Step, took_ns: int) -> None:
        self.current = self.running_since_ns = None
        self.steps[step.kind] += 1
        self.tokens[step.kind] += step.tokens
        self.busy_ns[step.kind] += took_ns
