"""How the stored names of the reviews' objects read in the history, in the reader's language."""

import re

from django.utils.translation import gettext as _

from pocs.reviews.choices import Slot

_PACKAGE = re.compile(r"P(\d+)")
_SIGNOFF = re.compile(r"P(\d+) (\w+)")
_GATE = re.compile(r"(G\d+): (.*)", re.DOTALL)


def package_name(label: str) -> str:
    """`P1` as "Package 1"."""
    found = _PACKAGE.fullmatch(label)
    return _("Package %(number)s") % {"number": found.group(1)} if found else label


def signoff_name(label: str) -> str:
    """`P1 security` as "the Security signature of package 1"."""
    found = _SIGNOFF.fullmatch(label)
    if found is None or found.group(2) not in Slot.values:
        return label
    names = {"slot": Slot(found.group(2)).label, "number": found.group(1)}
    return _("%(slot)s signature of package %(number)s") % names


def waiver_name(label: str) -> str:
    """`G3: the reason` as "gate G3: the reason"."""
    found = _GATE.fullmatch(label)
    return _("gate %(code)s: %(text)s") % {"code": found.group(1), "text": found.group(2)} if found else label


NAMES = {
    "reviews.package": package_name,
    "reviews.signoff": signoff_name,
    "reviews.waiver": waiver_name,
    "reviews.objection": waiver_name,
}
WATCHED = {
    "reviews.package": "project__organisation_id",
    "reviews.signoff": "package__project__organisation_id",
    "reviews.waiver": "project__organisation_id",
    "reviews.decision": "project__organisation_id",
    "reviews.objection": "package__project__organisation_id",
    "reviews.followthroughtask": "project__organisation_id",
    "reviews.observation": "project__organisation_id",
}
