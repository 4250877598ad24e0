# SPDX-License-Identifier: Apache-2.0
"""Database or broker are away for a while under traffic: what users see, and the time to normal.

V32: a database that is stopped, and one from which nothing is heard any more. The seconds are
those of the fast profile.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from novalite import health
from novalite.devcloud.broker import Broker
from tests.functional import cloud as cloud_module
from tests.functional import faults, postgresql, traffic
from tests.functional.cloud import Cloud
from tests.functional.traffic import Traffic
from tests.functional.waiting import eventually

pytestmark = pytest.mark.drill

# Seconds: how long it is away every day and in a drill, what an answer of a database server may
# take, and what a user may have to wait for "no".
AWAY, AWAY_IN_A_DRILL = 8.0, 30.0
ANSWER = 2
QUICK = 2 * ANSWER + 3.0
CONFIG: Mapping[str, Mapping[str, object]] = {
    "DEFAULT": {"service_down_time": int(faults.DOWN_TIME)},
    "database": {"answer_timeout": ANSWER, "connect_timeout": 2},
}


@pytest.fixture(scope="module")
def server() -> Iterator[postgresql.Server]:
    reason = postgresql.missing()
    if reason:
        pytest.skip(reason)
    with postgresql.running() as made:
        yield made


@pytest.fixture
def seconds(request: pytest.FixtureRequest) -> float:
    """How long it is away."""
    return AWAY_IN_A_DRILL if request.config.getoption("--rounds") else AWAY


@pytest.fixture
def proxy(server: postgresql.Server) -> Iterator[postgresql.Proxy]:
    made = postgresql.Proxy(server.port)
    yield made
    made.close()


@pytest.fixture
def cloud(
    tmp_path: Path, broker: Broker | None, server: postgresql.Server, proxy: postgresql.Proxy
) -> Iterator[Cloud]:
    """A cloud whose way to its database leads through the proxy."""
    with Cloud(
        tmp_path / "cloud",
        broker=broker,
        transport_url=cloud_module.transport_url_from_environment(),
        database_url=server.url(proxy.port),
        config=CONFIG,
    ) as made:
        yield made
        proxy.silence(False)


def healthz(cloud: Cloud) -> str:
    host = "controller"
    path = health.default_path(str(cloud.directory), "novalite-api", host)
    return str(health.ask(path)["status"])


def pids(cloud: Cloud) -> dict[str, int | None]:
    return {name: cloud.services.process(name).pid for name in cloud.names}


def wait_for_seconds(seconds: float) -> None:
    began = time.monotonic()
    eventually(lambda: time.monotonic() - began >= seconds, seconds + 5.0)


def play(
    cloud: Cloud,
    table: faults.Table,
    what: str,
    away: Callable[[], None],
    back: Callable[[], None],
    state: str,
    seconds: float,
) -> Traffic:
    """Take something away under traffic and bring it back; note what users saw."""
    before = pids(cloud)
    old = cloud.api.boot("old")
    cloud.api.wait(old)
    with Traffic(cloud) as users:
        wait_for_seconds(2.0)
        away()
        gone = time.monotonic()
        eventually(lambda: healthz(cloud) == state, QUICK, f"health is {state}")
        wait_for_seconds(seconds)
        # Up to here answers may need their time; what is asked in the end finds everybody at rest.
        back()
        returned = time.monotonic()
        eventually(lambda: healthz(cloud) == "ok", faults.DOWN_TIME, "health is ok")
        healthy = time.monotonic() - returned

        def all_up() -> bool:
            try:
                return set(cloud.api.services().values()) == {"up"}
            except Exception as error:
                raise AssertionError(str(error)) from error

        eventually(all_up, faults.DOWN_TIME, "all services are up")
        up = time.monotonic() - returned
        wait_for_seconds(1.0)
    with faults.stopwatch() as taken:
        states = cloud.api.wait_settled([old, *users.accepted], faults.PROMISE)
    assert set(states.values()) == {"ACTIVE"}, states
    cloud.assert_books(faults.PROMISE)
    assert pids(cloud) == before
    reads = users.between(gone, returned, "read")
    creates = users.between(gone, returned, "create")
    after = users.between(returned + up, returned + 3600, "read")
    table.add(f"{what}: reads", traffic.words(reads))
    table.add(f"{what}: creates", traffic.words(creates))
    table.add(f"{what}: health is ok again", "after its return", healthy)
    table.add(f"{what}: all services up", "after its return", up)
    table.add(f"{what}: {len(users.accepted)} servers", "ACTIVE, one guest each", taken[0])
    assert {each.status for each in after} == {200}, after
    return users


def no_traces(cloud: Cloud) -> None:
    for name in cloud.names:
        assert not cloud.grep(name, r"Traceback \(most recent"), cloud.log(name)[-8000:]


def statuses(users: Traffic, kind: str) -> set[int]:
    return {each.status for each in users.seen if each.kind == kind}


def slowest(users: Traffic) -> float:
    return max(each.seconds for each in users.seen)


def test_v32_the_database_is_stopped(
    cloud: Cloud, server: postgresql.Server, table: faults.Table, seconds: float
) -> None:
    users = play(cloud, table, "database stopped", server.stop, server.start, "failing", seconds)
    assert statuses(users, "read") <= {200, 503}
    assert statuses(users, "create") <= {202, 503}
    assert slowest(users) < QUICK
    no_traces(cloud)


def test_v32_nothing_is_heard_of_the_database(
    cloud: Cloud, proxy: postgresql.Proxy, table: faults.Table, seconds: float
) -> None:
    users = play(
        cloud,
        table,
        "database silent",
        lambda: proxy.silence(True),
        lambda: proxy.silence(False),
        "failing",
        seconds,
    )
    assert statuses(users, "read") <= {200, 503}
    assert statuses(users, "create") <= {202, 503}
    assert slowest(users) < QUICK
    no_traces(cloud)


def test_the_broker_is_stopped(
    make_cloud: Callable[..., Cloud],
    broker: Broker | None,
    table: faults.Table,
    seconds: float,
) -> None:
    if broker is None:
        pytest.skip("the tests do not stop a broker that is not theirs")
    cloud = make_cloud(config=CONFIG)
    users = play(cloud, table, "broker stopped", broker.stop, broker.start, "degraded", seconds)
    assert statuses(users, "read") == {200}
    assert statuses(users, "create") == {202}
    assert slowest(users) < QUICK
