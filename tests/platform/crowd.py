"""Fifty people or jobs at the same moment; as a script, on an SQLite file of its own.

DJANGO_SETTINGS_MODULE=phasegate.settings.embedded PHASEGATE_VAR=DIR python -m tests.platform.crowd
"""

import json
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from threading import Barrier, Thread
from typing import Any

import django

CROWD = 50
#: a refusal that may be sent again, as a client would after `Retry-After`
BUSY, TRIES = 503, 5


def at_once(calls: Sequence[Callable[[], Any]]) -> tuple[Counter[int], float]:
    """How the answers to all calls, begun at one moment, are spread over statuses, and seconds they took."""
    from django.db import connection

    start, statuses = Barrier(len(calls) + 1), []

    def one(call: Callable[[], Any]) -> None:
        try:
            start.wait(timeout=60)
            for _try in range(TRIES):
                status = call().status_code
                if status != BUSY:
                    break
            statuses.append(status)
        finally:
            connection.close()

    threads = [Thread(target=one, args=[call], daemon=True) for call in calls]
    for thread in threads:
        thread.start()
    start.wait(timeout=60)
    begun = time.perf_counter()
    for thread in threads:
        thread.join(timeout=120)
    return Counter(statuses), time.perf_counter() - begun


def crowd() -> dict[str, Any]:
    """What came of fifty signers of one slot, fifty jobs with one result each, and fifty copies of one."""
    from django.test import Client

    from pocs.common import audit
    from pocs.common.models import AuditEntry
    from pocs.people.roles import ProjectRole
    from pocs.projects.models import ProjectMember
    from pocs.reviews.choices import Slot
    from tests.factories import PASSWORD, make_cast, make_ci_token, make_user
    from tests.pocs.reviews import walk
    from tests.pocs.runs.fakes import poc_run

    cast = make_cast()
    walk.to_evidence_complete(cast)
    signers = [make_user(cast.organisation, "signer", team=cast.team) for _number in range(CROWD)]
    for person in signers:
        ProjectMember.objects.create(project=cast.project, user=person, role=ProjectRole.SIGNER_SECURITY)
    package = walk.freeze(cast)
    walk.sign(cast, package, Slot.BUSINESS, Slot.PLATFORM)
    url = f"/api/v1/packages/{package.pk}/signoffs/"
    body = {"slot": "security", "verdict": "approve", "password": PASSWORD}

    def signs(person: Any) -> Callable[[], Any]:
        client = Client(raise_request_exception=False)
        client.force_login(person)
        return lambda: client.post(url, body, content_type="application/json")

    _token, plaintext = make_ci_token(cast.project, sponsor=cast.lead, scopes=("runs:write",))
    runs = f"/api/v1/projects/{cast.project.pk}/runs/"

    def submits(number: int) -> Callable[[], Any]:
        client = Client(raise_request_exception=False, headers={"authorization": f"Bearer {plaintext}"})
        payload = poc_run(run=f"job-{number}")
        key = {"idempotency-key": f"key-{number}"}
        return lambda: client.post(runs, payload, content_type="application/json", headers=key)

    signed, signing_s = at_once([signs(person) for person in signers])
    package.refresh_from_db()
    approvals = sorted(package.signoffs.filter(state="approved").values_list("slot", flat=True))
    before = cast.project.runs.count()
    submitted, submitting_s = at_once([submits(number) for number in range(CROWD)])
    equal, equal_s = at_once([submits(CROWD) for _copy in range(CROWD)])
    numbers = list(cast.project.runs.order_by("number").values_list("number", flat=True))
    return {
        "signed": dict(signed),
        "submitted": dict(submitted),
        "equal": dict(equal),
        "approvals": approvals,
        "state": package.state,
        "transitions": AuditEntry.objects.filter(verb="package.approved").count(),
        "runs": len(numbers) - before,
        "numbers": numbers == list(range(1, len(numbers) + 1)),
        "audit": [problem.text for problem in audit.verify(cast.organisation.pk)],
        "seconds": [round(value, 1) for value in (signing_s, submitting_s, equal_s)],
    }


if __name__ == "__main__":
    from django.conf import settings

    django.setup()
    # fifty signers mean fifty checks of a password, which is slow by intent and not what is tried here
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
    settings.ALLOWED_HOSTS = ["*"]
    from django.core.management import call_command

    call_command("migrate", verbosity=0)
    sys.stdout.write(json.dumps(crowd()))
