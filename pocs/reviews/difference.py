"""What differs between two manifests, said in the parts that a signer knows."""

from dataclasses import dataclass
from typing import Any, Literal

from django.utils.translation import gettext_lazy as _

from pocs.common.errors import Text
from pocs.reviews.readable import ManifestSection, manifest_sections

#: part of a manifest -> (its title, the key that tells its entries apart, the keys worth naming)
PARTS: dict[str, tuple[Text, str, tuple[str, ...]]] = {
    "evidence": (_("Evidence"), "id", ("title", "revision")),
    "scenarios": (_("Scenario versions"), "version", ("version",)),
    "runs": (_("Runs"), "id", ("number", "scenario")),
    "answers": (_("Answers judged by the business"), "id", ("sample", "run", "request")),
    "waivers": (_("Waivers"), "id", ("guard", "scope")),
}
#: further parts, compared line by line as a reader sees them
LINE_PARTS = ("project", "affected", "readiness", "declarations", "conclusion", "business_result", "policy")


@dataclass(frozen=True)
class Difference:
    """One entry or line that was added, removed or changed between two manifests."""

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
    new_sections = {section.key: section for section in manifest_sections(new)}
    for section in manifest_sections(old):
        if section.key in LINE_PARTS:
            found += _lines(section, new_sections[section.key])
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


def _lines(old: ManifestSection, new: ManifestSection) -> list[Difference]:
    """Lines by their label; several of one label (affected applications) by label and text."""
    several: set[str] = set()
    for section in (old, new):
        labels = [str(line.label) for line in section.lines]
        several |= {label for label in labels if labels.count(label) > 1}
    before, after = _by_label(old, several), _by_label(new, several)
    found = []
    for key in dict.fromkeys([*before, *after]):
        one, other = before.get(key), after.get(key)
        if one != other:
            kind: Literal["added", "removed", "changed"] = "changed"
            if one is None or other is None:
                kind = "added" if one is None else "removed"
            found.append(Difference(old.title, key[0], kind, _short(one), _short(other)))
    return found


def _by_label(section: ManifestSection, several: set[str]) -> dict[tuple[str, str], str]:
    return {
        (str(line.label), str(line.text) if str(line.label) in several else ""): str(line.text)
        for line in section.lines
    }


def _short(value: Any) -> str:
    text = "" if value is None else str(value)
    return text if len(text) <= 160 else text[:159] + "…"
