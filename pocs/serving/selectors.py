"""What a project may see of the engine: its state now, and the switches that concerned it."""

import logging
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.conf import settings
from django.db.models import Q, QuerySet
from redis.exceptions import RedisError

from pocs.common.actors import Actor
from pocs.people import policies
from pocs.projects.models import Project
from pocs.runs.models import Run, Target
from pocs.serving import broker, wire
from pocs.serving.models import ModelSwitch

logger = logging.getLogger(__name__)

SWITCHES_SHOWN = 10


@dataclass(frozen=True)
class EngineState:
    """One engine worker as a project sees it: of other projects it learns that they are there, not who."""

    hostname: str
    loaded: bool
    alive: bool
    loading: bool
    target: Target | None  # what is loaded, where it is the project's own
    since: datetime | None
    taken: bool  # a run has the engine, or is about to
    run: Run | None  # which, where it is the project's own
    taken_since: datetime | None
    open: int  # live requests in the batch
    resources: dict[str, Any] | None = None


@dataclass(frozen=True)
class LiveState:
    """All engine workers, and the queue before them."""

    reachable: bool
    waiting: int = 0
    engines: list[EngineState] = field(default_factory=list)

    @property
    def open(self) -> int:
        """Live requests in all batches."""
        return sum(engine.open for engine in self.engines)


def live_state(actor: Actor, project: Project) -> LiveState:
    """The state of the engines now; not reachable when the broker does not answer."""
    policies.require(actor, "project.view", project)
    try:
        states, waiting = broker.desk_states_now(settings.REDIS_URL)
    except (RedisError, OSError, ValueError) as error:
        logger.warning("the broker does not tell the state of the engine: %s", error)
        return LiveState(reachable=False)
    engines = [_engine_state(project, wire.state_unpacked(state)) for state in states.values()]
    return LiveState(True, waiting, sorted(engines, key=lambda engine: engine.hostname))


def _engine_state(project: Project, state: dict[str, Any]) -> EngineState:
    loaded, holder = state["loaded"], state["holder"]
    own_targets, own_runs = Target.objects.filter(project=project), Run.objects.filter(project=project)
    return EngineState(
        hostname=state["hostname"],
        loaded=loaded is not None,
        alive=bool(loaded and loaded["alive"]),
        loading=state["loading"],
        target=own_targets.filter(pk=loaded["target_id"]).first() if loaded else None,
        since=datetime.fromisoformat(loaded["since"]) if loaded else None,
        taken=holder is not None,
        run=own_runs.filter(pk=holder["run_id"]).first() if holder else None,
        taken_since=datetime.fromisoformat(holder["since"]) if holder else None,
        open=state["open"],
        resources=state["resources"],
    )


def switches_of(actor: Actor, project: Project) -> QuerySet[ModelSwitch]:
    """Switches to or from a target of the project, newest first."""
    policies.require(actor, "project.view", project)
    concerned = Q(target__project=project) | Q(source__project=project)
    return ModelSwitch.objects.filter(concerned).select_related("source", "target", "run")[:SWITCHES_SHOWN]
