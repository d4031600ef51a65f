"""What live inference writes down: switches of the model, and what somebody saves from the playground.

No other request and no answer is ever stored.
"""

import socket
from dataclasses import replace
from datetime import datetime

from django.utils.text import slugify
from django.utils.translation import gettext as _

from pocs.common.actors import Actor
from pocs.common.errors import FieldError, InvalidInput
from pocs.people import policies
from pocs.projects.models import Project, ScenarioVersion
from pocs.projects.scenario_spec import ScenarioSpec
from pocs.projects.selectors import newest_version, scenario_get
from pocs.projects.services.scenarios import scenario_create, scenario_version_add
from pocs.runs.models import Run, Target
from pocs.runs.seat import Switched
from pocs.serving.models import ModelSwitch

#: what a scenario made of one request begins with; its draft is edited before it is approved
FIRST_REQUESTS = 4
SLUG_MAX = 60


def switch_record(switched: Switched) -> None:
    """Keep one switch of the loaded model; the seat of this process reports it once."""
    report = switched.report
    ModelSwitch.objects.create(
        source=Target.objects.filter(pk=switched.source_id or 0).first(),
        target=Target.objects.filter(pk=switched.target_id).first(),
        run=Run.objects.filter(pk=switched.run_id or 0).first(),
        outcome=report.outcome,
        reason=" ".join(filter(None, [report.reason, report.rollback_reason])),
        report=report.to_dict(),
        hostname=socket.gethostname(),
        started_at=datetime.fromisoformat(report.started_at),
    )


def request_save(
    *,
    actor: Actor,
    project: Project,
    prompt: str,
    input_tokens: int,
    output_tokens: int,
    temperature: float = 0.0,
    seed: int = 0,
    scenario: str = "",
    name: str = "",
    kind: str = "",
) -> ScenarioVersion:
    """Make a request of the playground one of a scenario's real prompts; the version is a draft.

    With `scenario` (its slug) the request joins those of its latest version, else a scenario of `name` and
    `kind` begins with it. Lengths are tokens. InvalidInput names what is wrong.
    """
    policies.require(actor, "scenario.edit", project)
    if scenario:
        return _join(actor, project, scenario, prompt)
    spec = ScenarioSpec(
        input_tokens=input_tokens,
        output_tokens=output_tokens,
        concurrency=1,
        requests=FIRST_REQUESTS,
        distinct_prompts=1,
        prompts=(prompt,),
        temperature=temperature,
        seed=seed,
    )
    slug = slugify(name)[:SLUG_MAX].strip("-") or f"request-{project.scenarios.count() + 1}"
    return scenario_create(actor=actor, project=project, slug=slug, name=name, kind=kind, spec=spec)


def _join(actor: Actor, project: Project, slug: str, prompt: str) -> ScenarioVersion:
    found = scenario_get(actor, project, slug)
    spec = ScenarioSpec.from_json(newest_version(found).spec)
    if not spec.prompts:
        text = _("“%(name)s” has no real requests of its own to which this one could be added.")
        text %= {"name": found.name}
        raise InvalidInput(text, [FieldError("/scenario", "invalid", text)])
    if prompt in spec.prompts:
        text = _("“%(name)s” has this request already.") % {"name": found.name}
        raise InvalidInput(text, [FieldError("/prompt", "taken", text)])
    prompts = (*spec.prompts, prompt)
    spec = replace(spec, prompts=prompts, distinct_prompts=max(spec.distinct_prompts, len(prompts)))
    return scenario_version_add(actor=actor, scenario=found, spec=spec)
