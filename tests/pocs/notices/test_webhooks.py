"""Webhooks: signatures, addresses that must not be reached, redirects, retries, the log, who keeps them."""

import hashlib
import hmac
import json
import threading
from collections.abc import Iterator
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest
from django.utils import timezone

from pocs.common import audit
from pocs.common.errors import Conflict, InvalidInput, NotPermitted
from pocs.notices import services
from pocs.notices.addresses import AddressRefused, check_url, resolve
from pocs.notices.models import Notice, Webhook, WebhookDelivery
from pocs.notices.services.delivering import ATTEMPTS_MAX, FAILURES_MAX
from pocs.notices.transport import post
from pocs.people.models import User
from pocs.people.roles import OrganisationRole
from tests.factories import Cast, make_ci_token
from tests.pocs.notices.test_mail import say


class Receiver(HTTPServer):
    """A receiver on loopback that answers `status` and keeps what it got."""

    status = 200
    got: list[tuple[dict[str, str], bytes]]


class Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        server: Any = self.server
        server.got.append((dict(self.headers), body))
        self.send_response(server.status)
        self.send_header("Location", "http://127.0.0.1:1/elsewhere")
        self.end_headers()

    def log_message(self, *args: Any) -> None:
        """Quiet."""


@pytest.fixture
def receiver(settings: Any) -> Iterator[Receiver]:
    settings.PHASEGATE_WEBHOOK_ALLOWED_NETWORKS = ["127.0.0.0/8"]
    settings.PHASEGATE_WEBHOOK_ALLOW_HTTP = True
    server = Receiver(("127.0.0.1", 0), Handler)
    server.got = []
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def hook(cast: Cast, receiver: Receiver) -> Webhook:
    url = f"http://127.0.0.1:{receiver.server_port}/in?team=a"
    made, secret = services.webhook_create(actor=cast.lead.as_actor(), name="Chat", url=url)
    made.plain = secret  # type: ignore[attr-defined]
    return made


def due(webhook: Webhook) -> None:
    WebhookDelivery.objects.filter(webhook=webhook).update(
        next_attempt_at=timezone.now() - timedelta(seconds=1)
    )


def test_a_delivery_is_signed_over_time_and_body(cast: Cast, hook: Webhook, receiver: Receiver) -> None:
    say(cast, cast.lead)
    assert services.deliveries_send() == 1
    ((headers, body),) = receiver.got
    stamp, _, given = headers["PhaseGate-Signature"].partition(",v1=")
    at = stamp.removeprefix("t=")
    secret = hook.plain.encode()  # type: ignore[attr-defined]
    assert given == hmac.new(secret, f"{at}.".encode() + body, hashlib.sha256).hexdigest()
    assert abs(int(at) - timezone.now().timestamp()) < 60
    told = json.loads(body)
    assert (told["kind"], told["text"], told["project_name"]) == ("comment", "Look here", cast.project.name)
    assert told["url"] == "https://phasegate.example/projects/1/"
    delivery = WebhookDelivery.objects.get()
    assert (delivery.state, delivery.status, headers["PhaseGate-Delivery"]) == (
        "delivered",
        200,
        str(delivery.uuid),
    )
    assert services.deliveries_send() == 0


def test_a_redirect_is_not_followed(cast: Cast, hook: Webhook, receiver: Receiver) -> None:
    receiver.status = 302
    say(cast, cast.lead)
    assert services.deliveries_send() == 0
    delivery = WebhookDelivery.objects.get()
    assert (delivery.state, delivery.status) == ("waiting", 302)
    assert "not followed" in delivery.error
    assert len(receiver.got) == 1


def test_failures_are_tried_again_with_growing_pauses(cast: Cast, hook: Webhook, receiver: Receiver) -> None:
    receiver.status = 503
    say(cast, cast.lead)
    pauses = []
    for _attempt in range(ATTEMPTS_MAX):
        services.deliveries_send()
        delivery = WebhookDelivery.objects.get()
        pauses.append(round((delivery.next_attempt_at - timezone.now()).total_seconds() / 60))
        assert services.deliveries_send() == 0  # not due yet
        due(hook)
    assert pauses[: ATTEMPTS_MAX - 1] == [1, 5, 30, 120, 720]
    assert (delivery.state, delivery.attempts, delivery.error) == ("failed", ATTEMPTS_MAX, "HTTP 503")
    assert len({headers["PhaseGate-Delivery"] for headers, _body in receiver.got}) == 1
    receiver.status = 204
    services.delivery_repeat(actor=cast.lead.as_actor(), delivery=delivery)
    assert services.deliveries_send() == 1
    hook.refresh_from_db()
    assert hook.failures == 0


def test_a_webhook_that_keeps_failing_is_switched_off(cast: Cast, hook: Webhook, receiver: Receiver) -> None:
    receiver.status = 500
    for number in range(FAILURES_MAX + 2):
        say(cast, cast.lead, key=f"k{number}")
    services.deliveries_send()
    hook.refresh_from_db()
    assert (hook.active, hook.failures) == (False, FAILURES_MAX)
    assert hook.disabled_at is not None
    assert not WebhookDelivery.objects.filter(state="waiting").exists()
    assert "webhook.disabled" in Notice.objects.filter(recipient=cast.lead).values_list("kind", flat=True)
    say(cast, cast.lead, key="later")
    assert not WebhookDelivery.objects.filter(key="later").exists()
    services.webhook_update(actor=cast.lead.as_actor(), webhook=hook, version=hook.version, active=True)
    hook.refresh_from_db()
    assert (hook.active, hook.failures, hook.disabled_at) == (True, 0, None)
    assert audit.verify(cast.organisation.pk) == []


@pytest.mark.parametrize(
    "url",
    [
        "http://example.org/in",
        "ftp://example.org/",
        "https://user:secret@example.org/",
        "https://127.0.0.1/",
        "https://127.1/",
        "https://0x7f000001/",
        "https://2130706433/",
        "https://10.1.2.3/",
        "https://169.254.169.254/latest/meta-data/",
        "https://[::1]/",
        "https://[::ffff:10.0.0.1]/",
        "https://[64:ff9b::a00:1]/",
        "https://[fd00::1]/",
        "https://localhost/",
        "https://intranet/",
        "https://vault.internal/",
        "https://example.org:0/",
        "https://example.org:99999/",
        "https://exa mple.org/",
        "https://example.org/#part",
        "not an address",
        "",
    ],
)
def test_addresses_that_are_refused(url: str) -> None:
    with pytest.raises(InvalidInput) as refusal:
        check_url(url)
    assert refusal.value.errors[0].pointer == "/url"


def test_addresses_that_are_taken() -> None:
    assert check_url(" https://hooks.example.org:8443/in?x=1 ") == "https://hooks.example.org:8443/in?x=1"
    assert check_url("https://93.184.216.34/") == "https://93.184.216.34/"


@pytest.mark.parametrize("address", ["127.0.0.1", "10.0.0.7", "169.254.169.254", "::1", "::ffff:192.168.0.1"])
def test_a_name_that_leads_inside_is_refused_at_the_delivery(
    monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    def answer(host: str, port: int, **kwargs: Any) -> list[Any]:
        return [(2, 1, 6, "", ("93.184.216.34", port)), (2, 1, 6, "", (address, port))]

    monkeypatch.setattr("socket.getaddrinfo", answer)
    with pytest.raises(AddressRefused):
        resolve("rebind.example.org", 443)
    outcome = post("https://rebind.example.org/in", b"{}", {})
    assert (outcome.status, outcome.delivered) == (None, False)
    assert "internal address" in outcome.error


def test_a_receiver_that_drips_is_cut_off(receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    import socket

    monkeypatch.setattr("pocs.notices.transport.TOTAL_TIMEOUT_S", 0.4)
    listener = socket.create_server(("127.0.0.1", 0))
    ended = threading.Event()

    def drip() -> None:
        link, _peer = listener.accept()
        link.sendall(b"HTTP/1.1 200 OK\r\n")
        try:
            while not ended.wait(0.05):
                link.sendall(b"X-Slow: 1\r\n")
        except OSError:
            pass
        link.close()

    thread = threading.Thread(target=drip, daemon=True)
    thread.start()
    outcome = post(f"http://127.0.0.1:{listener.getsockname()[1]}/", b"{}", {})
    ended.set()
    thread.join(5)
    listener.close()
    assert not outcome.delivered
    assert outcome.duration_ms < 4000


def test_nobody_there_is_said_in_words(receiver: Receiver) -> None:
    outcome = post("http://127.0.0.1:9/", b"{}", {})
    assert "refused" in outcome.error


def test_an_organisations_webhook_gets_no_content(cast: Cast, receiver: Receiver) -> None:
    User.objects.filter(pk=cast.bystander.pk).update(organisation_role=OrganisationRole.ADMIN)
    admin = User.objects.get(pk=cast.bystander.pk)
    url = f"http://127.0.0.1:{receiver.server_port}/"
    with pytest.raises(NotPermitted):
        services.webhook_create(actor=cast.lead.as_actor(), name="All", url=url, for_organisation=True)
    services.webhook_create(
        actor=admin.as_actor(), name="All", url=url, kinds=["comment"], for_organisation=True
    )
    say(cast, cast.lead, cast.viewer)
    say(cast, cast.lead, kind="role.given", key="k2")
    assert services.deliveries_send() == 1  # once, however many people were told; one kind only
    told = json.loads(receiver.got[0][1])
    assert set(told) == {"schema", "kind", "at", "project", "url"}
    assert told["project"] == cast.project.pk


def test_who_keeps_a_webhook(cast: Cast, hook: Webhook) -> None:
    token, _plaintext = make_ci_token(cast.project, sponsor=cast.lead)
    for actor in (cast.viewer.as_actor(), cast.outsider.as_actor(), token.as_actor()):
        with pytest.raises(NotPermitted):
            services.webhook_update(actor=actor, webhook=hook, version=1, name="Mine")
        with pytest.raises(NotPermitted):
            services.webhook_delete(actor=actor, webhook=hook)


def test_the_secret_is_stored_encrypted_and_renewed(cast: Cast, hook: Webhook, receiver: Receiver) -> None:
    old = hook.plain.encode()  # type: ignore[attr-defined]
    assert old not in bytes(Webhook.objects.get().secret)
    _hook, new = services.webhook_secret_renew(actor=cast.lead.as_actor(), webhook=hook)
    services.webhook_try(actor=cast.lead.as_actor(), webhook=hook)
    assert services.deliveries_send() == 1
    headers, body = receiver.got[0]
    at, _, given = headers["PhaseGate-Signature"].removeprefix("t=").partition(",v1=")
    assert given == hmac.new(new.encode(), f"{at}.".encode() + body, hashlib.sha256).hexdigest()
    assert json.loads(body)["kind"] == "trial"


def test_switched_off_it_gets_nothing(cast: Cast, hook: Webhook, receiver: Receiver) -> None:
    say(cast, cast.lead)
    services.webhook_update(actor=cast.lead.as_actor(), webhook=hook, version=hook.version, active=False)
    assert services.deliveries_send() == 0
    assert receiver.got == []
    hook.refresh_from_db()
    with pytest.raises(Conflict):
        services.webhook_try(actor=cast.lead.as_actor(), webhook=hook)


def test_two_senders_send_once(cast: Cast, hook: Webhook, receiver: Receiver) -> None:
    from pocs.notices.services.delivering import _claim

    say(cast, cast.lead)
    first, second = WebhookDelivery.objects.get(), WebhookDelivery.objects.get()
    now = timezone.now()
    assert _claim(first, now)
    assert not _claim(second, now)
