"""Samples of answers: drawn by a seed, then accepted or refused one by one, refusals with their reason."""

import hashlib
import secrets
from typing import Any

from django.db import transaction
from django.db.models import Max
from django.utils import timezone
from django.utils.translation import gettext as _

from pocs.common import audit
from pocs.common.actors import Actor
from pocs.common.errors import Conflict, FieldError, InvalidInput, NotPermitted
from pocs.common.versions import save_version
from pocs.people import policies
from pocs.projects.changes import notify_change
from pocs.projects.models import Project
from pocs.runs.choices import AnswerVerdict, Outcome
from pocs.runs.models import AnswerSample, RequestRecord, Run, SampledAnswer
from pocs.runs.selectors import counting_runs
from pocs.runs.services.running import check_open, responsible_person

PER_SCENARIO, PER_SCENARIO_MOST = 5, 50
SEED_MAX, REASON_MAX = 64, 2_000


def answer_sample_draw(
    *, actor: Actor, project: Project, per_scenario: int = PER_SCENARIO, seed: str = ""
) -> AnswerSample:
    """Draw up to `per_scenario` successful answers of each scenario's newest run that counts.

    The same seed over the same runs draws the same answers; without one a seed is made up, so that nobody
    chooses the answers.
    """
    policies.require(actor, "answers.draw", project)
    check_open(project)
    seed = seed.strip() or secrets.token_hex(8)
    wrong = []
    if not 1 <= per_scenario <= PER_SCENARIO_MOST:
        text = _("This must lie between %(low)s and %(high)s; it is %(value)s.")
        wrong.append(
            FieldError(
                "/per_scenario", "range", text % {"low": 1, "high": PER_SCENARIO_MOST, "value": per_scenario}
            )
        )
    if len(seed) > SEED_MAX:
        wrong.append(
            FieldError("/seed", "range", _("A seed has at most %(most)s characters.") % {"most": SEED_MAX})
        )
    if wrong:
        raise InvalidInput(_("The sample cannot be drawn like this."), wrong)
    with transaction.atomic():
        Project.objects.select_for_update().get(pk=project.pk)
        drawn = [record for run in _newest_runs(project) for record in _draw(run, seed, per_scenario)]
        if not drawn:
            text = _("No run that counts has kept prompts with its answers yet: run the matrix first.")
            raise Conflict(text)
        last = AnswerSample.objects.filter(project=project).aggregate(last=Max("number"))["last"] or 0
        sample = AnswerSample.objects.create(
            project=project,
            number=last + 1,
            seed=seed,
            per_scenario=per_scenario,
            drawn_by_id=responsible_person(actor),
        )
        SampledAnswer.objects.bulk_create(
            SampledAnswer(
                sample=sample,
                run_id=record.run_id,
                request_index=record.index,
                prompt=record.detail["prompt"],
                answer=record.text,
            )
            for record in drawn
        )
        after = {"seed": seed, "per_scenario": per_scenario, "answers": len(drawn)}
        audit.record(actor=actor, verb="answers.drawn", obj=sample, project_id=project.pk, after=after)
        what = _("the sample of answers %(sample)s was drawn") % {"sample": sample}
        notify_change(project=project, actor=actor, obj=sample, what=what)
    return sample


def _newest_runs(project: Project) -> list[Run]:
    """Of each scenario the newest run that counts."""
    newest: dict[int, Run] = {}
    for run in counting_runs(project):
        newest.setdefault(run.scenario_version.scenario_id, run)
    return sorted(newest.values(), key=lambda run: run.scenario_version.scenario.slug)


def _draw(run: Run, seed: str, count: int) -> list[RequestRecord]:
    """By a hash of seed, run and place: an order that nobody can foresee and anybody can repeat."""
    records = run.requests.filter(outcome=Outcome.SUCCESS, warmup=False, detail__has_key="prompt")
    places = sorted(
        records.values_list("pk", "index"),
        key=lambda one: hashlib.sha256(f"{seed}/{run.number}/{one[1]}".encode()).digest(),
    )[:count]
    found = RequestRecord.objects.in_bulk([pk for pk, _index in places])
    return [found[pk] for pk, _index in places]


def answer_judge(
    *, actor: Actor, answer: SampledAnswer, verdict: str, version: int, reason: str = ""
) -> SampledAnswer:
    """Accept or refuse one answer of the newest sample; a refusal needs its reason."""
    project = answer.sample.project
    policies.require(actor, "answers.judge", project)
    check_open(project)
    if not actor.is_person:
        raise NotPermitted(_("Answers are judged by people."))
    reason = reason.strip()
    if verdict not in (AnswerVerdict.ACCEPTED, AnswerVerdict.REFUSED):
        raise InvalidInput(_("An answer is accepted or refused."))
    if verdict == AnswerVerdict.REFUSED and not reason:
        text = _("A refusal needs its reason.")
        raise InvalidInput(text, [FieldError("/reason", "required", text)])
    if len(reason) > REASON_MAX:
        text = _("A reason has at most %(most)s characters.") % {"most": REASON_MAX}
        raise InvalidInput(text, [FieldError("/reason", "range", text)])
    with transaction.atomic():
        stored = SampledAnswer.objects.select_for_update().select_related("sample", "run").get(pk=answer.pk)
        if project.answer_samples.filter(number__gt=stored.sample.number).exists():
            raise Conflict(_("%(sample)s is no longer the newest sample.") % {"sample": stored.sample})
        before = _said(stored)
        save_version(
            stored,
            version=version,
            verdict=verdict,
            reason=reason,
            judged_by_id=actor.user_id,
            judged_at=timezone.now(),
        )
        audit.record(
            actor=actor,
            verb=f"answer.{verdict}",
            obj=stored,
            project_id=project.pk,
            before=before,
            after=_said(stored),
        )
        what = _("the answer %(answer)s was judged") % {"answer": stored}
        notify_change(project=project, actor=actor, obj=stored, what=what)
    return stored


def _said(answer: SampledAnswer) -> dict[str, Any]:
    return {"verdict": answer.verdict, "reason": answer.reason}
