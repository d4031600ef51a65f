"""What differs between two manifests, said in the parts that a signer knows."""

from dataclasses import dataclass
from typing import Any, Literal

from django.utils.translation import gettext_lazy as _

from pocs.common.errors import Text

#: part of a manifest -> (its title, the key that tells its entries apart, the keys worth naming)
PARTS: dict[str, tuple[Text, str, tuple[str, ...]]] = {
    "evidence": (_("Evidence"), "id", ("title", "revision")),
    "scenarios": (_("Scenario versions"), "version", ("version",)),
    "runs": (_("Runs"), "id", ("number", "scenario")),
    "waivers": (_("Waivers"), "id", ("guard", "scope")),
}
TEXT_PARTS: dict[str, Text] = {
    "project": _("Project"),
    "conclusion": _("Conclusion"),
    "business_result": _("Business result"),
    "policy": _("Policy in force"),
}


@dataclass(frozen=True)
class Difference:
    """One entry or field that was added, removed or changed between two manifests."""

    part: Text
    what: str
    kind: Literal["added", "removed", "changed"]
    before: str = ""
    after: str = ""


def manifest_difference(old: dict[str, Any], new: dict[str, Any]) -> list[Difference]:
    """Differences from `old` to `new`, part by part; the package number itself is not one."""
    found: list[Difference] = []
    for key, (title, identity, names) in PARTS.items():
        before = {entry[identity]: entry for entry in old.get(key, [])}
        after = {entry[identity]: entry for entry in new.get(key, [])}
        for entry_id in sorted({*before, *after}, key=str):
            one, other = before.get(entry_id), after.get(entry_id)
            if one != other:
                found.append(_entry(title, key, one, other, names))
    for key, title in TEXT_PARTS.items():
        found += _fields(title, old.get(key) or {}, new.get(key) or {})
    return found


def _label(key: str, entry: dict[str, Any] | None, names: tuple[str, ...]) -> str:
    if entry is None:
        return ""
    if key == "evidence":
        return f"{entry['title']} r{entry['revision']}"
    if key == "runs":
        return f"R{entry['number']} {entry['scenario']}"
    return " ".join(str(entry[name]) for name in names)


def _entry(
    title: Text,
    key: str,
    one: dict[str, Any] | None,
    other: dict[str, Any] | None,
    names: tuple[str, ...],
) -> Difference:
    before, after = _label(key, one, names), _label(key, other, names)
    if one is None:
        return Difference(title, after, "added", after=after)
    if other is None:
        return Difference(title, before, "removed", before=before)
    if before == after:  # the label hides what changed: name the fields
        fields = sorted(name for name in {*one, *other} if one.get(name) != other.get(name))
        return Difference(
            title,
            after,
            "changed",
            before=", ".join(f"{name}: {_short(one.get(name))}" for name in fields),
            after=", ".join(f"{name}: {_short(other.get(name))}" for name in fields),
        )
    return Difference(title, after, "changed", before=before, after=after)


def _fields(title: Text, one: dict[str, Any], other: dict[str, Any]) -> list[Difference]:
    return [
        Difference(title, name, "changed", before=_short(one.get(name)), after=_short(other.get(name)))
        for name in sorted({*one, *other})
        if one.get(name) != other.get(name)
    ]


def _short(value: Any) -> str:
    text = "" if value is None else str(value)
    return text if len(text) <= 160 else text[:159] + "…"
