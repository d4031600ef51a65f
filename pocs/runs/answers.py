"""Reading samples of answers: the newest one, its totals by scenario, and its form in a package (Q14)."""

from dataclasses import dataclass
from typing import Any

from django.db.models import Prefetch
from django.utils.translation import gettext as _

from pocs.common.actors import Actor
from pocs.common.errors import NotFound
from pocs.common.reading import remembered
from pocs.people import policies
from pocs.projects.models import Project
from pocs.runs.choices import AnswerVerdict
from pocs.runs.models import AnswerSample, SampledAnswer


@dataclass(frozen=True)
class Totals:
    """How many answers of a sample were accepted, refused and are open."""

    accepted: int
    refused: int
    open: int

    @property
    def asked(self) -> int:
        return self.accepted + self.refused + self.open


@remembered
def newest_sample(project: Project) -> AnswerSample | None:
    """The project's newest sample with its answers and their runs; None where none was drawn."""
    answers = SampledAnswer.objects.select_related("run__scenario_version__scenario", "judged_by")
    samples = AnswerSample.objects.filter(project=project).select_related("drawn_by")
    return samples.prefetch_related(Prefetch("answers", answers)).order_by("-number").first()


def totals_of(answers: list[SampledAnswer]) -> Totals:
    verdicts = [answer.verdict for answer in answers]
    return Totals(
        *(verdicts.count(one) for one in (AnswerVerdict.ACCEPTED, AnswerVerdict.REFUSED, AnswerVerdict.OPEN))
    )


def answer_get(actor: Actor, pk: int) -> SampledAnswer:
    """One sampled answer the actor may see; NotFound for a foreign or an absent one."""
    answer = (
        SampledAnswer.objects.filter(pk=pk, sample__project__organisation_id=actor.organisation_id)
        .select_related("sample__project")
        .first()
    )
    if answer is None or not policies.allowed(actor, "project.view", answer.sample.project):
        raise NotFound(_("There is no such answer."))
    return answer


def answers_manifest(project: Project) -> list[dict[str, Any]]:
    """What a package holds of the newest sample: each answer by its place, with what was said of it."""
    sample = newest_sample(project)
    if sample is None:
        return []
    return [
        {
            "id": answer.pk,
            "sample": str(sample),
            "run": answer.run.number,
            "request": answer.request_index,
            "verdict": answer.verdict,
            "reason": answer.reason,
        }
        for answer in sample.answers.all()
    ]
