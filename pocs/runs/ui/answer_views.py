"""The page on which the business reviewer accepts or refuses answers of a sample, one by one."""

from typing import Any

from django import forms
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_GET, require_POST

from pocs.common.actors import Actor
from pocs.common.ui.mixins import actor_of, page, service_errors
from pocs.people import policies
from pocs.projects.models import Project
from pocs.projects.selectors import project_get
from pocs.runs import services
from pocs.runs.answers import answer_get, newest_sample, totals_of
from pocs.runs.choices import AnswerVerdict
from pocs.runs.services.answers import PER_SCENARIO
from pocs.runs.ui.trails import project_trail


class DrawForm(forms.Form):
    """How many answers of each scenario, by which seed."""

    per_scenario = forms.IntegerField(label=gettext_lazy("answers per scenario"), initial=PER_SCENARIO)
    seed = forms.CharField(
        label=gettext_lazy("seed"),
        required=False,
        help_text=gettext_lazy("Empty: one is made up, so that nobody chooses the answers."),
    )


class JudgeForm(forms.Form):
    """What is said of one answer."""

    version = forms.IntegerField(widget=forms.HiddenInput)
    reason = forms.CharField(
        label=gettext_lazy("reason"), required=False, widget=forms.Textarea(attrs={"rows": 2})
    )


@page
@require_GET
def answers(request: HttpRequest, pk: int) -> HttpResponse:
    """The newest sample, by scenario, with what was said of each answer."""
    actor = actor_of(request)
    return answers_page(request, actor, project_get(actor, pk))


def answers_page(
    request: HttpRequest,
    actor: Actor,
    project: Project,
    *,
    draw: DrawForm | None = None,
    judged: tuple[int, JudgeForm] | None = None,
    status: int = 200,
) -> HttpResponse:
    """The page around the forms; `judged` is the form of one answer that was refused by the service."""
    sample = newest_sample(project)
    may_judge = policies.allowed(actor, "answers.judge", project)
    groups: dict[str, list[dict[str, Any]]] = {}
    found = list(sample.answers.all()) if sample else []
    for answer in found:
        form = JudgeForm(initial={"version": answer.version, "reason": answer.reason}, prefix=f"a{answer.pk}")
        if judged is not None and judged[0] == answer.pk:
            form = judged[1]
        scenario = answer.run.scenario_version.scenario.name
        groups.setdefault(scenario, []).append({"answer": answer, "form": form if may_judge else None})
    context = {
        "project": project,
        "trail": [*project_trail(project), (_("Answers"), "")],
        "sample": sample,
        "groups": groups,
        "totals": totals_of(found),
        "draw": (draw or DrawForm()) if policies.allowed(actor, "answers.draw", project) else None,
        "may_judge": may_judge,
    }
    return render(request, "runs/answers.html", context, status=status)


@page
@require_POST
def answers_draw(request: HttpRequest, pk: int) -> HttpResponse:
    """Draw the next sample."""
    actor = actor_of(request)
    project = project_get(actor, pk)
    policies.require(actor, "answers.draw", project)
    form, status = DrawForm(request.POST), 400
    if form.is_valid():
        with service_errors(form) as call:
            services.answer_sample_draw(actor=actor, project=project, **form.cleaned_data)
        if not call.failed:
            return redirect("runs:answers", pk=project.pk)
        status = call.status
    return answers_page(request, actor, project, draw=form, status=status)


@page
@require_POST
def answer_judge(request: HttpRequest, pk: int) -> HttpResponse:
    """Accept or refuse one answer."""
    actor = actor_of(request)
    answer = answer_get(actor, pk)
    project = answer.sample.project
    policies.require(actor, "answers.judge", project)
    form, status = JudgeForm(request.POST, prefix=f"a{answer.pk}"), 400
    if form.is_valid():
        verdict = AnswerVerdict.ACCEPTED if "accept" in request.POST else AnswerVerdict.REFUSED
        typed = {name: form.cleaned_data[name] for name in ("version", "reason")}
        with service_errors(form) as call:
            services.answer_judge(actor=actor, answer=answer, verdict=verdict, **typed)
        if not call.failed:
            return redirect(f"{reverse('runs:answers', args=[project.pk])}#answer-{answer.pk}")
        status = call.status
    return answers_page(request, actor, project, judged=(answer.pk, form), status=status)
