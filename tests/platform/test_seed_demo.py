"""The demo data: complete, idempotent, private, and in the embedded profile only."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from django.test import Client, override_settings
from rest_framework.test import APIClient

from phasegate.demo.scenarios import SCENARIOS
from pocs.people.models import User
from pocs.projects.choices import ProjectState, ScenarioKind, ScenarioState
from pocs.projects.gates import gate_status
from pocs.projects.models import CIToken, Project, ScenarioVersion

pytestmark = pytest.mark.django_db

KEYS = {"lead", "contributor", "business", "platform", "security", "decision_maker", "outsider"}


@pytest.fixture
def var(tmp_path: Path) -> Iterator[Path]:
    model = tmp_path / "models" / "SmolLM2-135M-Instruct"
    model.mkdir(parents=True)
    (model / "config.json").write_text("{}")
    with override_settings(VAR_DIR=tmp_path, PHASEGATE_MODEL_PATH=str(model)):
        yield tmp_path


def seed(var: Path) -> dict[str, object]:
    call_command("seed_demo", verbosity=0)
    return json.loads((var / "demo-accounts.json").read_text())


def test_the_file_has_the_promised_form(var: Path) -> None:
    data = seed(var)
    assert set(data) == {"accounts", "ci_token", "project"}
    assert set(data["accounts"]) == KEYS
    assert all(set(row) == {"username", "password"} for row in data["accounts"].values())
    assert (var / "demo-accounts.json").stat().st_mode & 0o777 == 0o600


def test_every_account_signs_in(var: Path) -> None:
    for row in seed(var)["accounts"].values():
        assert Client().post("/sign-in/", row).status_code == 302


def test_the_project_is_ready_to_run_its_matrix(var: Path) -> None:
    project = Project.objects.get(pk=seed(var)["project"])
    assert project.state == ProjectState.RUNNING
    missing = {status.gate.code: status.missing for status in gate_status(project)}
    assert missing["G1"] == []
    assert missing["G2"] == []
    assert project.targets.count() == 1


def test_the_scenarios_cover_the_matrix() -> None:
    specs = [scenario.spec for scenario in SCENARIOS]
    assert len(specs) >= 6
    for name in ("input_tokens", "output_tokens", "concurrency"):
        assert len({getattr(spec, name) for spec in specs}) >= 2
    asked_for_first = ("short_request", "long_context", "high_concurrency", "streaming", "interruption")
    assert {scenario.kind for scenario in SCENARIOS} >= set(map(ScenarioKind, asked_for_first))
    assert any(spec.interruptions for spec in specs)
    assert all(spec.distinct_prompts > 1 for spec in specs)


def test_all_versions_are_approved(var: Path) -> None:
    project = seed(var)["project"]
    versions = ScenarioVersion.objects.filter(scenario__project=project)
    assert {version.state for version in versions} == {ScenarioState.APPROVED}
    assert len(versions) == len(SCENARIOS)


def test_the_token_reads_its_project_and_names_its_sponsor(var: Path) -> None:
    data = seed(var)
    token = CIToken.objects.get()
    assert token.sponsor.username == data["accounts"]["contributor"]["username"]
    client = APIClient()
    client.credentials(HTTP_AUTHORIZATION=f"Bearer {data['ci_token']}")
    response = client.get(f"/api/v1/projects/{data['project']}/scenarios/")
    assert response.status_code == 200
    assert {(row["slug"], row["version"]) for row in response.json()["results"]} >= {("short-request", 1)}


def test_the_outsider_sees_nothing_of_it(var: Path) -> None:
    data = seed(var)
    client = Client()
    client.force_login(User.objects.get(username=data["accounts"]["outsider"]["username"]))
    assert client.get(f"/projects/{data['project']}/").status_code == 404


def test_a_second_seed_changes_nothing(var: Path) -> None:
    assert seed(var) == seed(var)
    assert Project.objects.count() == 2
    assert CIToken.objects.count() == 1


def test_a_lost_file_gets_new_passwords_and_a_new_token(var: Path) -> None:
    before = seed(var)
    (var / "demo-accounts.json").unlink()
    after = seed(var)
    assert after["project"] == before["project"]
    assert after["ci_token"] != before["ci_token"]
    assert Client().post("/sign-in/", after["accounts"]["lead"]).status_code == 302
    assert Client().post("/sign-in/", before["accounts"]["lead"]).status_code == 200


def test_a_new_database_keeps_the_passwords_of_the_file(var: Path) -> None:
    before = seed(var)
    User.objects.filter(username="demo-outsider").update(username="someone-else")
    assert seed(var)["accounts"] == before["accounts"]
    assert Client().post("/sign-in/", before["accounts"]["outsider"]).status_code == 302


def test_without_a_model_everything_else_is_made(var: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with override_settings(PHASEGATE_MODEL_PATH=str(var / "models" / "absent")):
        project = seed(var)["project"]
    assert "make setup" in capsys.readouterr().err
    assert Project.objects.get(pk=project).targets.count() == 0
    seed(var)
    assert Project.objects.get(pk=project).targets.count() == 1


def test_production_has_no_demo_accounts(var: Path) -> None:
    with override_settings(PHASEGATE_PROFILE="production"), pytest.raises(CommandError, match="embedded"):
        call_command("seed_demo")
    assert not User.objects.exists()
