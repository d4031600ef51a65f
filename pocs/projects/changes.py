"""The port through which lower apps say that something a frozen package may rest on has changed.

Services of projects, runs and evidence call `notify_change` inside their transaction; the reviews
app listens and marks the packages concerned as stale, with who changed what.
"""

from collections.abc import Callable

from django.db import models

from pocs.common.actors import Actor
from pocs.common.errors import Text
from pocs.common.phrases import Said
from pocs.projects.models import Project

Listener = Callable[[Project, Actor, models.Model, Text | Said], None]
_listeners: list[Listener] = []


def on_change(listener: Listener) -> None:
    """Register a listener `(project, actor, object, what)`; called once per process at start-up."""
    if listener not in _listeners:
        _listeners.append(listener)


def notify_change(*, project: Project, actor: Actor, obj: models.Model, what: Text | Said) -> None:
    """Tell the listeners that `obj` changed; `what` is one lazy phrase, which signers read translated."""
    for listener in _listeners:
        listener(project, actor, obj, what)
