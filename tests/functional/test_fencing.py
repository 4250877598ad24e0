# SPDX-License-Identifier: Apache-2.0
"""A host that is stopped in its tracks, or cut off, must not go on as if it owned its builds."""

import pytest

from tests.functional import faults
from tests.functional.cloud import Cloud
from tests.functional.waiting import eventually

pytestmark = pytest.mark.drill

RUNS, PAUSED = 1, 3
FELL = "this host fences itself"


def test_a_host_that_stood_still(standing: Cloud, table: faults.Table) -> None:
    """The build has moved when the host goes on; its servers at rest have not."""
    cloud, api = standing, standing.api
    faults.enable(cloud, "compute2", False)
    stays = api.boot("stays")
    api.wait(stays)
    faults.play(cloud, "compute1", spawn_delay=3)
    moves = api.boot("moves")
    faults.wait_spawning(cloud, "compute1", moves)
    cloud.pause("compute1")
    faults.enable(cloud, "compute2")
    with faults.stopwatch() as taken:
        server = api.wait(moves, timeout=2 * (faults.DOWN_TIME + faults.MOVED))
    table.add("host stands still in a build", "ACTIVE elsewhere", taken[0])
    assert server["OS-EXT-SRV-ATTR:host"] == "compute2"
    assert faults.action(cloud, moves)["attempt"] == 2
    assert api.show(stays)["status"] == "ACTIVE"
    assert api.show(stays)["OS-EXT-SRV-ATTR:host"] == "compute1"
    cloud.resume("compute1")
    with faults.stopwatch() as taken:
        cloud.wait_log("compute1", FELL)
        cloud.assert_books(faults.PROMISE)
    table.add("the same, the host goes on", "ACTIVE, one guest each", taken[0])
    assert faults.guests(cloud, "compute1") == {stays: RUNS}
    assert faults.guests(cloud, "compute2") == {moves: RUNS}


def test_a_host_that_is_cut_off(standing: Cloud, table: faults.Table) -> None:
    """No conductor answers: who waits for finish is paused, servers at rest run on."""
    cloud, api = standing, standing.api
    faults.enable(cloud, "compute2", False)
    rests = api.boot("rests")
    api.wait(rests)
    faults.play(cloud, "compute1", spawn_delay=1.5)
    waits = api.boot("waits")
    faults.wait_spawning(cloud, "compute1", waits)
    # Longer than it takes the fence to fall.
    faults.play(cloud, "compute1", spawn_delay=faults.DOWN_TIME + 2.0)
    spawns = api.boot("spawns")
    faults.wait_spawning(cloud, "compute1", spawns)
    for name in faults.CONDUCTORS:
        cloud.pause(name)
    eventually(lambda: faults.guests(cloud, "compute1").get(waits) == PAUSED, what="it is paused")
    assert faults.guests(cloud, "compute1")[rests] == RUNS
    faults.play(cloud, "compute1", spawn_delay=0)
    for name in faults.CONDUCTORS:
        cloud.resume(name)
    with faults.stopwatch() as taken:
        for uuid in (waits, spawns):
            api.wait(uuid, timeout=faults.PROMISE)
    table.add("host cut off in two builds", "ACTIVE, one guest each", taken[0])
    cloud.assert_books(faults.PROMISE)
    assert faults.guests(cloud, "compute1") == dict.fromkeys((rests, waits, spawns), RUNS)
    # Nobody has moved anything: conductors that were cut off themselves know no silence.
    for uuid in (waits, spawns):
        assert faults.action(cloud, uuid)["attempt"] == 1
