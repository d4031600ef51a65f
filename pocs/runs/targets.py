"""From a stored target to one that can be measured."""

from collections.abc import Iterator
from contextlib import contextmanager

from inference.targets.base import Target as Measurable
from inference.targets.openai import OpenAITarget
from pocs.runs.choices import TargetKind
from pocs.runs.credentials import unseal
from pocs.runs.endpoint_settings import options_of
from pocs.runs.models import Target
from pocs.runs.seat import seat


@contextmanager
def measurable(target: Target, *, run_id: int | None = None) -> Iterator[Measurable]:
    """What `inference` measures for a stored target; the caller opens it."""
    if target.kind == TargetKind.ENGINE:
        with seat.hold(target, run_id) as engine:
            yield engine
    else:
        yield endpoint_target(target)


def endpoint_target(target: Target) -> OpenAITarget:
    """The endpoint with its credential in clear, for as long as the object lives."""
    return OpenAITarget(
        target.location,
        model=target.model,
        api_key=unseal(target.credential),
        **options_of(target.endpoint_settings),
    )
