"""docs/permissions.md from the code that decides: `write` it, or `check` that it says what the code does."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "permissions.md"
HEAD = """\
# Permissions

Written by `scripts/permissions.py write` from the tables in the code (`pocs/people/roles.py`, and
`rights.py` of each app); a test checks that this page is current, and tries every route with everybody.

- **The organisation is the border.** What belongs to another one answers 404, on every route, as if it were
  not there.
- **What one may not see is foreign too**: to a colleague without a role on a project, nothing of it is there
  (404). Who sees an object and may not do what they ask gets 403. A deputy sees the projects on which they
  may sign today.
- **A token is bound to one project**: there a missing scope is 403, elsewhere everything is 404. It does
  what its scopes say, beside its sponsor and never as them: no token signs, reviews, decides, or manages
  people and tokens.
- **The right is asked first**: whoever may not do something is told so (401, 403, 404), whatever is wrong
  with what they sent.
- **Being a superuser gives nothing.** Administrators manage people and the members of every project, and see
  none of its content by that; auditors read, verify and export every project.
- Separation of duties comes on top: contributors neither review nor sign, one person fills one slot, who
  asks for a waiver does not grant it, and who proposes a decision does not confirm it.

"""


def page() -> str:
    """The whole page."""
    return HEAD + "\n".join([*_roles(), "", *_rules(), "", *_routes()]) + "\n"


def _roles() -> Iterator[str]:
    from pocs.people import roles

    yield "## Capabilities by role"
    yield ""
    columns = [role.label for role in roles.ProjectRole]
    yield f"| capability | {' | '.join(map(str, columns))} | Auditor | Administrator | CI token |"
    yield "|---|" + "---|" * (len(columns) + 3)
    for capability, holders in roles.CAPABILITIES.items():
        marks = ["●" if role in holders else "" for role in roles.ProjectRole]
        for role in (roles.OrganisationRole.AUDITOR, roles.OrganisationRole.ADMIN):
            marks.append("●" if capability in roles.ORGANISATION_CAPABILITIES[role] else "")
        scope = roles.TOKEN_SCOPES.get(capability)
        yield f"| `{capability}` | {' | '.join(marks)} | {f'`{scope}`' if scope else ''} |"


def _rules() -> Iterator[str]:
    from pocs.common import access

    yield "## Rules beside the roles"
    yield ""
    yield "| rule | who |"
    yield "|---|---|"
    rights = {right for methods in access.declared().values() for right in methods.values()}
    for name, text in sorted({(right.name, str(right.text)) for right in rights if right.text}):
        yield f"| `{name}` | {text} |"


def _routes() -> Iterator[str]:
    from pocs.common import access

    declared = access.declared()
    paths = sorted(set(_paths()))
    for title, wanted in (("REST API", True), ("Pages and downloads", False)):
        yield f"## {title}"
        yield ""
        yield "| path | method: right |"
        yield "|---|---|"
        for path, name in paths:
            if path.startswith("/api/v1/") == wanted:
                rights = [f"{method}: `{right.name}`" for method, right in declared.get(name, {}).items()]
                yield f"| `{path}` | {', '.join(rights)} |"
        yield ""
    yield "## Live"
    yield ""
    yield "| address | who |"
    yield "|---|---|"
    yield "| WebSocket `/ws/streams/{project,run,matrix}:<id>/` | `project.view`, asked again while open |"
    yield "| `/v1/models`, `/v1/chat/completions`, `/v1/completions` | tokens with `inference.use` |"
    yield "| `/projects/<int:pk>/playground/answer/` | people with `inference.use` |"


def _paths(resolver: Any = None, names: tuple[str, ...] = (), path: str = "/") -> Iterator[tuple[str, str]]:
    from django.urls import URLResolver, get_resolver

    for found in (resolver or get_resolver()).url_patterns:
        here = path + str(found.pattern)
        if isinstance(found, URLResolver):
            yield from _paths(found, names + ((found.namespace,) if found.namespace else ()), here)
        else:
            last = found.name or f"{found.callback.__module__}.{found.callback.__name__}"
            yield here, ":".join([*names, last])


def main(arguments: list[str]) -> int:
    """0 when the page is written, or current."""
    if arguments not in (["write"], ["check"]):
        print("usage: scripts/permissions.py write|check", file=sys.stderr)
        return 2
    sys.path[:0] = [str(ROOT), str(ROOT / "platform")]
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "phasegate.settings.test")
    import django
    from django.utils.translation import override

    django.setup()
    with override("en"):
        text = page()
    if arguments == ["write"]:
        PAGE.write_text(text)
        return 0
    if PAGE.read_text() == text:
        return 0
    print("docs/permissions.md is not what the code says: run scripts/permissions.py write", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
