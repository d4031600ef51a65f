"""The demo people and their passwords."""

import json
import os
import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pocs.people.models import Organisation, Team, User
from pocs.people.roles import ProjectRole

R = ProjectRole


@dataclass(frozen=True)
class Persona:
    """One demo account: its key in demo-accounts.json, its name, its team and its roles on the project."""

    key: str
    username: str
    given_name: str
    family_name: str
    team: str
    roles: tuple[ProjectRole, ...]
    language: str = ""


INFERENCE_TEAM = "推理平台组 Inference platform"
BUSINESS_TEAM = "客户服务部 Customer service"
SECURITY_TEAM = "信息安全部 Security"

PERSONAS = (
    Persona("lead", "demo-lead", "Lei", "Li 李磊", INFERENCE_TEAM, (R.LEAD, R.REVIEWER)),
    Persona("contributor", "demo-contributor", "Min", "Wang 王敏", INFERENCE_TEAM, (R.CONTRIBUTOR,)),
    Persona("business", "demo-business", "Fang", "Zhao 赵芳", BUSINESS_TEAM, (R.SIGNER_BUSINESS, R.REVIEWER)),
    Persona(
        "platform", "demo-platform", "Qiang", "Chen 陈强", INFERENCE_TEAM, (R.SIGNER_PLATFORM, R.REVIEWER)
    ),
    Persona("security", "demo-security", "Ning", "Sun 孙宁", SECURITY_TEAM, (R.SIGNER_SECURITY, R.REVIEWER)),
    Persona(
        "decision_maker",
        "demo-decision",
        "Jing",
        "Zhou 周静",
        BUSINESS_TEAM,
        (R.DECISION_MAKER, R.PROCUREMENT),
    ),
)
OUTSIDER = Persona("outsider", "demo-outsider", "Hao", "Wu 吴昊", "", ())


class DemoAccounts:
    """`var/demo-accounts.json`: what is in it stays valid; what is missing is made and written."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self.data: dict[str, Any] = json.loads(path.read_text())
        except (OSError, ValueError):
            self.data = {}
        self.data.setdefault("accounts", {})

    def password_of(self, persona: Persona) -> tuple[str, bool]:
        """The password, and whether it was made just now because none was stored."""
        stored = (self.data["accounts"].get(persona.key) or {}).get("password")
        password = stored or secrets.token_urlsafe(12)
        self.data["accounts"][persona.key] = {"username": persona.username, "password": password}
        return password, not stored

    def write(self) -> None:
        """Write the file, readable by its owner only."""
        temporary = self.path.with_suffix(".part")
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w") as file:
            json.dump(self.data, file, ensure_ascii=False, indent=2)
        temporary.replace(self.path)


def organisation(name: str, slug: str) -> Organisation:
    found, _created = Organisation.objects.get_or_create(slug=slug, defaults={"name": name})
    return found


def team(organisation: Organisation, name: str) -> Team:
    contact = f"#{name.rsplit(maxsplit=1)[-1].lower()}-oncall"
    found, _created = Team.objects.get_or_create(
        organisation=organisation, name=name, defaults={"contact": contact}
    )
    return found


def person(persona: Persona, organisation: Organisation, accounts: DemoAccounts) -> User:
    """The account of this persona; an existing one only gets a password when its old one is lost."""
    password, is_new = accounts.password_of(persona)
    user = User.objects.filter(username=persona.username).first()
    if user is None:
        is_new = True
        user = User(
            username=persona.username,
            first_name=persona.given_name,
            last_name=persona.family_name,
            organisation=organisation,
            team=team(organisation, persona.team) if persona.team else None,
            language=persona.language,
            time_zone="Asia/Shanghai",
        )
    if is_new:  # hashing is slow on purpose: later starts are not to pay for it
        user.set_password(password)
        user.save()
    return user
