"""A project's whole file: what it holds, who gets it, and that its verifier finds every change offline."""

import io
import json
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.core.files.base import ContentFile
from django.test import Client
from django.urls import reverse
from rest_framework.test import APIClient

from pocs.common import checkpoints, verify_bundle
from pocs.common.models import AuditEntry
from pocs.evidence import services as evidence_services
from pocs.evidence.choices import EvidenceType
from pocs.people.models import User
from pocs.projects import services as project_services
from pocs.reviews import services
from pocs.reviews.bundle import bundle_of
from pocs.reviews.choices import Slot
from tests.factories import Cast, make_ci_token
from tests.pocs.reviews import walk
from tests.stages import Stages

Files = dict[str, bytes]


@pytest.fixture
def exported(cast: Cast, stages: Stages) -> Files:
    return stages.reach("exported", lambda: export(cast))


def export(cast: Cast) -> Files:
    """The file of a project with a stale and a decided package, an attachment and a neighbour's entries."""
    walk.complete_plan(cast.project, cast.team)
    walk.advance(cast, walk.ProjectState.PLANNED)
    walk.advance(cast, walk.ProjectState.RUNNING)
    project_services.project_create(actor=cast.bystander.as_actor(), name="A neighbour")
    runs = walk.add_runs(cast)
    for kind, body in walk.bodies(cast, runs[0]).items():
        evidence = evidence_services.evidence_create(
            actor=cast.contributor.as_actor(), project=cast.project, type=kind, title=f"{kind.value} of it",
            body=body, runs=runs if kind == EvidenceType.RUNTIME else [],
            uploads=[ContentFile(b"a log\n", "a.log")] if kind == EvidenceType.RUNTIME else [],
        )  # fmt: skip
        walk.review(cast, evidence)
    walk.advance(cast, walk.ProjectState.EVIDENCE_COMPLETE)
    walk.write_findings(cast)
    walk.sign(cast, walk.freeze(cast), Slot.BUSINESS)
    services.conclusion_save(actor=cast.lead.as_actor(), project=cast.project, performance="Decode.")
    walk.to_decided(cast)
    with bundle_of(cast.auditor.as_actor(), cast.project.pk).file as file, zipfile.ZipFile(file) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def written(files: Files, folder: Path) -> Path:
    for name, octets in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(octets)
    return folder


def resigned(files: Files) -> Files:
    """The files with a list that fits them again, signed by somebody who stole the key."""
    listed = json.loads(files[verify_bundle.LIST])
    listed["files"] = [
        {"path": name, "size_bytes": len(octets), "sha256": verify_bundle.sha256(octets)}
        for name, octets in files.items()
        if name != verify_bundle.LIST
    ]
    statement = {name: value for name, value in listed.items() if name not in ("key", "signature")}
    return files | {verify_bundle.LIST: json.dumps(statement | checkpoints.sign(statement)).encode()}


def problems(files: Files, folder: Path, key: str = "") -> list[str]:
    return verify_bundle.verify(written(files, folder), key).problems


def changed(files: Files, name: str, change: Callable[[Any], None]) -> Files:
    value = json.loads(files[name])
    change(value)
    return files | {name: json.dumps(value).encode()}


def test_it_verifies_offline_by_its_own_verifier(exported: Files, tmp_path: Path) -> None:
    folder = written(exported, tmp_path / "unpacked")
    done = subprocess.run(
        [sys.executable, "-I", "-S", str(folder / "verify.py"), str(folder),
        "--key", checkpoints.public_key()],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "everything holds" in done.stdout
    archive = tmp_path / "bundle.zip"
    with zipfile.ZipFile(archive, "w") as packed:
        for name, octets in exported.items():
            packed.writestr(name, octets)
    bundle = verify_bundle.verify(archive)
    assert bundle.problems == []
    assert bundle.checked["packages"] == 2
    assert bundle.checked["signatures"] == 4
    assert bundle.checked["attachments"] == 2
    assert bundle.checked["checkpoints"] >= 1


def test_it_says_nothing_of_the_neighbours(exported: Files) -> None:
    lines = [json.loads(line) for line in exported["audit/chain.jsonl"].splitlines()]
    assert any("payload" not in line for line in lines)
    assert b"A neighbour" not in b"".join(exported.values())


def test_its_statement_is_one_of_in_toto(exported: Files) -> None:
    statement = json.loads(exported["statements/P2.json"])
    assert statement["_type"] == "https://in-toto.io/Statement/v1"
    assert statement["predicate"]["result"] == "PASSED"
    manifest = exported["packages/P2/manifest.json"]
    assert statement["subject"][0]["digest"]["sha256"] == verify_bundle.sha256(manifest)


def test_a_changed_lost_or_added_file_is_named(exported: Files, tmp_path: Path) -> None:
    some = exported | {"project.json": exported["project.json"] + b" ", "notes.txt": b"x"}
    del some["reviews.json"]
    found = "\n".join(problems(some, tmp_path))
    for name in (
        "project.json is not the file",
        "reviews.json is listed and missing",
        "notes.txt is in the archive",
    ):
        assert name in found


def test_another_key_is_not_believed(exported: Files, tmp_path: Path) -> None:
    other = verify_bundle.base64.b64encode(b"\x01" * 32).decode()
    assert any("another key" in problem for problem in problems(exported, tmp_path, other))


def _first_signature(package: Any, **values: Any) -> None:
    row = next(row for row in package["signatures"] if row["signed_at"])
    row.update(values)


FORGERIES: dict[str, tuple[str, Callable[[Any], None], str]] = {
    "signer": (
        "packages/P2/package.json",
        lambda p: _first_signature(p, signer=10**6),
        "given by someone else",
    ),
    "digest": ("packages/P2/package.json", lambda p: _first_signature(p, digest="0" * 64), "another digest"),
    "verdict": (
        "packages/P2/package.json",
        lambda p: _first_signature(p, verdict="rejected"),
        "no entry in the audit",
    ),
    "quorum": (
        "packages/P2/package.json",
        lambda p: p.update(signatures=[row for row in p["signatures"] if row["slot"] != "security"]),
        "lacks a signature of security",
    ),
    "manifest": (
        "packages/P2/manifest.json",
        lambda m: m["conclusion"].update(performance="Fine."),
        "its digest names",
    ),
    "run": ("runs/R1.json", lambda r: r["summary"].update(error_rate=0.5), "summary of run 1"),
}


@pytest.mark.parametrize("forgery", FORGERIES)
def test_a_forgery_under_a_stolen_key_is_found_by_what_binds_it(
    exported: Files, tmp_path: Path, forgery: str
) -> None:
    name, change, finding = FORGERIES[forgery]
    found = problems(resigned(changed(exported, name, change)), tmp_path)
    assert any(finding in problem for problem in found), found


def test_evidence_attachment_and_audit_are_bound_too(exported: Files, tmp_path: Path) -> None:
    evidence = next(name for name in exported if name.startswith("evidence/") and name.endswith("r1.json"))
    attachment = next(name for name in exported if name.startswith("attachments/"))
    lines = exported["audit/chain.jsonl"].splitlines()
    own = next(number for number, line in enumerate(lines) if b'"payload"' in line)
    lines[own] = lines[own].replace(b'"verb":"', b'"verb":"x')
    some = exported | {
        evidence: exported[evidence].replace(b"Stated", b"Denied").replace(b"Only internal", b"All"),
        attachment: b"another log\n",
        "audit/chain.jsonl": b"\n".join([*lines[:3], *lines[4:]]) + b"\n",
    }
    found = "\n".join(problems(resigned(some), tmp_path))
    for part in ("is lost or changed", "audit: entries 4 to 4 are missing", "was changed"):
        assert part in found


def test_a_cut_chain_is_found_by_its_checkpoint(exported: Files, tmp_path: Path) -> None:
    lines = exported["audit/chain.jsonl"].splitlines()
    some = exported | {"audit/chain.jsonl": b"\n".join(lines[:-2]) + b"\n"}
    assert any("a checkpoint covers" in problem for problem in problems(resigned(some), tmp_path))


def test_what_is_no_bundle(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert verify_bundle.main([str(tmp_path / "nothing.zip")]) == 2
    (tmp_path / "bundle.json").write_text("{}")
    assert verify_bundle.main([str(tmp_path)]) == 2
    (tmp_path / "bundle.json").write_text(json.dumps({"schema": verify_bundle.SCHEMA, "files": [{}]}))
    assert verify_bundle.main([str(tmp_path), "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["holds"] is False


def test_who_gets_it(cast: Cast, page_as: Callable[[User], Client], api_as: Callable[..., APIClient]) -> None:
    page, api = (
        reverse("reviews:bundle", args=[cast.project.pk]),
        reverse("api-bundle", args=[cast.project.pk]),
    )
    for person in (cast.contributor, cast.viewer, cast.business, cast.decision_maker):
        assert page_as(person).get(page).status_code == 403
        assert api_as(person).get(api).status_code == 403
    for stranger in (cast.bystander, cast.outsider):
        assert page_as(stranger).get(page).status_code == 404
    _, plaintext = make_ci_token(cast.project, sponsor=cast.lead, scopes=("read", "runs:write"))
    assert api_as(token=plaintext).get(api).status_code == 403
    for person in (cast.lead, cast.auditor):
        answer = api_as(person).get(api)
        assert answer["Content-Type"] == "application/zip"
        assert zipfile.ZipFile(io.BytesIO(b"".join(answer.streaming_content))).testzip() is None
    assert AuditEntry.objects.filter(verb="project.exported").count() == 2


@pytest.mark.parametrize(
    ("key", "message", "signature"),
    [  # RFC 8032, 7.1: tests 1 to 3
        ("d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a", "",
         "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b"),
        ("3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c", "72",
         "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00"),
        ("fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025", "af82",
         "6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac18ff9b538d16f290ae67f760984dc6594a7c15e9716ed28dc027beceea1ec40a"),
    ],
)  # fmt: skip
def test_signatures_are_those_of_rfc_8032(key: str, message: str, signature: str) -> None:
    octets = bytes.fromhex(signature)
    assert verify_bundle.ed25519_holds(bytes.fromhex(key), bytes.fromhex(message), octets)
    assert not verify_bundle.ed25519_holds(bytes.fromhex(key), bytes.fromhex(message) + b"x", octets)
    assert not verify_bundle.ed25519_holds(bytes.fromhex(key), bytes.fromhex(message), octets[:63] + b"\xff")
    assert not verify_bundle.ed25519_holds(b"\xff" * 32, b"", octets)
