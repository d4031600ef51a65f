"""Whether a body is well formed, which any draft must be, and what a submission still lacks.

Errors point into `{"body": …, "runs": …}` by JSON pointer, as the API receives it.
"""

import math
from collections.abc import Callable, Iterable
from typing import Any

from django.utils.translation import gettext as _

from pocs.common.errors import FieldError, InvalidInput, Text
from pocs.evidence.bodies import (
    ITEMS_MAX,
    LINE_MAX_CHARACTERS,
    MAP_MAX_DEPTH,
    SCHEMAS,
    TEXT_MAX_CHARACTERS,
    BodyField,
    captured_configuration,
    empty_value,
    field_of,
)
from pocs.evidence.choices import EvidenceType, ResponsibilityKind
from pocs.people.models import Team, User
from pocs.projects.models import Project
from pocs.runs.models import Run

#: notes one wrong value and gives back its empty form
Wrong = Callable[[str, str], Any]

#: what a responsibility row needs besides subject and team, by its kind
ROW_NEEDS = {ResponsibilityKind.ALERT.value: "alert_route", ResponsibilityKind.HANDLER.value: "on_call"}


def clean(*, type: EvidenceType | str, body: Any, project: Project) -> dict[str, Any]:
    """The body in its stored form; raises InvalidInput with one FieldError per wrong place.

    Runs must be of the project, teams and people of its organisation.
    """
    errors: list[FieldError] = []
    cleaned = _clean_object(SCHEMAS[EvidenceType(type)], body, "/body", project, errors)
    if not errors and type == EvidenceType.CONFIGURATION:
        _check_captured(cleaned, errors)
    if errors:
        raise InvalidInput(_("The evidence is not valid."), errors)
    return cleaned


def missing_fields(
    *, type: EvidenceType | str, body: dict[str, Any], runs: Iterable[Run]
) -> list[FieldError]:
    """What a submission of this body with these runs still lacks, by JSON pointer."""
    kind = EvidenceType(type)
    found = [
        _lacks(f"/body/{field.name}", field.label)
        for field in SCHEMAS[kind]
        if field.required and not _written(body.get(field.name))
    ]
    if kind == EvidenceType.RUNTIME and not list(runs):
        found.append(FieldError("/runs", "required", _("Attach at least one complete and valid run.")))
    if kind == EvidenceType.RESPONSIBILITY:
        found += _missing_in_rows(body.get("rows") or [])
    return found


def _lacks(pointer: str, label: Text) -> FieldError:
    return FieldError(pointer, "required", _("“%(field)s” is missing.") % {"field": label})


def _written(value: Any) -> bool:
    return value.strip() != "" if isinstance(value, str) else value not in (None, [], {})


def _missing_in_rows(rows: list[dict[str, Any]]) -> list[FieldError]:
    """Columns that a row lacks for its kind, and kinds that no row covers."""
    columns = {column.name: column for column in SCHEMAS[EvidenceType.RESPONSIBILITY][0].columns}
    found = []
    for index, row in enumerate(rows):
        needed = ["kind", "subject", "team"]
        if row["kind"] in ROW_NEEDS:
            needed.append(ROW_NEEDS[row["kind"]])
        found += [
            FieldError(
                f"/body/rows/{index}/{name}",
                "required",
                _("Row %(row)d: “%(field)s” is missing.") % {"row": index + 1, "field": columns[name].label},
            )
            for name in needed
            if not _written(row[name])
        ]
    present = {row["kind"] for row in rows}
    found += [
        FieldError("/body/rows", "required", _("No row of the kind “%(kind)s”.") % {"kind": kind.label})
        for kind in ResponsibilityKind
        if rows and kind not in present
    ]
    return found


def _clean_object(
    fields: tuple[BodyField, ...], value: Any, pointer: str, project: Project, errors: list[FieldError]
) -> dict[str, Any]:
    if not isinstance(value, dict):
        errors.append(FieldError(pointer, "invalid", _("An object is expected here.")))
        return {}
    known = {field.name for field in fields}
    for name in sorted(set(map(str, value)) - known):
        errors.append(
            FieldError(
                f"{pointer}/{name}", "unknown", _("There is no field “%(name)s” here.") % {"name": name}
            )
        )
    return {
        field.name: _clean_value(
            field, value.get(field.name, empty_value(field)), f"{pointer}/{field.name}", project, errors
        )
        for field in fields
    }


def _clean_value(
    field: BodyField, value: Any, pointer: str, project: Project, errors: list[FieldError]
) -> Any:
    """The stored form of one value; a wrong one is noted in `errors` and returned empty."""

    def wrong(code: str, detail: str) -> Any:
        errors.append(FieldError(pointer, code, detail))
        return empty_value(field)

    if field.kind == "rows":
        rows = value if _is_list(value, wrong) else []
        return [
            _clean_object(field.columns, row, f"{pointer}/{index}", project, errors)
            for index, row in enumerate(rows)
        ]
    if field.kind in _PLAIN_KINDS:
        return _PLAIN_KINDS[field.kind](field, value, wrong)
    if value is None or value == "":
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not 0 < value < 2**63:
        return wrong("invalid", _("An id is expected here."))
    refusal = _REFERENCES[field.kind](project, value)
    return wrong("not_found", refusal) if refusal else value


def _clean_text(field: BodyField, value: Any, wrong: Wrong) -> Any:
    longest = TEXT_MAX_CHARACTERS if field.kind == "text" else LINE_MAX_CHARACTERS
    if not isinstance(value, str) or "\x00" in value:
        return wrong("invalid", _("A text is expected here."))
    text = value.replace("\r\n", "\n").strip()
    if len(text) > longest:
        detail = _("At most %(max)d characters; this has %(now)d.") % {"max": longest, "now": len(text)}
        return wrong("max_length", detail)
    return text


def _clean_choice(field: BodyField, value: Any, wrong: Wrong) -> Any:
    if value in ("", *field.choices):
        return value
    return wrong("choice", _("One of: %(choices)s.") % {"choices": ", ".join(field.choices)})


def _clean_map(field: BodyField, value: Any, wrong: Wrong) -> Any:
    if isinstance(value, dict) and _is_plain(value, MAP_MAX_DEPTH):
        return value
    return wrong("invalid", _("An object of settings is expected here."))


def _clean_lines(field: BodyField, value: Any, wrong: Wrong) -> Any:
    if not _is_list(value, wrong):
        return []
    if any(not isinstance(item, str) or len(item) > LINE_MAX_CHARACTERS or "\x00" in item for item in value):
        return wrong("invalid", _("A list of short texts is expected here."))
    return [item.strip() for item in value if item.strip()]


_PLAIN_KINDS: dict[str, Callable[[BodyField, Any, Wrong], Any]] = {
    "text": _clean_text,
    "line": _clean_text,
    "digest": _clean_text,
    "choice": _clean_choice,
    "map": _clean_map,
    "lines": _clean_lines,
}


def _is_list(value: Any, wrong: Wrong) -> bool:
    if isinstance(value, list) and len(value) <= ITEMS_MAX:
        return True
    wrong("invalid", _("A list of at most %(max)d entries is expected here.") % {"max": ITEMS_MAX})
    return False


def _is_plain(value: Any, depth: int) -> bool:
    """Whether a value is JSON of limited depth with finite numbers only."""
    if isinstance(value, dict):
        return depth > 0 and all(isinstance(k, str) and _is_plain(v, depth - 1) for k, v in value.items())
    if isinstance(value, list):
        return depth > 0 and all(_is_plain(item, depth - 1) for item in value)
    if isinstance(value, str):
        return "\x00" not in value
    return value is None or (isinstance(value, (int, float)) and math.isfinite(value))


def _refuse_run(project: Project, pk: int) -> str:
    run = Run.objects.filter(project=project, pk=pk).first()
    if run is None:
        return _("There is no such run in this project.")
    if not run.counts_as_evidence:
        return _("This run is not complete and valid, so it is no evidence.")
    return "" if run.configuration else _("This run recorded no configuration.")


def _refuse_team(project: Project, pk: int) -> str:
    known = Team.objects.filter(organisation_id=project.organisation_id, pk=pk).exists()
    return "" if known else _("There is no such team in your organisation.")


def _refuse_person(project: Project, pk: int) -> str:
    known = User.objects.filter(organisation_id=project.organisation_id, is_active=True, pk=pk).exists()
    return "" if known else _("There is no such active person in your organisation.")


#: why an id may not stand in a field of this kind; empty when it may
_REFERENCES: dict[str, Callable[[Project, int], str]] = {
    "run": _refuse_run,
    "team": _refuse_team,
    "user": _refuse_person,
}


def _check_captured(body: dict[str, Any], errors: list[FieldError]) -> None:
    """What the run recorded is taken over as it is; only what it did not record may be typed."""
    if body["source_run"] is None:
        return
    captured = captured_configuration(Run.objects.get(pk=body["source_run"]))
    for name, value in captured.items():
        empty = empty_value(field_of(EvidenceType.CONFIGURATION, name))
        if body[name] in (empty, value):
            body[name] = value
        elif value == empty and name != "configuration_digest":
            continue  # the run did not record it, so it is typed
        else:
            errors.append(
                FieldError(
                    f"/body/{name}",
                    "differs",
                    _("This differs from what the run recorded; it cannot be edited."),
                )
            )


def run_refusal(run: Run) -> str:
    """Why a run does not count as evidence."""
    return _("%(run)s is “%(state)s” and “%(validity)s”: only complete and valid runs are evidence.") % {
        "run": run,
        "state": run.get_state_display(),
        "validity": run.get_validity_display(),
    }
