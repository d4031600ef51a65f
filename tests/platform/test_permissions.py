"""Every route, every method, everybody: what the tables of rights say is what the site does."""

import logging
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from django.db import transaction
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver, reverse
from rest_framework.test import APIClient

from phasegate import worker_presence
from pocs.common import access, events
from pocs.people.roles import (
    CAPABILITIES,
    ORGANISATION_CAPABILITIES,
    SCOPES,
    TOKEN_SCOPES,
    OrganisationRole,
)
from pocs.serving.access import caller_of
from pocs.serving.errors import ApiError
from tests.factories import CAST_ROLES
from tests.platform.route_world import World, make_world

ROOT = Path(__file__).resolve().parents[2]
ARGUMENT = re.compile(r"<(\w+):(\w+)>")
METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")
MEMBERS = frozenset(CAST_ROLES)
#: those who see the project; others find nothing of it
SEE = MEMBERS | {"auditor", "deputy"}
COLLEAGUES = SEE | {"admin", "superuser", "bystander"}
PEOPLE = COLLEAGUES | {"outsider"}
TOKENS = frozenset(f"token:{scope}" for scope in SCOPES)
CONFIRM = {"decision_maker"}

#: rules that are no capability -> who passes; whoever does not gets 403 or, not seeing the object, 404
RULES: dict[str, frozenset[str] | set[str]] = {
    "anyone": PEOPLE | TOKENS,
    "signed-in": PEOPLE | TOKENS,
    "person": PEOPLE,
    "reads-people": PEOPLE,
    "reads-person": COLLEAGUES,
    "administrator": {"admin"},
    "creator": PEOPLE - {"auditor"},
    "audit": {"auditor", "lead", "outsider"},  # who leads a project in another organisation
    "clone": SEE - {"auditor"},
    "reads-members": SEE | {"admin", "token:read"},
    "reads-evidence": SEE | {"token:read", "token:evidence:write"},
    "discuss": MEMBERS,
    "resolve": {"lead", "contributor", "reviewer"},
    "move-thread": {"lead", "contributor", "reviewer"},
    "ask-review": {"lead", "contributor", "reviewer", "token:evidence:write"},
    "withdraw-request": {"contributor", "reviewer"},
    "sign": {"business", "platform", "security", "deputy"},
    "withdraw-signature": {"business"},
    "answer-objection": {"lead", "contributor"},
    "withdraw-objection": {"business"},
    "revoke-decision": CONFIRM,
    "close-condition": CONFIRM | {"observer"},
    "finish-task": {"lead", "procurement", "decision_maker"},
    "read-in": {"lead", "observer", "token:observation:write"},
    "schedule": {"lead"},
    "delegation.revoke": {"security", "admin"},
    "keep-webhook": {"procurement"},
}
#: who at least sees what a rule is about, where this is not the project
SEEING: dict[str, frozenset[str] | set[str]] = {
    "administrator": PEOPLE,
    "person": PEOPLE,
    "reads-people": PEOPLE,
    "creator": PEOPLE,
    "audit": PEOPLE,
    "delegation.revoke": {"security", "admin", "auditor", "deputy"},
    "keep-webhook": {"procurement"},
}
#: routes on which a rule meets one object: route -> (who passes, who sees it); None: as the rule says
ONES: dict[str, tuple[set[str] | frozenset[str] | None, set[str] | frozenset[str]]] = {
    "people:person": (None, COLLEAGUES),
    "people:person_active": (None, COLLEAGUES),
    "reviews:sign": ({"business"}, SEE),
    "people:delegation_revoke": (None, {"security", "admin", "auditor", "deputy"}),
}
#: ends the session of whoever asks
LEFT_OUT = {"signin:logout"}
#: enough where nobody is asked who they are; the schema takes long to write
FEW = ("anonymous", "lead")
#: pages that answer an unknown method as they answer GET, by Django itself
CLASS_PAGES = {"api-schema", "api-docs", "signin:login", "signin:preferences", "signin:logout"}


@dataclass(frozen=True)
class Route:
    """One route as the resolver knows it: its name and its path as a pattern."""

    name: str
    path: str

    @property
    def is_api(self) -> bool:
        return self.path.startswith("api/v1/")


def routes(resolver: Any = None, names: tuple[str, ...] = (), path: str = "") -> Iterator[Route]:
    """Every route of the site."""
    for found in (resolver or get_resolver()).url_patterns:
        here = path + str(found.pattern)
        if isinstance(found, URLResolver):
            yield from routes(found, names + ((found.namespace,) if found.namespace else ()), here)
        elif isinstance(found, URLPattern):
            last = found.name or f"{found.callback.__module__}.{found.callback.__name__}"
            yield Route(":".join([*names, last]), here)


ROUTES = list(routes())


def test_every_route_says_what_it_asks_for() -> None:
    """A new route stands in the `rights.py` of its app, or fails here."""
    declared = access.declared()
    assert {route.name for route in ROUTES} - set(declared) == set()
    assert set(declared) - {route.name for route in ROUTES} == set()
    assert len({route.name for route in ROUTES}) == len(ROUTES), "two routes of one name"
    named = {right.name for methods in declared.values() for right in methods.values()}
    assert named - set(CAPABILITIES) - set(RULES) == set()


def passing(route: Route, right: access.Right) -> frozenset[str]:
    """Who passes, by the table of roles or by the rule."""
    if route.name in ONES and ONES[route.name][0] is not None:
        return frozenset(ONES[route.name][0] or ())
    if right.name in RULES:
        return frozenset(RULES[right.name])
    by_role = {name for name, role in CAST_ROLES.items() if role in CAPABILITIES[right.name]}
    for role, person in ((OrganisationRole.AUDITOR, "auditor"), (OrganisationRole.ADMIN, "admin")):
        by_role |= {person} if right.name in ORGANISATION_CAPABILITIES[role] else set()
    by_role |= {"deputy"} if right.name == "project.view" else set()
    scope = TOKEN_SCOPES.get(right.name)
    return frozenset(by_role | ({f"token:{scope}"} if scope else set()))


def expected(route: Route, right: access.Right, who: str) -> str:
    """`passes`, or the status of the refusal."""
    if who in passing(route, right):
        return "passes"
    if who == "anonymous":
        return "passes" if right.name == "anyone" else "401" if route.is_api else "sign-in"
    if who in TOKENS:
        # one of a person is nothing that a token could see
        return "404" if right.name == "keep-webhook" else "403"
    seeing = ONES[route.name][1] if route.name in ONES else SEEING.get(right.name, SEE)
    return "403" if who in seeing else "404"


def told(response: Any) -> str:
    """What became of a request, in the words of `expected`."""
    if response.status_code in (401, 403, 404):
        return str(response.status_code)
    if response.status_code == 302 and response["Location"].startswith("/sign-in/"):
        return "sign-in"
    return "passes" if response.status_code < 500 or response.status_code == 503 else "FAILS"


@pytest.fixture
def world(db: None, settings: Any, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    """One set-up for thousands of requests: sessions in memory, no log, no broker, nothing drawn."""
    settings.MEDIA_ROOT = tmp_path
    settings.SESSION_ENGINE = "django.contrib.sessions.backends.cache"
    monkeypatch.setattr(worker_presence, "queues_served", set)
    for place in ("django.template.loader", "pocs.projects.ui.views"):
        monkeypatch.setattr(f"{place}.render_to_string", lambda *args, **kwargs: "")
    monkeypatch.setattr("pocs.reviews.ui.sheet_views.render_pdf", lambda *args, **kwargs: b"")
    logging.disable(logging.CRITICAL)
    yield make_world()
    logging.disable(logging.NOTSET)


def clients(world: World, *, api: bool) -> dict[str, Client]:
    found: dict[str, Client] = {"anonymous": APIClient() if api else Client()}
    for name, person in world.people.items():
        found[name] = APIClient() if api else Client()
        found[name].force_login(person)
    if api:
        for scope, token in world.tokens.items():
            found[f"token:{scope}"] = APIClient(HTTP_AUTHORIZATION=f"Bearer {token}")
    return found


def address(world: World, route: Route) -> str:
    """The route's address with the numbers of the world's objects in it."""
    below = route.path.removeprefix("api/v1/")
    keys = [route.name, *sorted(filter(below.startswith, world.arguments), key=len, reverse=True)]
    given = next((world.arguments[key] for key in keys if key in world.arguments), {})
    # an argument that the world has nothing for: its route then answers 404 and is named by the test
    wanted = {
        name: given.get(name, 1 if kind == "int" else "x") for kind, name in ARGUMENT.findall(route.path)
    }
    if route.path == "health":
        return "/health"
    return reverse(route.name, kwargs=wanted) + world.queries.get(route.name, "")


def answer(client: Client, method: str, url: str, body: dict[str, Any]) -> Any:
    """The response; whatever it changed is undone."""
    with transaction.atomic():
        send = getattr(client, method.lower())
        response = send(url) if method == "GET" else send(url, body)
        if getattr(response, "streaming", False):
            response.close()
        transaction.set_rollback(True)
    return response


@pytest.mark.any_database
@pytest.mark.parametrize("api", [True, False], ids=["api", "pages"])
def test_everybody_on_every_route(world: World, api: bool) -> None:
    """An empty body, so that whoever may, is told what is wrong, and whoever may not, that they may not."""
    asked, wrong = clients(world, api=api), []
    for route in ROUTES:
        if route.is_api != api or route.name in LEFT_OUT:
            continue
        url = address(world, route)
        for method, right in access.declared()[route.name].items():
            for who in FEW if right.name == "anyone" else asked:
                client = asked[who]
                found = told(answer(client, method, url, world.bodies.get(route.name, {})))
                if found != expected(route, right, who):
                    wrong.append(
                        f"{method} {route.name} by {who}: {found}, not {expected(route, right, who)}"
                    )
    assert not wrong, "\n".join(wrong)


def test_no_other_method_is_offered(world: World) -> None:
    lead, api, wrong = Client(), APIClient(), []
    lead.force_login(world.people["lead"])
    api.force_login(world.people["lead"])
    for route in ROUTES:
        if route.name in CLASS_PAGES:
            continue
        for method in set(METHODS) - set(access.declared()[route.name]):
            status = answer(api if route.is_api else lead, method, address(world, route), {}).status_code
            if status != 405:
                wrong.append(f"{method} {route.name}: {status}")
    assert not wrong, "\n".join(wrong)


def test_the_page_of_permissions_is_current() -> None:
    done = subprocess.run(
        [sys.executable, "scripts/permissions.py", "check"],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


def test_a_token_opens_no_page(world: World) -> None:
    client = Client(HTTP_AUTHORIZATION=f"Bearer {world.tokens['read']}")
    for name in ("projects:list", "inbox", "projects:audit"):
        assert told(client.get(reverse(name))) == "sign-in"


def test_live_streams_and_live_inference(world: World) -> None:
    """A stream is followed by whoever sees the project; the live API answers tokens with its scope alone."""
    project, arguments = world.cast.project.pk, world.arguments
    streams = [
        f"project:{project}",
        f"run:{arguments['runs/']['pk']}",
        f"matrix:{arguments['matrices/']['pk']}",
    ]
    for stream in streams:
        may = {who for who, person in world.people.items() if events.may_follow(person.pk, stream)}
        assert may == SEE, stream
    assert not any(events.may_follow(person.pk, "people:1") for person in world.people.values())
    for scope, token in world.tokens.items():
        if scope == "inference":
            assert caller_of(f"Bearer {token}", "127.0.0.1").project_id == project
            continue
        with pytest.raises(ApiError) as refused:
            caller_of(f"Bearer {token}", "127.0.0.1")
        assert refused.value.status == 403
    with pytest.raises(ApiError):
        caller_of("", "127.0.0.1")
