"""The pages of targets: adding, changing, checking; what is typed is kept, a credential never shown."""

from collections.abc import Callable
from pathlib import Path

from django.test import Client
from django.urls import reverse

from pocs.people.models import User
from pocs.projects.models import Project
from pocs.runs.models import Target
from tests.factories import Cast, make_run, make_target

PageAs = Callable[[User], Client]


def form_data(**fields: object) -> dict:
    return {"name": "vLLM", "kind": "http", "location": "http://127.0.0.1:9/v1", "model": "m", **fields}


def test_an_endpoint_is_added_and_its_credential_stays_unseen(
    cast: Cast, project: Project, page_as: PageAs
) -> None:
    lead = page_as(cast.lead)
    answer = lead.post(
        reverse("runs:target_new", args=[project.pk]), form_data(credential="sk-secret"), follow=True
    )
    assert answer.status_code == 200
    target = Target.objects.get(project=project)
    assert b"sk-secret" not in bytes(target.credential)
    html = (
        answer.content.decode()
        + lead.get(reverse("runs:target_edit", args=[project.pk, target.pk])).content.decode()
    )
    assert "sk-secret" not in html
    assert "credential stored" in html


def test_a_model_folder_is_added_with_engine_settings(
    cast: Cast, project: Project, page_as: PageAs, model_folder: Path
) -> None:
    data = {
        "name": "e",
        "kind": "engine",
        "location": "small",
        "dtype": "float32",
        "prefix_cache": "off",
        "max_batch": "4",
    }
    answer = page_as(cast.lead).post(reverse("runs:target_new", args=[project.pk]), data)
    assert answer.status_code == 302
    target = Target.objects.get(project=project)
    assert target.engine_settings == {"dtype": "float32", "prefix_cache": False, "max_batch": 4}


def test_a_wrong_model_folder_is_said_and_the_form_kept(
    cast: Cast, project: Project, page_as: PageAs, model_folder: Path
) -> None:
    data = {"name": "My engine", "kind": "engine", "location": "absent", "max_batch": "7"}
    answer = page_as(cast.lead).post(reverse("runs:target_new", args=[project.pk]), data)
    html = answer.content.decode()
    assert answer.status_code == 400
    assert "There is no model folder" in html
    assert 'value="My engine"' in html
    assert 'value="7"' in html
    assert not Target.objects.filter(project=project).exists()


def test_a_half_empty_form_says_what_is_missing(cast: Cast, project: Project, page_as: PageAs) -> None:
    answer = page_as(cast.lead).post(reverse("runs:target_new", args=[project.pk]), {"name": "x"})
    assert answer.status_code == 400
    assert 'id="id_location_error"' in answer.content.decode()


def test_a_taken_name_is_said_in_the_form(cast: Cast, project: Project, page_as: PageAs) -> None:
    make_target(project, name="vLLM")
    answer = page_as(cast.lead).post(reverse("runs:target_new", args=[project.pk]), form_data())
    assert answer.status_code == 409
    assert "already has a target named" in answer.content.decode()


def test_a_change_that_someone_overtook_is_refused(cast: Cast, project: Project, page_as: PageAs) -> None:
    target = make_target(project, name="a", kind="http", location="http://x/v1", model="m", version=3)
    url = reverse("runs:target_edit", args=[project.pk, target.pk])
    answer = page_as(cast.lead).post(url, form_data(name="b", version=2))
    assert answer.status_code == 412
    assert 'value="b"' in answer.content.decode()
    assert page_as(cast.lead).post(url, form_data(name="b", version=3)).status_code == 302
    assert Target.objects.get(pk=target.pk).name == "b"


def test_an_unreachable_endpoint_is_said_in_one_sentence(
    cast: Cast, project: Project, page_as: PageAs
) -> None:
    target = make_target(project, name="a", kind="http", location="http://127.0.0.1:9/v1", model="m")
    answer = page_as(cast.lead).post(reverse("runs:target_check", args=[project.pk, target.pk]), follow=True)
    assert answer.status_code == 200
    assert 'class="notice error"' in answer.content.decode()


def test_who_may_edit_targets(cast: Cast, project: Project, page_as: PageAs) -> None:
    target = make_target(project)
    for name, args in {"target_new": [], "target_edit": [target.pk]}.items():
        url = reverse(f"runs:{name}", args=[project.pk, *args])
        assert page_as(cast.lead).get(url).status_code == 200
        assert page_as(cast.viewer).get(url).status_code == 403
        assert page_as(cast.outsider).get(url).status_code == 404


def test_a_target_of_another_project_is_not_found(cast: Cast, project: Project, page_as: PageAs) -> None:
    foreign = make_run(cast.outsider.project_roles.get().project).target
    url = reverse("runs:target_edit", args=[project.pk, foreign.pk])
    assert page_as(cast.lead).get(url).status_code == 404
