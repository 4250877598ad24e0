# SPDX-License-Identifier: Apache-2.0
"""A delete meets a build at each of its steps, and hosts that are down, slow or unwilling."""

from collections.abc import Callable

import pytest

from tests.functional import faults
from tests.functional.cloud import Cloud
from tests.functional.waiting import eventually

pytestmark = pytest.mark.drill

HOST = "compute1"
# Seconds that a spawn takes; a delete does not break it off but comes after it.
SPAWN = 2.0


@pytest.fixture
def cloud(standing: Cloud) -> Cloud:
    """The standing cloud with one host in use."""
    faults.enable(standing, "compute2", False)
    return standing


@pytest.fixture
def deleted(cloud: Cloud, table: faults.Table) -> Callable[..., None]:
    """Return a function that waits for the end of a deleted server and of its guest."""

    def wait(uuid: str, point: str) -> None:
        with faults.stopwatch() as taken:
            cloud.api.wait_gone(uuid, faults.PROMISE)
        table.add(f"delete of a build {point}", "gone", taken[0])
        cloud.assert_books(faults.PROMISE)
        assert faults.hosts_of(cloud, uuid) == []
        # The host is as good as before.
        cloud.api.wait(cloud.api.boot("next"))

    return wait


Deleted = Callable[..., None]


def closed_at_once(cloud: Cloud, uuid: str) -> None:
    """Delete a server that the API itself can end."""
    cloud.api.delete(uuid)
    assert cloud.api.request("GET", f"/servers/{uuid}").status == 404
    row = faults.action(cloud, uuid)
    assert (row["action"], row["state"]) == ("delete", "done")


def test_that_waits_for_a_conductor(cloud: Cloud, deleted: Deleted) -> None:
    for name in faults.CONDUCTORS:
        cloud.pause(name)
    uuid = cloud.api.boot()
    assert faults.action(cloud, uuid)["state"] == "pending"
    closed_at_once(cloud, uuid)
    for name in faults.CONDUCTORS:
        cloud.resume(name)
    deleted(uuid, "that waits")


def test_that_is_taken(cloud: Cloud, deleted: Deleted) -> None:
    faults.arm(cloud, "conductor.after_take", *faults.CONDUCTORS)
    uuid = cloud.api.boot()
    eventually(lambda: not all(map(cloud.alive, faults.CONDUCTORS)), what="one has died")
    assert faults.action(cloud, uuid)["state"] == "running"
    closed_at_once(cloud, uuid)
    deleted(uuid, "that is taken")


def test_that_is_started(cloud: Cloud, deleted: Deleted) -> None:
    cloud.pause(HOST)
    uuid = cloud.api.boot()
    faults.wait_action(cloud, uuid, step="started")
    closed_at_once(cloud, uuid)
    cloud.resume(HOST)
    cloud.wait_log(HOST, f"{uuid}.*SUPERSEDED: the server is deleted")
    deleted(uuid, "that is started")


def test_that_spawns(cloud: Cloud, deleted: Deleted) -> None:
    faults.play(cloud, HOST, spawn_delay=SPAWN)
    uuid = cloud.api.boot()
    faults.wait_spawning(cloud, HOST, uuid)
    cloud.api.delete(uuid)
    cloud.wait_log(HOST, f"{uuid}.*Attempt 1 has stopped")
    faults.play(cloud, HOST, spawn_delay=0)
    deleted(uuid, "that spawns")


def test_that_waits_for_a_slot(cloud: Cloud, deleted: Deleted) -> None:
    faults.play(cloud, HOST, spawn_delay=SPAWN)
    servers = cloud.api.boot_many(14)
    for uuid in servers:
        faults.wait_action(cloud, uuid, step="begun")
    for uuid in servers:
        cloud.api.delete(uuid)
    faults.play(cloud, HOST, spawn_delay=0)
    for uuid in servers:
        cloud.api.wait_gone(uuid, faults.PROMISE)
    deleted(servers[-1], "that waits for a slot")


def test_whose_finish_comes_later(cloud: Cloud, deleted: Deleted) -> None:
    faults.play(cloud, HOST, spawn_delay=1)
    uuid = cloud.api.boot()
    faults.wait_spawning(cloud, HOST, uuid)
    for name in faults.CONDUCTORS:
        cloud.pause(name)
    # It is made, and finish waits for an answer.
    eventually(lambda: faults.guests(cloud, HOST).get(uuid) == 1, what="the guest runs")
    # The host is deaf too, so that finish is answered before it hears of the delete.
    cloud.pause(HOST)
    cloud.api.delete(uuid)
    for name in faults.CONDUCTORS:
        cloud.resume(name)
    cloud.resume(HOST)
    faults.play(cloud, HOST, spawn_delay=0)
    deleted(uuid, "whose finish comes later")


def test_on_a_host_that_is_down(cloud: Cloud, table: faults.Table) -> None:
    faults.play(cloud, HOST, spawn_delay=1)
    faults.arm(cloud, "build.after_spawn", HOST)
    uuid = cloud.api.boot()
    cloud.wait_dead(HOST)
    cloud.api.delete(uuid)
    with faults.stopwatch() as taken:
        cloud.api.wait_gone(uuid, 2 * (faults.DOWN_TIME + faults.MOVED))
    table.add("delete of a build on a dead host", "gone", taken[0])
    assert cloud.rows("select * from allocations") == []
    assert [row["host"] for row in cloud.rows("select host from cleanups")] == [HOST]
    assert uuid in faults.guests(cloud, HOST)
    cloud.start(HOST)
    cloud.assert_books(faults.PROMISE)
    assert faults.guests(cloud, HOST) == {}
    table.add("the same, the host returns", "no guest")


def test_of_a_guest_that_does_not_go(cloud: Cloud, table: faults.Table) -> None:
    uuid = cloud.api.boot()
    cloud.api.wait(uuid)
    faults.play(cloud, HOST, fail_destroy=1)
    cloud.api.delete(uuid)
    server = cloud.api.wait(uuid, "ERROR")
    assert server["OS-EXT-SRV-ATTR:host"] == HOST and server["fault"]["code"] == 500
    assert faults.hosts_of(cloud, uuid) == [HOST]
    assert cloud.rows("select * from allocations") != []
    faults.play(cloud, HOST, fail_destroy=0)
    cloud.api.delete(uuid)
    cloud.api.wait_gone(uuid)
    cloud.assert_books()
    table.add("delete that fails three times, then again", "ERROR, then gone")


def test_twice_at_once_and_while_the_host_restarts(cloud: Cloud, table: faults.Table) -> None:
    servers = cloud.api.boot_many(3)
    for uuid in servers:
        cloud.api.wait(uuid)
    cloud.kill(HOST)
    for uuid in [*servers, *servers]:
        cloud.api.delete(uuid)
    cloud.start(HOST)
    with faults.stopwatch() as taken:
        for uuid in servers:
            cloud.api.wait_gone(uuid, faults.PROMISE)
    cloud.assert_books(faults.PROMISE)
    table.add("delete while the host restarts", "gone", taken[0])
