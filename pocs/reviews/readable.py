"""A manifest as people read it: sections of labelled lines, in the reader's language."""

from dataclasses import dataclass, field
from typing import Any

from django.urls import reverse
from django.utils.text import capfirst
from django.utils.translation import gettext as _

from pocs.common.errors import Text
from pocs.evidence.choices import EvidenceType
from pocs.projects.choices import AffectedKind, DeclarationKind, ReadinessKind, ScenarioKind
from pocs.projects.models import Project
from pocs.reviews.choices import Slot
from pocs.reviews.manifest import PROJECT_FIELDS
from pocs.reviews.models import BusinessResult, Conclusion
from pocs.runs.choices import AnswerVerdict, RunState, Validity


@dataclass(frozen=True)
class Line:
    """One line: what it is about, what it says, its digest and where it is found."""

    label: Text
    text: Text = ""
    sha256: str = ""
    url: str = ""


@dataclass(frozen=True)
class ManifestSection:
    """One part of a manifest under its title."""

    key: str
    title: Text
    lines: list[Line] = field(default_factory=list)


def manifest_sections(manifest: dict[str, Any]) -> list[ManifestSection]:
    """The parts of a manifest in the order a signer asks for them."""
    project = manifest["project"]
    answers = [_answer(entry) for entry in manifest.get("answers", [])]
    return [
        *([ManifestSection("answers", _("Answers judged by the business"), answers)] if answers else []),
        ManifestSection("evidence", _("Evidence"), [_evidence(entry) for entry in manifest["evidence"]]),
        ManifestSection("runs", _("Runs"), [_run(entry) for entry in manifest["runs"]]),
        ManifestSection(
            "scenarios", _("Scenario versions"), [_scenario(entry) for entry in manifest["scenarios"]]
        ),
        ManifestSection("conclusion", _("Conclusion"), _texts(Conclusion, manifest["conclusion"])),
        ManifestSection(
            "business_result", _("Business result"), _texts(BusinessResult, manifest["business_result"])
        ),
        ManifestSection("project", _("Project"), _project(project)),
        ManifestSection("affected", _("Affected applications, teams and data"), _affected(project)),
        ManifestSection("readiness", _("Readiness"), _readiness(project)),
        ManifestSection("declarations", _("Declarations"), _declarations(project)),
        ManifestSection("waivers", _("Waivers in force"), [_waiver(entry) for entry in manifest["waivers"]]),
        ManifestSection("policy", _("Policy in force"), _policy(manifest["policy"])),
    ]


def _label(choices: Any, value: str) -> Text:
    return choices(value).label if value in choices.values else value


def _evidence(entry: dict[str, Any]) -> Line:
    return Line(
        _label(EvidenceType, entry["type"]),
        f"{entry['title']} r{entry['revision']}",
        entry["sha256"],
        reverse("evidence:detail", args=[entry["id"]]),
    )


def _answer(entry: dict[str, Any]) -> Line:
    text = f"{_label(AnswerVerdict, entry['verdict'])} {entry['reason']}".strip()
    return Line(f"{entry['sample']} · R{entry['run']} #{entry['request']}", text)


def _run(entry: dict[str, Any]) -> Line:
    text = "{} · {} · {}".format(
        entry["scenario"], _label(RunState, entry["state"]), _label(Validity, entry["validity"])
    )
    return Line(
        f"R{entry['number']}", text, entry["records_sha256"] or "", reverse("runs:detail", args=[entry["id"]])
    )


def _scenario(entry: dict[str, Any]) -> Line:
    return Line(entry["version"], _label(ScenarioKind, entry["kind"]), entry["sha256"])


def _texts(model: type[Conclusion] | type[BusinessResult], values: dict[str, str] | None) -> list[Line]:
    return [
        Line(capfirst(str(model._meta.get_field(name).verbose_name)), text)  # type: ignore[union-attr]
        for name, text in (values or {}).items()
        if text
    ]


def _project(project: dict[str, Any]) -> list[Line]:
    lines = []
    for name in PROJECT_FIELDS:
        value = project.get(name)
        if isinstance(value, bool):
            value = _("yes") if value else _("no")
        if value:
            lines.append(Line(capfirst(str(Project._meta.get_field(name).verbose_name)), value))  # type: ignore[union-attr]
    return lines


def _affected(project: dict[str, Any]) -> list[Line]:
    return [
        Line(
            _label(AffectedKind, item["kind"]),
            " · ".join(filter(None, (item["name"], item["owner"], item["note"]))),
        )
        for item in project["affected"]
    ]


def _readiness(project: dict[str, Any]) -> list[Line]:
    return [
        Line(
            _label(ReadinessKind, item["kind"]),
            " · ".join(
                filter(None, (_("ready") if item["ready"] else _("not ready"), item["basis"], item["team"]))
            ),
        )
        for item in project["readiness"]
    ]


def _declarations(project: dict[str, Any]) -> list[Line]:
    return [
        Line(
            _label(DeclarationKind, item["kind"]),
            " · ".join(filter(None, (item["statement"], item["source"]))),
        )
        for item in project["declarations"]
    ]


def _waiver(entry: dict[str, Any]) -> Line:
    text = _("%(scope)s — %(reason)s (granted by %(who)s, until %(until)s)") % {
        "scope": entry["scope"],
        "reason": entry["reason"],
        "who": entry["granted_by"],
        "until": entry["expires_at"][:10],
    }
    return Line(entry["guard"], text)


def _policy(policy: dict[str, Any]) -> list[Line]:
    names = dict(Slot.choices)
    signatures = "; ".join(
        f"{names.get(slot, slot)}: {item['quorum']}" for slot, item in policy["signatures"].items()
    )
    days = {
        _("Days in which a signature is given"): policy.get("request_days"),
        _("Days in which an approval is decided upon"): policy.get("signature_days"),
        _("Days for objections before a decision is confirmed"): policy.get("objection_days"),
    }
    return [
        Line(_("Signatures"), signatures),
        *(Line(label, str(value)) for label, value in days.items() if value is not None),
        Line(_("Rules"), _("Contributors do not sign; one person fills one slot; a rejection is a veto.")),
        Line(_("Never waived"), ", ".join(policy["never_waived"])),
    ]
