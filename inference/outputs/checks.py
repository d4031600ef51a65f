"""The checks of one answer, each bounded in time: no pattern and no schema can hold up a run.

- `contains`: the text occurs in the answer, whatever the case; runs of white space count as one space.
- `pattern`: a regular expression (module `regex`) matches somewhere in the answer, within 0.25 s.
- `json_schema`: the answer is JSON, alone or in its one fenced block, and valid under JSON Schema 2020-12.
  References are followed inside the schema only, at most 2,000 of them an answer.
- `similarity`: 1 − (insertions + deletions) ÷ (characters of both) between the answer and a reference, both
  with white space and case evened out: rapidfuzz's normalised indel similarity (0–1), at least `min`.
"""

import json
import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import jsonschema
import regex
from rapidfuzz.distance import Indel
from referencing import Registry

#: of a longer answer only so many characters are looked at
ANSWER_CHARACTERS = 20_000
PATTERN_LIMIT_S = 0.25
REFERENCES_MAX = 2_000
_FENCED = re.compile(r"```(?:json)?[ \t]*\n(.*?)```", re.DOTALL)


class Undecided(Exception):
    """The check took too long for this answer; its words say which bound was met."""


Check = Callable[[str], str | None]  # None: passed; else the code of what is wrong


def check_of(given: Mapping[str, Any]) -> Check:
    """The check that a scenario describes; raises ValueError for what is none."""
    kind, value = given["kind"], given["value"]
    make = {"contains": _contains, "pattern": _pattern, "json_schema": _json_schema}.get(kind)
    if make is not None:
        return make(value)
    if kind == "similarity":
        return _similarity(value, float(given.get("min", 0.8)))
    raise ValueError(f"there is no check {kind!r}")


def even(text: str) -> str:
    """Text as it is compared: compatibility forms, case and white space evened out."""
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


def _contains(value: str) -> Check:
    wanted = even(value)
    return lambda answer: None if wanted in even(answer) else "text_absent"


def _pattern(value: str) -> Check:
    compiled = regex.compile(value)

    def check(answer: str) -> str | None:
        try:
            return None if compiled.search(answer, timeout=PATTERN_LIMIT_S) else "pattern_absent"
        except TimeoutError:
            raise Undecided("pattern_time") from None

    return check


def _similarity(reference: str, least: float) -> Check:
    wanted = even(reference)

    def check(answer: str) -> str | None:
        found = Indel.normalized_similarity(wanted, even(answer))
        return None if found >= least else "too_different"

    return check


def _json_schema(value: str) -> Check:
    schema = json.loads(value)
    if "patternProperties" in value:  # the library tries their patterns itself, without a bound
        raise ValueError("patternProperties are not supported in a check")

    def check(answer: str) -> str | None:
        try:
            document = json.loads(_json_in(answer))
        except (ValueError, RecursionError):
            return "no_json"
        validator = _bounded()(schema, registry=Registry())
        try:
            return None if validator.is_valid(document) else "schema_broken"
        except (RecursionError, TimeoutError):
            raise Undecided("schema_size") from None
        except Exception as error:  # a reference that leads nowhere is the scenario's fault, not the answer's
            raise Undecided("schema_reference") from error

    return check


def _json_in(answer: str) -> str:
    blocks = _FENCED.findall(answer)
    return blocks[0] if len(blocks) == 1 else answer


def _bounded() -> Any:
    """A validator class whose references are counted and whose patterns are bounded in time."""
    base = jsonschema.Draft202012Validator
    left = [REFERENCES_MAX]

    def counted(name: str) -> Callable[..., Iterator[Any]]:
        def follow(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[Any]:
            left[0] -= 1
            if left[0] < 0:
                raise TimeoutError
            yield from base.VALIDATORS[name](validator, value, instance, schema) or ()

        return follow

    def pattern(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[Any]:
        if isinstance(instance, str) and not regex.search(value, instance, timeout=PATTERN_LIMIT_S):
            yield jsonschema.ValidationError("the pattern does not match")

    return jsonschema.validators.extend(
        base,
        {
            "$ref": counted("$ref"),
            "$dynamicRef": counted("$dynamicRef"),
            "pattern": pattern,
        },
    )
