"""The smallest set of scenarios that lets the matrix satisfy G3, given those that are there.

What G3 asks for (two lengths each way, two concurrency levels, an interruption, several prompts) fits into
one scenario beside any other: so nothing, one or two are missing, never more.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext_lazy as _

from pocs.common.errors import Text
from pocs.projects.blueprints import ScenarioDraft
from pocs.projects.choices import ScenarioKind, ScenarioState
from pocs.projects.models import Project, ScenarioVersion
from pocs.projects.scenario_spec import Interruption, Limit, ScenarioSpec

#: what a second level is of the first; G3 asks for another value, people learn from a distance
FACTORS = {"input_tokens": 4, "output_tokens": 2, "concurrency": 4}
LEVEL_CODES = {"input_tokens": "S8", "output_tokens": "S9", "concurrency": "S10"}
MOST = {"input_tokens": 16_384, "output_tokens": 1_024, "concurrency": 64}
_LEFT = (Interruption(phase="decode"), Interruption(phase="prefill"), Interruption(phase="queue"))


@dataclass(frozen=True)
class Proposal:
    """A scenario that is missing, and the codes of the checklist that it brings."""

    draft: ScenarioDraft
    brings: tuple[str, ...]


@dataclass(frozen=True)
class MatrixPlan:
    """`needed` satisfies G3 once it is run; `kinds` has one scenario for each kind not yet planned."""

    needed: tuple[Proposal, ...]
    kinds: tuple[Proposal, ...]

    @property
    def proposals(self) -> tuple[Proposal, ...]:
        return self.needed + self.kinds


def plan_of(project: Project) -> MatrixPlan:
    """What the project's scenarios lack: the newest version of each that is not retired counts. One query."""
    newest: dict[int, ScenarioVersion] = {}
    versions = ScenarioVersion.objects.filter(scenario__project=project).select_related("scenario")
    for version in versions.exclude(state=ScenarioState.RETIRED).order_by("scenario_id", "-number"):
        newest.setdefault(version.scenario_id, version)
    taken = {version.scenario.slug for version in newest.values()}
    taken |= set(project.scenarios.values_list("slug", flat=True))
    specs = [version.spec for version in newest.values()]
    needed = [_named(one, taken) for one in needed_for_g3(specs)]
    planned = {version.scenario.kind for version in newest.values()} | {one.draft.kind for one in needed}
    kinds = [_named(one, taken) for one in one_of_each(set(ScenarioKind) - planned)]
    return MatrixPlan(tuple(needed), tuple(kinds))


def lacking(specs: Sequence[Mapping[str, Any]]) -> list[str]:
    """Codes of what G3 would miss if each of these scenarios had been run."""
    codes = [
        code
        for name, code in LEVEL_CODES.items()
        if len({spec.get(name) for spec in specs if spec.get(name)}) < 2
    ]
    if not any(spec.get("interruptions") for spec in specs):
        codes.append("S11")
    if max((_prompts(spec) for spec in specs), default=0) < 2:
        codes.append("X6")
    return codes


def needed_for_g3(specs: Sequence[Mapping[str, Any]]) -> list[Proposal]:
    """Nothing where nothing is lacking, two scenarios where there are none, else one that brings it all."""
    codes = lacking(specs)
    if not codes:
        return []
    if specs:
        return [_one_for(codes, specs)]
    first = _draft("short", _("Short requests"), ScenarioKind.SHORT_REQUEST, (128, 64, 2))
    return [Proposal(first, ("S1",)), _one_for(lacking([first.spec.as_json()]), [first.spec.as_json()])]


def _one_for(codes: Sequence[str], specs: Sequence[Mapping[str, Any]]) -> Proposal:
    """One scenario with another level wherever only one is there, left on purpose where nothing is."""
    levels = {
        name: _another(name, specs) if code in codes else min(spec[name] for spec in specs if spec.get(name))
        for name, code in LEVEL_CODES.items()
    }
    kind, name, slug = _kind_for(codes)
    more: dict[str, Any] = {"interruptions": _LEFT} if "S11" in codes else {}
    draft = _draft(
        slug, name, kind, (levels["input_tokens"], levels["output_tokens"], levels["concurrency"]), **more
    )
    return Proposal(draft, tuple(codes))


def _kind_for(codes: Sequence[str]) -> tuple[ScenarioKind, Text, str]:
    if "S11" in codes:
        return ScenarioKind.INTERRUPTION, _("Interrupted requests"), "interruption"
    if "S8" in codes:
        return ScenarioKind.LONG_CONTEXT, _("Long context"), "long-context"
    if "S9" in codes:
        return ScenarioKind.LONG_ANSWER, _("Long answers"), "long-answers"
    if "S10" in codes:
        return ScenarioKind.HIGH_CONCURRENCY, _("Peak concurrency"), "peak"
    return ScenarioKind.SHORT_REQUEST, _("Several prompts"), "several-prompts"


def _another(name: str, specs: Sequence[Mapping[str, Any]]) -> int:
    """A level that is not there yet: a multiple, or a part where the multiple would be out of reach."""
    there = {int(spec[name]) for spec in specs if spec.get(name)}
    level = max(there, default=1)
    higher = level * FACTORS[name]
    return higher if higher <= MOST[name] else max(1, level // FACTORS[name])


def one_of_each(kinds: Iterable[ScenarioKind]) -> list[Proposal]:
    """A modest scenario for each of these kinds, in the order of the checklist."""
    wanted = set(kinds)
    limit = (Limit(metric="ttft_ms", percentile="p95", max=2000.0),)
    drafts = [
        _draft("short", _("Short requests"), ScenarioKind.SHORT_REQUEST, (128, 64, 2)),
        _draft("long-context", _("Long context"), ScenarioKind.LONG_CONTEXT, (2048, 128, 2)),
        _draft("peak", _("Peak concurrency"), ScenarioKind.HIGH_CONCURRENCY, (256, 64, 32)),
        _draft("streaming", _("Streamed answers"), ScenarioKind.STREAMING, (256, 256, 4)),
        _draft("interruption", _("Interrupted requests"), ScenarioKind.INTERRUPTION, (512, 128, 8),
               interruptions=_LEFT),
        _draft("model-switch", _("Model switch and back"), ScenarioKind.MODEL_SWITCH, (128, 32, 2)),
        _draft("reclaim", _("Load and rest"), ScenarioKind.RESOURCE_RECLAIM, (256, 64, 8)),
        _draft("long-answers", _("Long answers"), ScenarioKind.LONG_ANSWER, (128, 512, 4)),
        _draft("production-mix", _("Production mix"), ScenarioKind.PRODUCTION_REPLAY, (256, 64, 8),
               options={"classes": "chat 70% 200 100\nsummary 20% 1500 150\nreport 10% 400 400"}),
        _draft("capacity", _("Capacity"), ScenarioKind.CAPACITY_SEARCH, (256, 64, 8), limits=limit),
        _draft("soak", _("Half an hour of even load"), ScenarioKind.SOAK, (256, 64, 4)),
        _draft("throttling", _("Throttling"), ScenarioKind.THROTTLING, (128, 32, 8)),
    ]  # fmt: skip
    return [Proposal(draft, _codes(draft.kind)) for draft in drafts if draft.kind in wanted]


def _codes(kind: ScenarioKind) -> tuple[str, ...]:
    label = str(kind.label)
    return (label[label.rindex("(") + 1 : -1],)


def _draft(
    slug: str, name: Text, kind: ScenarioKind, sizes: tuple[int, int, int], **more: Any
) -> ScenarioDraft:
    """`sizes`: input tokens, output tokens, concurrency."""
    input_tokens, output_tokens, concurrency = sizes
    spec = ScenarioSpec(
        input_tokens=input_tokens,
        output_tokens=output_tokens,
        concurrency=concurrency,
        requests=max(24, 3 * concurrency),
        distinct_prompts=12,
        **more,
    )
    return ScenarioDraft(slug, name, kind, spec)


def _named(proposal: Proposal, taken: set[str]) -> Proposal:
    """The proposal under a short name that no scenario of the project has."""
    draft, slug, number = proposal.draft, proposal.draft.slug, 2
    while slug in taken:
        slug, number = f"{draft.slug}-{number}", number + 1
    taken.add(slug)
    return Proposal(ScenarioDraft(slug, draft.name, draft.kind, draft.spec), proposal.brings)


def _prompts(spec: Mapping[str, Any]) -> int:
    """How many different prompts a run of this scenario sends, as G3 counts them."""
    own = len(set(spec.get("prompts") or ()))
    return min(own or spec.get("distinct_prompts") or 0, spec.get("requests") or 0)
