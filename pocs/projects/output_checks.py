"""What a scenario asks of its answers (M20, Q14): checks of each answer, and a set with exact answers."""

import csv
import io
import json
from dataclasses import asdict, dataclass
from typing import Any

import jsonschema
import regex
from django.utils.translation import gettext as _

from pocs.common.errors import FieldError, InvalidInput
from pocs.projects.scenario_fields import Reader

CHECK_KINDS = ("contains", "pattern", "json_schema", "similarity")
MATCHES = ("exact", "contains")
VALUE_MAX, PATTERN_MAX = 20_000, 500
CHECKS_MAX, QUALITY_MAX = 20, 500
QUALITY_BYTES_MAX = 5 * 2**20


@dataclass(frozen=True, kw_only=True)
class Check:
    """One check of every answer. `value`: the text, the pattern, the schema as JSON, or the reference."""

    kind: str
    value: str
    min: float = 0.8  # similarity only: the least that passes (0–1)

    def as_json(self) -> dict[str, Any]:
        found = asdict(self)
        if self.kind != "similarity":
            del found["min"]
        return found


@dataclass(frozen=True, kw_only=True)
class QualityItem:
    """A prompt with the answer that is right."""

    prompt: str
    answer: str


def read_check(read: Reader) -> Check:
    kind = read.choice("kind", CHECK_KINDS)
    value = read.taken("value")
    least = read.number("min", 0, 1, default=0.8)
    if not isinstance(value, str) or not value.strip() or len(value) > VALUE_MAX:
        text = _("This must be a text of 1 to %(most)s characters.") % {"most": VALUE_MAX}
        read.wrong("value", "invalid", text)
    elif (wrong := _value_wrong(kind, value)) is not None:
        read.wrong("value", "invalid", wrong)
    return Check(kind=kind, value=value or "", min=least)


def _value_wrong(kind: str, value: str) -> str | None:
    if kind == "pattern":
        if len(value) > PATTERN_MAX:
            return _("A pattern has at most %(most)s characters.") % {"most": PATTERN_MAX}
        try:
            regex.compile(value)
        except regex.error as error:
            return _("“%(value)s” is no regular expression: %(why)s.") % {"value": value[:80], "why": error}
    if kind == "json_schema":
        try:
            schema = json.loads(value)
            if "patternProperties" in value:  # their patterns cannot be bounded in time
                return _("A schema with patternProperties is not supported here.")
            jsonschema.Draft202012Validator.check_schema(schema)
        except (ValueError, RecursionError, jsonschema.SchemaError) as error:
            why = str(getattr(error, "message", error))[:120]
            return _("This is no JSON schema: %(why)s.") % {"why": why}
    return None


def read_quality(read: Reader) -> QualityItem:
    for name, most in (("prompt", VALUE_MAX), ("answer", 2_000)):
        value = read.taken(name)
        if not isinstance(value, str) or not value.strip() or len(value) > most:
            text = _("This must be a text of 1 to %(most)s characters.") % {"most": most}
            read.wrong(name, "invalid", text)
    return QualityItem(prompt=str(read.data.get("prompt")), answer=str(read.data.get("answer")))


def quality_of_file(name: str, content: bytes) -> list[dict[str, str]]:
    """The prompts and answers of an uploaded JSONL or CSV file; InvalidInput says what is wrong where.

    A byte order mark is skipped; text is UTF-8, else GB 18030.
    """
    if len(content) > QUALITY_BYTES_MAX:
        raise _wrong(_("The file has more than %(most)s MiB.") % {"most": QUALITY_BYTES_MAX // 2**20})
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        try:
            text = content.decode("gb18030")
        except UnicodeDecodeError:
            raise _wrong(_("The file is neither UTF-8 nor GB 18030 text.")) from None
    rows = _csv_rows(text) if name.lower().endswith(".csv") else _jsonl_rows(text)
    if not rows:
        raise _wrong(_("The file holds no prompt with an answer."))
    if len(rows) > QUALITY_MAX:
        text = _("At most %(most)s entries; there are %(count)s.")
        raise _wrong(text % {"most": QUALITY_MAX, "count": len(rows)})
    return rows


def _csv_rows(text: str) -> list[dict[str, str]]:
    reader = csv.DictReader(io.StringIO(text))
    columns = {str(name).strip().lower(): name for name in reader.fieldnames or ()}
    if not {"prompt", "answer"} <= columns.keys():
        raise _wrong(_("A CSV file needs the columns prompt and answer."))
    try:
        lines = list(reader)
    except csv.Error as error:
        raise _wrong(_("The CSV file cannot be read: %(why)s.") % {"why": error}) from error
    return [_row(index, row[columns["prompt"]], row[columns["answer"]]) for index, row in enumerate(lines, 2)]


def _jsonl_rows(text: str) -> list[dict[str, str]]:
    rows = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        try:
            found = json.loads(line)
        except (ValueError, RecursionError):
            raise _wrong(_("Line %(number)s is no JSON object.") % {"number": number}) from None
        if not isinstance(found, dict):
            raise _wrong(_("Line %(number)s is no JSON object.") % {"number": number})
        rows.append(_row(number, found.get("prompt"), found.get("answer")))
    return rows


def _row(number: int, prompt: Any, answer: Any) -> dict[str, str]:
    if isinstance(answer, bool | int | float):
        answer = json.dumps(answer)
    if not isinstance(prompt, str) or not isinstance(answer, str) or not prompt.strip() or not answer.strip():
        raise _wrong(_("Line %(number)s needs a prompt and an answer.") % {"number": number})
    return {"prompt": prompt.strip(), "answer": answer.strip()}


def _wrong(text: str) -> InvalidInput:
    return InvalidInput(text, [FieldError("/spec/quality_file", "invalid", text)])
