# SPDX-License-Identifier: Apache-2.0
"""The database is locked for ten seconds while servers are asked for, built and deleted."""

import time
from concurrent import futures

import pytest

from tests.functional import cloud as cloud_module
from tests.functional import faults
from tests.functional.cloud import Cloud
from tests.functional.waiting import eventually

# Seconds; longer than it takes a compute of this cloud to fence itself.
LOCKED = 10.0

pytestmark = [
    pytest.mark.drill,
    pytest.mark.skipif(
        cloud_module.database_url_from_environment() is not None,
        reason="the lock on the whole file is SQLite's",
    ),
]


def test_a_lock_of_ten_seconds(standing: Cloud, table: faults.Table) -> None:
    cloud, api = standing, standing.api
    old = api.boot("old")
    api.wait(old)
    # One is in the middle of its spawn, one has finished and cannot tell anybody.
    faults.play(cloud, "compute1", spawn_delay=LOCKED + 2)
    faults.play(cloud, "compute2", spawn_delay=2)
    spawning = api.boot("spawning", availability_zone="nova:compute1")
    spawned = api.boot("spawned", availability_zone="nova:compute2")
    faults.wait_spawning(cloud, "compute1", spawning)
    faults.wait_spawning(cloud, "compute2", spawned)
    with futures.ThreadPoolExecutor(4) as pool, faults.locked(cloud):
        began = time.monotonic()
        asked = [pool.submit(api.create, f"asked{number}") for number in range(2)]
        gone = pool.submit(api.request, "DELETE", f"/servers/{old}")
        # It is made, but nobody can write that down; the fence pauses it.
        eventually(lambda: faults.guests(cloud, "compute2").get(spawned) == 3, what="it is paused")
        assert api.show(spawned)["status"] == "BUILD"
        # Reading goes on all the time.
        eventually(
            lambda: api.servers() and time.monotonic() - began > LOCKED, 60.0, "the lock is held"
        )
    faults.play(cloud, "compute1", "compute2", spawn_delay=0)
    with faults.stopwatch() as taken:
        answers = [each.result() for each in asked]
        assert [answer.status for answer in answers] == [202, 202], answers
        assert gone.result().status == 204
        servers = [str(answer.body["server"]["id"]) for answer in answers]
        states = api.wait_settled([spawning, spawned, *servers], faults.PROMISE)
        assert set(states.values()) == {"ACTIVE"}, states
        api.wait_gone(old, faults.PROMISE)
    table.add("database locked for 10 s", "ACTIVE or gone, one guest each", taken[0])
    books = cloud.assert_books(faults.PROMISE)
    assert len(books.servers) == 4
