# SPDX-License-Identifier: Apache-2.0
"""RabbitMQ is stopped and comes back: before requests, while guests are made, before finish."""

import time
from collections.abc import Callable

import pytest

from novalite.devcloud.broker import Broker
from tests.functional import faults
from tests.functional.cloud import Cloud
from tests.functional.waiting import eventually

pytestmark = pytest.mark.drill

Make = Callable[..., Cloud]

# Seconds. The API must not wait for the bus: the shortest time-out there is takes longer.
USUAL = 2.0
REQUESTS = 20
# Seconds that slow spawns take: longer than the broker is away.
SLOW = 12.0
FAST_ONE, SLOW_ONE = "compute1", "compute2"
# Seconds until a host that is not heard counts as down, where a test needs time before that.
LATE = 14


@pytest.fixture
def node(broker: Broker | None) -> Broker:
    if broker is None:
        pytest.skip("the tests do not stop a broker that is not theirs")
    return broker


class TestBroker:
    """The broker goes and comes back."""

    def test_requests_while_it_is_away(
        self, standing: Cloud, node: Broker, table: faults.Table
    ) -> None:
        cloud, api = standing, standing.api
        before = [_timed(cloud) for _ in range(REQUESTS)]
        states = api.wait_settled([uuid for uuid, _ in before])
        assert set(states.values()) == {"ACTIVE"}, states
        node.stop()
        stopped = time.monotonic()
        servers = [_timed(cloud) for _ in range(REQUESTS)]
        for uuid, _ in before:
            api.delete(uuid)
        assert max(seconds for _, seconds in servers) < USUAL
        # Long enough for every host to count as long gone when the broker is back.
        eventually(
            lambda: time.monotonic() - stopped > 2 * faults.DOWN_TIME + 1.0,
            60.0,
            "the broker is away",
        )
        assert {server["status"] for server in api.servers()} == {"ACTIVE", "BUILD"}
        node.start()
        with faults.stopwatch() as taken:
            states = api.wait_settled([uuid for uuid, _ in servers], faults.PROMISE)
            for uuid, _ in before:
                api.wait_gone(uuid, faults.PROMISE)
        assert set(states.values()) == {"ACTIVE"}, states
        table.add("broker stopped before requests", "ACTIVE or gone", taken[0])
        table.add("POST with the broker, slowest", "202", max(seconds for _, seconds in before))
        table.add("POST without it, slowest", "202", max(seconds for _, seconds in servers))
        cloud.assert_books(faults.PROMISE)

    def test_builds_that_it_interrupts(
        self, standing: Cloud, node: Broker, table: faults.Table
    ) -> None:
        cloud, api = standing, standing.api
        faults.play(cloud, FAST_ONE, spawn_delay=2)
        faults.play(cloud, SLOW_ONE, spawn_delay=SLOW)
        during = api.boot("during", availability_zone=f"nova:{SLOW_ONE}")
        finish = api.boot("finish", availability_zone=f"nova:{FAST_ONE}")
        faults.wait_spawning(cloud, SLOW_ONE, during)
        faults.wait_spawning(cloud, FAST_ONE, finish)
        node.kill()
        # The guest is made, but nobody can be told; the fence pauses it.
        eventually(lambda: faults.guests(cloud, FAST_ONE).get(finish) == 3, what="it is paused")
        assert faults.action(cloud, finish)["state"] == "running"
        node.start()
        faults.play(cloud, SLOW_ONE, spawn_delay=0)
        for point, uuid in (("before finish", finish), ("in a build", during)):
            with faults.stopwatch() as taken:
                api.wait(uuid, timeout=faults.PROMISE)
            table.add(f"broker killed {point}", "ACTIVE, one guest", taken[0])
        cloud.assert_books(faults.PROMISE)
        assert faults.guests(cloud, FAST_ONE) == {finish: 1}
        assert faults.guests(cloud, SLOW_ONE) == {during: 1}


def test_hosts_that_are_heard_later_than_the_scheduler(
    only_in_drill: None, node: Broker, make_cloud: Make, table: faults.Table
) -> None:
    """One host is full, the other comes back later: nobody is to be told "no"."""
    cloud = make_cloud(computes=2, config={"DEFAULT": {"service_down_time": LATE}})
    api = cloud.api
    full = api.flavor("host", ram=16000)
    api.wait(api.boot("filler", flavor=full, availability_zone=f"nova:{FAST_ONE}"))
    cloud.pause(SLOW_ONE)
    node.stop()
    stopped = time.monotonic()
    uuid = api.boot("early", flavor=full)
    eventually(lambda: time.monotonic() - stopped > LATE + 2.0, 60.0, "the broker is away")
    node.start()
    cloud.wait_log("scheduler", f"Filtering removed all hosts .*{uuid}", faults.PROMISE)
    cloud.resume(SLOW_ONE)
    with faults.stopwatch() as taken:
        api.wait(uuid, timeout=faults.PROMISE)
    table.add("broker back before the host", "ACTIVE, one guest", taken[0])
    cloud.assert_books(faults.PROMISE)


def _timed(cloud: Cloud) -> tuple[str, float]:
    with faults.stopwatch() as taken:
        uuid = cloud.api.boot()
    return uuid, taken[0]
