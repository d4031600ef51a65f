"""Targets, starting, cancelling and superseding runs, and the reaper."""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone

from pocs.common import audit
from pocs.common.errors import Conflict, InvalidInput, NotFound, NotPermitted, StaleVersion
from pocs.common.models import AuditEntry, LiveEvent
from pocs.projects import changes
from pocs.projects.choices import ScenarioState
from pocs.projects.models import Project, ScenarioVersion
from pocs.runs import selectors, services, streams
from pocs.runs.choices import RunState, TargetKind, Validity
from pocs.runs.credentials import unseal
from pocs.runs.models import RequestRecord, Run, Target
from tests.factories import (
    Cast,
    make_ci_token,
    make_request_record,
    make_run,
    make_scenario_version,
    make_target,
)

ENDPOINT = {"kind": TargetKind.HTTP, "location": "http://gpu-1:8000/v1/", "model": "qwen"}


def create(cast: Cast, **fields: Any) -> Target:
    fields = {"name": "T", **fields}
    return services.target_create(actor=cast.contributor.as_actor(), project=cast.project, **fields)


class TestTargets:
    def test_a_model_folder_is_taken_by_path_or_by_name(self, cast: Cast, model_folder: Path) -> None:
        by_path = create(cast, kind=TargetKind.ENGINE, location=str(model_folder))
        by_name = create(cast, name="U", kind=TargetKind.ENGINE, location="small")

        assert by_path.location == by_name.location == str(model_folder)

    @pytest.mark.parametrize(
        ("location", "code"),
        [
            ("absent", "absent"),
            ("/etc", "outside"),
            ("../secret", "outside"),
            ("empty", "no_model"),
            ("broken.gguf", "no_gguf"),
            ("text.txt", "no_gguf"),
        ],
    )
    def test_a_wrong_model_location_says_what_is_wrong(
        self, cast: Cast, model_folder: Path, location: str, code: str
    ) -> None:
        (model_folder.parent / "empty").mkdir()
        (model_folder.parent / "broken.gguf").write_bytes(b"not a model")
        (model_folder.parent / "text.txt").write_bytes(b"GGUF")

        with pytest.raises(InvalidInput) as caught:
            create(cast, kind=TargetKind.ENGINE, location=location)

        assert [(error.pointer, error.code) for error in caught.value.errors] == [("/location", code)]
        assert not Target.objects.exists()

    def test_a_link_out_of_the_model_folder_is_refused(
        self, cast: Cast, model_folder: Path, tmp_path: Path
    ) -> None:
        outside = tmp_path / "outside"
        outside.mkdir()
        (outside / "config.json").write_text("{}")
        (model_folder.parent / "link").symlink_to(outside)

        with pytest.raises(InvalidInput):
            create(cast, kind=TargetKind.ENGINE, location="link")

    @pytest.mark.parametrize(
        "location",
        ["", "gpu-1:8000", "ftp://gpu-1/v1", "http://", "http://user:pw@gpu-1/v1", "http://gpu-1/v1?key=1"],
    )
    def test_a_wrong_url_is_refused(self, cast: Cast, location: str) -> None:
        with pytest.raises(InvalidInput) as caught:
            create(cast, **ENDPOINT | {"location": location})

        assert caught.value.errors[0].pointer == "/location"

    @pytest.mark.parametrize(
        ("given", "pointer"),
        [
            ({"dtype": "int3"}, "/engine_settings/dtype"),
            ({"max_batch": 0}, "/engine_settings/max_batch"),
            ({"prefix_cache": "yes"}, "/engine_settings/prefix_cache"),
            ({"turbo": True}, "/engine_settings/turbo"),
        ],
    )
    def test_engine_settings_are_checked(
        self, cast: Cast, model_folder: Path, given: dict[str, Any], pointer: str
    ) -> None:
        with pytest.raises(InvalidInput) as caught:
            create(cast, kind=TargetKind.ENGINE, location="small", engine_settings=given)

        assert caught.value.errors[0].pointer == pointer

    def test_a_credential_is_stored_encrypted_and_in_no_audit_entry(self, cast: Cast) -> None:
        target = create(cast, **ENDPOINT, credential="s3cret")

        assert b"s3cret" not in bytes(target.credential)
        assert unseal(target.credential) == "s3cret"
        assert "s3cret" not in str(list(AuditEntry.objects.values("before", "after")))
        assert target.location == "http://gpu-1:8000/v1"

    def test_a_changed_key_asks_for_the_credential_again(self, cast: Cast, settings: Any) -> None:
        target = create(cast, **ENDPOINT, credential="s3cret")
        settings.SECRET_KEY = "another"

        with pytest.raises(Conflict):
            unseal(target.credential)

    def test_an_update_keeps_or_removes_the_credential_and_guards_the_version(self, cast: Cast) -> None:
        target = create(cast, **ENDPOINT, credential="s3cret")
        fields = {"name": "T2", "location": "http://gpu-1:8000/other/v1", "model": "qwen"}
        actor = cast.contributor.as_actor()

        kept = services.target_update(actor=actor, target=target, version=1, **fields)
        assert (kept.version, unseal(kept.credential)) == (2, "s3cret")
        removed = services.target_update(actor=actor, target=target, version=2, credential="", **fields)
        assert removed.credential is None
        with pytest.raises(StaleVersion) as caught:
            services.target_update(actor=actor, target=target, version=1, **fields)
        assert caught.value.extra["current"] == 3

    def test_a_name_is_used_once(self, cast: Cast) -> None:
        create(cast, **ENDPOINT)

        with pytest.raises(Conflict):
            create(cast, **ENDPOINT)

    def test_a_credential_never_moves_to_another_server(self, cast: Cast) -> None:
        target = create(cast, **ENDPOINT, credential="s3cret")
        moved = {"name": "T", "location": "http://elsewhere:8000/v1", "model": "qwen"}
        actor = cast.contributor.as_actor()
        with pytest.raises(InvalidInput) as caught:
            services.target_update(actor=actor, target=target, version=1, **moved)
        assert caught.value.errors[0].pointer == "/credential"
        assert Target.objects.get(pk=target.pk).location == "http://gpu-1:8000/v1"
        given = services.target_update(actor=actor, target=target, version=1, credential="new", **moved)
        assert unseal(given.credential) == "new"

    def test_who_may_add_targets(self, cast: Cast) -> None:
        for user, error in ((cast.viewer, NotPermitted), (cast.outsider, NotFound)):
            with pytest.raises(error):
                services.target_create(actor=user.as_actor(), project=cast.project, name="X", **ENDPOINT)


class TestStarting:
    def test_a_run_waits_with_its_number_and_task(
        self, cast: Cast, version: ScenarioVersion, target: Target
    ) -> None:
        first, second = (
            services.run_start(
                actor=cast.lead.as_actor(), project=cast.project, scenario_version=version, target=target
            )
            for _ in range(2)
        )

        assert (first.number, second.number) == (1, 2)
        assert Run.objects.get(pk=first.pk).enqueued_at is not None
        assert LiveEvent.objects.filter(stream=f"project:{cast.project.pk}", kind="run").count() == 2

    def test_the_task_is_sent_after_the_commit(
        self,
        cast: Cast,
        version: ScenarioVersion,
        target: Target,
        monkeypatch: pytest.MonkeyPatch,
        django_capture_on_commit_callbacks: Any,
    ) -> None:
        executed: list[int] = []
        monkeypatch.setattr(
            "pocs.runs.tasks.execution.run_execute", lambda run_id, worker: executed.append(run_id)
        )

        with django_capture_on_commit_callbacks(execute=True):
            run = services.run_start(
                actor=cast.lead.as_actor(), project=cast.project, scenario_version=version, target=target
            )
            assert executed == []

        assert executed == [run.pk]

    def test_a_tokens_run_names_its_sponsor(
        self, cast: Cast, version: ScenarioVersion, target: Target
    ) -> None:
        token, _plain = make_ci_token(cast.project, sponsor=cast.lead, scopes=("read", "runs:write"))

        run = services.run_start(
            actor=token.as_actor(), project=cast.project, scenario_version=version, target=target
        )

        assert (run.requested_by, run.token) == (cast.lead, token)

    def test_a_draft_version_is_not_run(self, cast: Cast, target: Target) -> None:
        draft = make_scenario_version(cast.project, state=ScenarioState.DRAFT)

        with pytest.raises(Conflict):
            services.run_start(
                actor=cast.lead.as_actor(), project=cast.project, scenario_version=draft, target=target
            )

    def test_foreign_scenarios_and_targets_look_absent(
        self, cast: Cast, version: ScenarioVersion, target: Target
    ) -> None:
        foreign = Project.objects.exclude(pk=cast.project.pk).get()
        cases = ((make_scenario_version(foreign), target), (version, make_target(foreign)))
        for its_version, its_target in cases:
            with pytest.raises(NotFound):
                services.run_start(
                    actor=cast.lead.as_actor(),
                    project=cast.project,
                    scenario_version=its_version,
                    target=its_target,
                )

    def test_who_may_start(self, cast: Cast, version: ScenarioVersion, target: Target) -> None:
        for user, error in (
            (cast.viewer, NotPermitted),
            (cast.bystander, NotFound),
            (cast.outsider, NotFound),
        ):
            with pytest.raises(error):
                services.run_start(
                    actor=user.as_actor(), project=cast.project, scenario_version=version, target=target
                )

    def test_a_matrix_runs_the_newest_approved_version_of_each_scenario(
        self, cast: Cast, target: Target
    ) -> None:
        for slug in ("a", "a", "b"):
            make_scenario_version(cast.project, slug)
        make_scenario_version(cast.project, "b", state=ScenarioState.DRAFT)

        matrix = services.matrix_start(actor=cast.lead.as_actor(), project=cast.project, target=target)

        assert [str(run.scenario_version) for run in matrix.runs.order_by("number")] == ["a@2", "b@1"]
        assert services.matrix_cancel(actor=cast.lead.as_actor(), matrix=matrix) == 2
        assert set(matrix.runs.values_list("state", flat=True)) == {RunState.CANCELLED}

    def test_a_matrix_without_scenarios_says_so(self, cast: Cast, target: Target) -> None:
        with pytest.raises(Conflict, match="approved scenario"):
            services.matrix_start(actor=cast.lead.as_actor(), project=cast.project, target=target)


class TestEnding:
    def test_a_waiting_run_is_cancelled_at_once_and_an_active_one_is_asked(
        self, cast: Cast, version: ScenarioVersion
    ) -> None:
        actor = cast.contributor.as_actor()
        waiting = make_run(cast.project, scenario_version=version, state=RunState.QUEUED)
        active = make_run(cast.project, scenario_version=version, state=RunState.MEASURING)

        assert services.run_cancel(actor=actor, run=waiting).state == RunState.CANCELLED
        asked = services.run_cancel(actor=actor, run=active)
        assert asked.state == RunState.MEASURING
        assert asked.cancel_requested_at is not None
        services.run_cancel(actor=actor, run=active)
        assert AuditEntry.objects.filter(verb="run.cancel_requested").count() == 1
        with pytest.raises(Conflict):
            services.run_cancel(actor=actor, run=waiting)

    def test_superseding_keeps_the_run_and_tells_the_packages(
        self, cast: Cast, version: ScenarioVersion, listened: list[str]
    ) -> None:
        old = make_run(cast.project, scenario_version=version)
        new = make_run(cast.project, scenario_version=version)

        services.run_supersede(actor=cast.lead.as_actor(), run=old, by=new)

        old.refresh_from_db()
        assert (old.validity, old.superseded_by) == (Validity.SUPERSEDED, new)
        assert listened == ["run R1 was superseded by R2"]
        assert list(selectors.valid_runs(cast.project)) == [new]

    def test_what_does_not_count_supersedes_nothing(self, cast: Cast, version: ScenarioVersion) -> None:
        old = make_run(cast.project, scenario_version=version)
        invalid = make_run(cast.project, scenario_version=version, validity=Validity.INVALID)
        other = make_run(cast.project, scenario_version=make_scenario_version(cast.project))
        actor = cast.lead.as_actor()

        for by, error in ((invalid, Conflict), (other, InvalidInput), (old, InvalidInput)):
            with pytest.raises(error):
                services.run_supersede(actor=actor, run=old, by=by)


@pytest.fixture
def listened() -> Iterator[list[str]]:
    """What the listeners of changes are told."""
    told: list[str] = []

    def listen(project: Project, actor: Any, obj: Any, what: str) -> None:
        told.append(str(what))

    changes.on_change(listen)
    yield told
    changes._listeners.remove(listen)


class TestReaper:
    @pytest.fixture
    def dead(self, cast: Cast, version: ScenarioVersion) -> Run:
        """A run whose worker renewed its lease for the last time a minute ago."""
        run = make_run(
            cast.project,
            scenario_version=version,
            state=RunState.MEASURING,
            validity=Validity.PENDING,
            summary=None,
            lease_owner="w1/abc",
            lease_expires_at=timezone.now() - timedelta(seconds=60),
        )
        make_request_record(run, 0)
        return run

    def test_a_dead_run_is_interrupted_and_keeps_its_records(self, dead: Run) -> None:
        assert services.reap_expired_leases() == [dead.pk]

        dead.refresh_from_db()
        assert (dead.state, dead.validity, dead.lease_owner) == (RunState.INTERRUPTED, Validity.INVALID, "")
        assert "1 request that" in dead.error
        assert RequestRecord.objects.filter(run=dead).count() == 1
        assert AuditEntry.objects.get(verb="run.interrupted").actor["kind"] == "system"
        assert services.reap_expired_leases() == []

    def test_a_renewed_lease_is_left_alone(self, dead: Run) -> None:
        Run.objects.filter(pk=dead.pk).update(lease_expires_at=timezone.now() + timedelta(seconds=5))

        assert services.reap_expired_leases() == []

    def test_a_change_past_the_chain_is_found(self, cast: Cast, dead: Run) -> None:
        services.reap_expired_leases()
        assert audit.verify(cast.organisation.pk) == []

        Run.objects.filter(pk=dead.pk).update(state=RunState.COMPLETE)

        assert [problem.code for problem in audit.verify(cast.organisation.pk)] == ["state"]

    def test_a_queued_run_without_a_task_is_sent_again_once(
        self, cast: Cast, version: ScenarioVersion, target: Target
    ) -> None:
        run = services.run_start(
            actor=cast.lead.as_actor(), project=cast.project, scenario_version=version, target=target
        )
        later = timezone.now() + timedelta(minutes=5)

        assert services.requeue_lost_runs() == []
        assert services.requeue_lost_runs(now=later) == [run.pk]
        assert Run.objects.get(pk=run.pk).enqueued_at > run.created_at


def test_who_may_follow_the_live_streams(cast: Cast, version: ScenarioVersion, target: Target) -> None:
    matrix = services.matrix_start(actor=cast.lead.as_actor(), project=cast.project, target=target)
    run = matrix.runs.get()

    for may_follow, row in ((streams.may_follow_run, run), (streams.may_follow_matrix, matrix)):
        allowed = {
            user: may_follow(user.pk, str(row.pk)) for user in (cast.viewer, cast.bystander, cast.outsider)
        }
        assert allowed == {cast.viewer: True, cast.bystander: False, cast.outsider: False}
        assert not may_follow(cast.viewer.pk, "0")
        assert not may_follow(cast.viewer.pk, "x")
