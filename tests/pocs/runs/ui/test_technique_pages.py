"""The page of the techniques, and candidates made from it."""

from collections.abc import Callable
from pathlib import Path

from django.test import Client
from django.urls import reverse

from pocs.people.models import User
from pocs.projects.models import Project
from pocs.runs.models import Target
from pocs.runs.techniques import TECHNIQUES
from tests.factories import Cast, make_run, make_scenario_version, make_target

PageAs = Callable[[User], Client]


def page_of(project: Project) -> str:
    return reverse("runs:techniques", args=[project.pk])


def make(client: Client, project: Project, source: Target, **data: object) -> str:
    url = reverse("runs:candidate_new", args=[project.pk])
    return client.post(url, {"source": source.pk, **data}, follow=True).content.decode()


def test_every_technique_says_what_it_is_for_and_what_it_costs(
    cast: Cast, project: Project, page_as: PageAs
) -> None:
    html = page_as(cast.viewer).get(page_of(project)).content.decode()

    for technique in TECHNIQUES:
        assert f'id="{technique.code}"' in html
    assert "Measured on" in html
    assert "--switches --dtype bfloat16" in html.replace("<wbr>", "").replace("&shy;", "")
    assert "Make a candidate target" not in html


def test_a_candidate_is_made_with_one_change_and_listed_with_its_baseline(
    cast: Cast, project: Project, page_as: PageAs, model_folder: Path
) -> None:
    source = make_target(project, name="engine", location=str(model_folder))
    lead = page_as(cast.lead)
    assert "Make a candidate target" in lead.get(page_of(project)).content.decode()

    html = make(lead, project, source, technique="T1", change="dtype=int8")

    made = Target.objects.get(baseline=source)
    assert made.engine_settings == {"dtype": "int8"}
    assert made.name in html
    assert "not yet: run the same scenario against both" in html
    version = make_scenario_version(project, "short-request")
    before = make_run(project, scenario_version=version, target=source, records=False)
    after = make_run(project, scenario_version=version, target=made, records=False)
    html = lead.get(page_of(project)).content.decode()
    assert f"?a={before.number}&amp;b={after.number}" in html


def test_several_changes_at_once_are_refused_with_the_reason(
    cast: Cast, project: Project, page_as: PageAs, model_folder: Path
) -> None:
    source = make_target(project, name="engine", location=str(model_folder))

    html = make(page_as(cast.lead), project, source, change=["dtype=int8", "max_batch=8"])

    assert "A candidate changes one switch, not 2" in html
    assert not Target.objects.filter(baseline=source).exists()


def test_numbers_and_switches_of_the_form_keep_their_type(
    cast: Cast, project: Project, page_as: PageAs, model_folder: Path
) -> None:
    source = make_target(project, name="engine", location=str(model_folder))
    lead = page_as(cast.lead)

    make(lead, project, source, change="prefix_cache=off")
    make(lead, project, source, change="max_batch=8")

    found = Target.objects.filter(baseline=source).order_by("pk")
    assert [target.engine_settings for target in found] == [{"prefix_cache": False}, {"max_batch": 8}]


def test_a_candidate_with_two_changed_switches_is_warned_about(
    cast: Cast, project: Project, page_as: PageAs, model_folder: Path
) -> None:
    source = make_target(project, name="engine", location=str(model_folder))
    settings = {"dtype": "int8", "max_batch": 4}
    piled = make_target(
        project, name="both", location=str(model_folder), baseline=source, engine_settings=settings
    )
    lead = page_as(cast.lead)

    assert "several at once" in lead.get(page_of(project)).content.decode()
    form = lead.get(reverse("runs:target_edit", args=[project.pk, piled.pk])).content.decode()
    assert "in 2 switches (dtype, max_batch)" in form


def test_who_may_do_what(cast: Cast, project: Project, page_as: PageAs) -> None:
    source = make_target(project)
    url = reverse("runs:candidate_new", args=[project.pk])
    data = {"source": source.pk, "change": "dtype=int8"}
    assert page_as(cast.viewer).post(url, data).status_code == 403
    assert page_as(cast.outsider).get(page_of(project)).status_code == 404
    assert page_as(cast.outsider).post(url, data).status_code == 404
    assert page_as(cast.lead).post(url, data | {"source": "x"}).status_code == 404


def test_a_comparison_of_several_changed_switches_is_warned_about(
    cast: Cast, project: Project, page_as: PageAs
) -> None:
    def run_with(**settings: object) -> str:
        target = {"kind": "engine", "location": "/m", "settings": settings}
        return str(make_run(project, configuration={"target": target}, records=False).number)

    plain, one, two = run_with(), run_with(dtype="int8"), run_with(dtype="int8", max_batch=4)
    url = reverse("runs:compare", args=[project.pk])
    viewer = page_as(cast.viewer)

    assert "cannot tell which" not in viewer.get(url, {"a": plain, "b": one}).content.decode()
    html = viewer.get(url, {"a": plain, "b": two}).content.decode()
    assert "differ in 2 switches (dtype, max_batch)" in html


def test_a_number_out_of_range_is_said_with_its_name_and_value_and_kept(
    cast: Cast, project: Project, page_as: PageAs, model_folder: Path
) -> None:
    data = {"name": "e", "kind": "engine", "location": "small", "threads": "5000", "speculate": "ngram"}
    answer = page_as(cast.lead).post(reverse("runs:target_new", args=[project.pk]), data)
    html = answer.content.decode()
    assert answer.status_code == 400
    assert "threads is a whole number from 1 to 1024, not “5000”." in html
    assert 'value="5000"' in html


def test_a_draft_model_comes_back_into_its_field(
    cast: Cast, project: Project, page_as: PageAs, model_folder: Path
) -> None:
    data = {
        "name": "e",
        "kind": "engine",
        "location": "small",
        "speculate": "draft",
        "draft_model": "small",
        "speculate_tokens": "3",
    }
    lead = page_as(cast.lead)
    assert lead.post(reverse("runs:target_new", args=[project.pk]), data).status_code == 302
    target = Target.objects.get(project=project)
    assert target.engine_settings == {"speculate": f"draft:{model_folder}", "speculate_tokens": 3}
    html = lead.get(reverse("runs:target_edit", args=[project.pk, target.pk])).content.decode()
    assert f'value="{model_folder}"' in html
    assert '<option value="draft" selected>' in html
