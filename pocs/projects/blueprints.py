"""Templates of common POCs: which scenarios, readiness points and declarations such a project begins with.

Nothing that a template fills in counts: scenarios are drafts, readiness points are not ready, and a
declaration has no source until a person states it.
"""

from dataclasses import dataclass, field
from typing import Any

from django.utils.translation import gettext_lazy as _

from pocs.common.errors import Text
from pocs.projects.choices import DeclarationKind, ReadinessKind, ScenarioKind
from pocs.projects.scenario_spec import Interruption, ScenarioSpec


@dataclass(frozen=True)
class ScenarioDraft:
    """A scenario as a template proposes it."""

    slug: str
    name: Text
    kind: ScenarioKind
    spec: ScenarioSpec


@dataclass(frozen=True)
class Blueprint:
    """One template: what it is for, and everything it fills in."""

    key: str
    name: Text
    purpose: Text
    goal: Text
    scenarios: tuple[ScenarioDraft, ...]
    readiness: dict[ReadinessKind, Text] = field(default_factory=dict)
    declarations: dict[DeclarationKind, Text] = field(default_factory=dict)


_READINESS: dict[ReadinessKind, Text] = {
    ReadinessKind.PERMISSIONS: _(
        "To show: who may call the service, who may change it, how that is enforced."
    ),
    ReadinessKind.MONITORING: _(
        "To show: first token, time per output token, queue, memory and errors on a board that is watched."
    ),
    ReadinessKind.LOGS: _("To show: one request found in the logs by its id, with tenant and application."),
    ReadinessKind.CAPACITY: _("To show: the load expected in a year, and what the target holds of it."),
    ReadinessKind.ROLLBACK: _("To show: the way back, rehearsed, and how long it took."),
}
_DECLARATIONS: dict[DeclarationKind, Text] = {
    DeclarationKind.REAL_REQUESTS: _(
        "To declare: lengths, concurrency and wording of production requests, sensitive data removed."
    ),
    DeclarationKind.REAL_ROLES: _(
        "To declare: the roles that will use the service, with their own permissions."
    ),
    DeclarationKind.OPERATING_METRICS: _(
        "To declare: the figures by which operations judge the service today, with their values."
    ),
}


def _draft(slug: str, name: Text, kind: ScenarioKind, **spec: Any) -> ScenarioDraft:
    defaults: dict[str, Any] = {"requests": max(24, 3 * spec["concurrency"]), "distinct_prompts": 12}
    return ScenarioDraft(slug, name, kind, ScenarioSpec(**(defaults | spec)))


def _interrupted(*phases: str, **spec: Any) -> ScenarioDraft:
    left = tuple(Interruption(phase=phase, every=4) for phase in phases)
    return _draft(
        "interruption", _("Interrupted requests"), ScenarioKind.INTERRUPTION, interruptions=left, **spec
    )


_SHORT = _draft(
    "short",
    _("Short requests"),
    ScenarioKind.SHORT_REQUEST,
    input_tokens=128,
    output_tokens=64,
    concurrency=4,
)
_LONG_ANSWERS = _draft(
    "long-answers", _("Long answers, streamed"), ScenarioKind.STREAMING, input_tokens=256, output_tokens=512,
    concurrency=4,
)  # fmt: skip
_LONG = _draft(
    "long-context", _("Long context"), ScenarioKind.LONG_CONTEXT, input_tokens=2048, output_tokens=128,
    concurrency=4,
)  # fmt: skip
_PEAK = _draft(
    "peak", _("Peak concurrency"), ScenarioKind.HIGH_CONCURRENCY, input_tokens=256, output_tokens=128,
    concurrency=32,
)  # fmt: skip

BLUEPRINTS: dict[str, Blueprint] = {
    blueprint.key: blueprint
    for blueprint in (
        Blueprint(
            "new_model",
            _("A new model"),
            _("Another model on the same service: answers, phases, memory and the switch back."),
            _("Does the new model serve our scenarios at the load we have, and can we switch back?"),
            (_SHORT, _LONG_ANSWERS, _LONG, _PEAK, _interrupted(
                "decode", input_tokens=256, output_tokens=256, concurrency=8)),
            _READINESS | {ReadinessKind.ROLLBACK: _(
                "To show: the switch to the former model, rehearsed: load time, requests lost, state left."
            )},
            _DECLARATIONS,
        ),
        Blueprint(
            "new_engine",
            _("A new engine or engine version"),
            _("Same model and load on another engine: queueing, batching, caches and faults."),
            _("Does the new engine schedule, batch and release better at our lengths and concurrency?"),
            (
                _SHORT,
                _LONG,
                _draft("shared-prefix", _("Shared prefix"), ScenarioKind.SHORT_REQUEST, input_tokens=1024,
                       output_tokens=64, concurrency=8, shared_prefix_tokens=768),
                _PEAK,
                _interrupted("queue", "prefill", "decode", input_tokens=512, output_tokens=128,
                             concurrency=16),
            ),
            _READINESS | {ReadinessKind.MONITORING: _(
                "To show: the new engine's metrics under the names that boards and alerts use."
            )},
            _DECLARATIONS,
        ),
        Blueprint(
            "new_hardware",
            _("New hardware"),
            _("Same model and engine on other accelerators: capacity, memory split, cost per token."),
            _("Which load does the new hardware hold within our limits, and at what cost?"),
            (
                _draft("one-at-a-time", _("One request at a time"), ScenarioKind.SHORT_REQUEST,
                       input_tokens=512, output_tokens=128, concurrency=1),
                _draft("working-day", _("Load of a working day"), ScenarioKind.HIGH_CONCURRENCY,
                       input_tokens=512, output_tokens=256, concurrency=16),
                _PEAK,
                _LONG,
                _interrupted("decode", input_tokens=512, output_tokens=256, concurrency=16),
            ),
            _READINESS | {ReadinessKind.CAPACITY: _(
                "To show: weights, buffers and KV cache in memory, and the load at which it ends; "
                "a model name of a GPU is no capacity (X3)."
            )},
            _DECLARATIONS,
        ),
        Blueprint(
            "optimisation",
            _("One optimisation"),
            _("One change, such as quantisation or speculative decoding, against a baseline."),
            _("What does this change gain in which phase, and what does it cost in accuracy or stability?"),
            (
                _SHORT,
                _LONG_ANSWERS,
                _draft("shared-prefix", _("Shared prefix"), ScenarioKind.SHORT_REQUEST, input_tokens=1024,
                       output_tokens=64, concurrency=8, shared_prefix_tokens=768),
                _PEAK,
                _interrupted("decode", input_tokens=256, output_tokens=256, concurrency=8),
            ),
            _READINESS | {ReadinessKind.ROLLBACK: _(
                "To show: the change switched off alone, without the others, and the baseline reached again."
            )},
            _DECLARATIONS | {DeclarationKind.REAL_REQUESTS: _(
                "To declare: production requests with judged answers, to see accuracy change (M20)."
            )},
        ),
        Blueprint(
            "long_context",
            _("Long context"),
            _("Contexts of thousands of tokens: prefill, KV cache and what waits behind them."),
            _("Up to which context length does the service stay usable, for long requests and short ones?"),
            (
                _SHORT,
                _draft("context-4k", _("Context of 4,000 tokens"), ScenarioKind.LONG_CONTEXT,
                       input_tokens=4096, output_tokens=128, concurrency=2),
                _draft("context-16k", _("Context of 16,000 tokens"), ScenarioKind.LONG_CONTEXT,
                       input_tokens=16_384, output_tokens=256, concurrency=2),
                _draft("shared-document", _("Questions about one document"), ScenarioKind.LONG_CONTEXT,
                       input_tokens=4096, output_tokens=128, concurrency=8, shared_prefix_tokens=3584),
                _interrupted("prefill", "decode", input_tokens=4096, output_tokens=256, concurrency=4),
            ),
            _READINESS | {ReadinessKind.CAPACITY: _(
                "To show: KV cache per request at the longest context, and how many fit beside each other."
            )},
            _DECLARATIONS,
        ),
    )
}  # fmt: skip
